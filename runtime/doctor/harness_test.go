package doctor_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-client/pkg/fake"

	"github.com/wasmproxy/wasmproxy/deploy/systemd"
	"github.com/wasmproxy/wasmproxy/runtime/admin"
	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/daemon"
	"github.com/wasmproxy/wasmproxy/runtime/doctor"
	"github.com/wasmproxy/wasmproxy/runtime/host"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/settings"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

// patience is how long tests wait for what comes.
const patience = 90 * time.Second

const (
	ours       = "unix:///run/wasmproxy/wasmproxy.sock"
	containerd = "unix:///run/containerd/containerd.sock"
)

// node is a host in a directory: files, a runtime and a daemon on real sockets, and a client in
// the place of kubelet.
type node struct {
	t       *testing.T
	root    string
	options doctor.Options
	units   map[string]map[string]string // what systemd says of them
	runtime *fake.RemoteRuntime
	kubelet runtimeapi.RuntimeServiceClient
	conn    *grpc.ClientConn
	stop    func() // ends the daemon
}

// newNode makes a healthy node whose daemon does not run yet.
func newNode(t *testing.T) *node {
	t.Helper()
	root, err := os.MkdirTemp("", "wp") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	settings := config.Default()
	settings.HookDir, settings.CgroupMode = "/etc/wasmproxy/hookserver.d", "v2" // which plain files can be
	n := &node{t: t, root: root, options: doctor.Options{
		Root: root, Settings: settings, SettingsFile: root + host.SettingsFile, Clock: func() (bool, error) { return true, nil },
		Load: func(ctx context.Context, c *config.Config) ([]string, error) {
			c.CacheDir = "" // the program of tests does not compile
			return daemon.Check(ctx, c, false)
		},
	}}
	n.units = map[string]map[string]string{
		systemd.ServiceName: {
			"LoadState": "loaded", "WantedBy": "multi-user.target", "Before": "shutdown.target kubelet.service",
			"MainPID": fmt.Sprint(os.Getpid()), "ExecStart": execStart("/usr/bin/wasmproxy"),
		},
		systemd.SocketName: {"LoadState": "loaded", "RequiredBy": systemd.ServiceName, "Before": "shutdown.target " + systemd.ServiceName},
		"kubelet.service":  {"LoadState": "loaded", "Id": "kubelet.service"},
	}
	n.options.Unit = func(_ context.Context, name string, properties ...string) (map[string]string, error) {
		asked := maps.Clone(n.units[name])
		maps.DeleteFunc(asked, func(key, _ string) bool { return !slices.Contains(properties, key) })
		return asked, nil
	}
	n.unitIs("kubelet.service", "active", "running", 1, time.Hour)
	for _, dir := range []string{settings.PluginDir, settings.HookDir, "/sys/fs/cgroup", "/run/containerd", "/run/wasmproxy", "/run/systemd/system"} {
		n.must(os.MkdirAll(root+dir, 0o755))
	}
	n.must(os.MkdirAll(root+settings.CacheDir, 0o700))
	n.put("/var/lib/kubelet/config.yaml", "cgroupDriver: systemd\ncontainerRuntimeEndpoint: unix:///var/run/wasmproxy/wasmproxy.sock\n")
	n.put("/var/lib/kubelet/instance-config.yaml", "containerRuntimeEndpoint: \""+ours+"\"\n")
	n.put(n.kubeletProc("comm"), "kubelet\n")
	n.put(n.kubeletProc("cmdline"), "/usr/bin/kubelet\x00--config=/var/lib/kubelet/config.yaml\x00")
	n.put(n.kubeletProc("status"), "Name:\tkubelet\nUid:\t0\t0\t0\t0\n")
	for _, process := range []string{"/proc/1/", n.kubeletProc("")} {
		n.link(process+"ns/pid", "pid:[1]")
		n.link(process+"root", "/")
	}
	n.put("/usr/bin/wasmproxy", "the program")
	n.link(fmt.Sprintf("/proc/%d/exe", os.Getpid()), root+"/usr/bin/wasmproxy")
	n.put("/usr/lib/systemd/system/kubelet.service", "[Service]\nExecStart=/usr/bin/kubelet\n")
	n.put("/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf", "[Service]\nEnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env\n"+
		"ExecStart=\nExecStart=/usr/bin/kubelet --config=/var/lib/kubelet/config.yaml $KUBELET_KUBEADM_ARGS\n")
	n.plugin("10-quota.wasm", "quota")
	n.put("/etc/wasmproxy/wasmproxy.yaml", "listen: "+ours+"\n")
	n.runtime = fake.NewFakeRemoteRuntime()
	n.runtime.RuntimeService.FakeLinuxConfiguration = &runtimeapi.LinuxRuntimeConfiguration{CgroupDriver: runtimeapi.CgroupDriver_SYSTEMD}
	n.must(n.runtime.Start("unix://" + root + "/run/containerd/containerd.sock"))
	t.Cleanup(n.runtime.Stop)
	return n
}

// execStart is what systemd says of a unit that starts the proxy's program.
func execStart(program string) string {
	const form = "{ path=%s ; argv[]=%[1]s serve --config /etc/wasmproxy/wasmproxy.yaml ; ignore_errors=no ; pid=0 ; status=0/0 }"
	return fmt.Sprintf(form, program)
}

// unitIs sets what systemd says of a unit that has a process. up is how long ago it became active.
func (n *node) unitIs(name, active, sub string, restarts int, up time.Duration) {
	n.t.Helper()
	var now unix.Timespec
	n.must(unix.ClockGettime(unix.CLOCK_MONOTONIC, &now))
	maps.Copy(n.units[name], map[string]string{
		"ActiveState": active, "SubState": sub, "Result": "exit-code", "NRestarts": fmt.Sprint(restarts),
		"ActiveEnterTimestampMonotonic": fmt.Sprint((now.Nano() - int64(up)) / 1000),
	})
}

// kubeletProc is a file of kubelet's process: this one, which connects to the proxy.
func (n *node) kubeletProc(name string) string { return fmt.Sprintf("/proc/%d/%s", os.Getpid(), name) }

func (n *node) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

// put writes a file of the host.
func (n *node) put(path, content string) {
	n.t.Helper()
	n.must(os.MkdirAll(filepath.Dir(n.root+path), 0o755))
	n.must(os.WriteFile(n.root+path, []byte(content), 0o644))
}

func (n *node) link(path, target string) {
	n.t.Helper()
	n.must(os.MkdirAll(filepath.Dir(n.root+path), 0o755))
	n.must(os.RemoveAll(n.root + path))
	n.must(os.Symlink(target, n.root+path))
}

// plugin puts a guest of testdata/wat into the plugin directory.
func (n *node) plugin(name, guest string) {
	n.t.Helper()
	b, err := os.ReadFile("../../testdata/wat/" + guest + ".wasm")
	n.must(err)
	n.put("/etc/wasmproxy/plugins.d/"+name, string(b))
}

// start runs the daemon until the test ends, and connects to it as kubelet does.
func (n *node) start() {
	n.t.Helper()
	c := *n.options.Settings
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.Flags(flags)
	n.must(flags.Set(config.FileFlag, n.root+host.SettingsFile))
	for key, path := range map[string]*string{
		"listen": &c.Listen, "backend": &c.Backend, "admin-socket": &c.AdminSocket, "status-socket": &c.StatusSocket, "plugin-dir": &c.PluginDir, "hook-dir": &c.HookDir,
		"state-dir": &c.StateDir, "data-dir": &c.DataDir, "bypass-file": &c.BypassFile, "cgroup-root": &c.CgroupRoot,
	} {
		*path = n.root + config.Path(*path)
		n.must(flags.Set(key, *path))
	}
	n.must(errors.Join(flags.Set("cache-dir", ""), flags.Set("cgroup-mode", c.CgroupMode)))
	source := settings.New(func() config.File { return config.ReadFile(flags) }, func(f config.File) (*config.Config, error) { return config.LoadFrom(flags, f) })
	used, err := source.Load()
	n.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- daemon.Serve(ctx, "development", used, source, observe.Discard()) }()
	n.stop = func() {
		_ = n.conn.Close()
		cancel()
		n.must(<-ended)
		n.stop = func() {}
	}
	n.t.Cleanup(func() { n.stop() })
	n.conn, err = grpc.NewClient("unix://"+c.Listen, grpc.WithTransportCredentials(insecure.NewCredentials()))
	n.must(err)
	n.kubelet = runtimeapi.NewRuntimeServiceClient(n.conn)
	_, err = n.kubelet.Version(n.t.Context(), &runtimeapi.VersionRequest{}, grpc.WaitForReady(true))
	n.must(err)
	n.settle()
}

// settle waits until no plugin is being loaded.
func (n *node) settle() {
	n.t.Helper()
	n.await(func(s *status.Status) bool {
		return len(s.Plugins.Plugins) > 0 && !slices.ContainsFunc(s.Plugins.Plugins, func(p status.Plugin) bool { return p.Pending != nil && p.Pending.State != "failed" })
	})
}

// awaitNotReady waits until the daemon says a part of what is not as it should be.
func (n *node) awaitNotReady(part string) {
	n.t.Helper()
	n.await(func(s *status.Status) bool {
		return slices.ContainsFunc(s.NotReady, func(line string) bool { return strings.Contains(line, part) })
	})
}

// pods makes so many pods, each with a container. A plugin may refuse them.
func (n *node) pods(count int) {
	for i := range count {
		name := fmt.Sprintf("web-%d", i)
		pod := &runtimeapi.PodSandboxConfig{Metadata: &runtimeapi.PodSandboxMetadata{Name: name, Namespace: "test", Uid: name}, Linux: &runtimeapi.LinuxPodSandboxConfig{}}
		made, err := n.kubelet.RunPodSandbox(n.t.Context(), &runtimeapi.RunPodSandboxRequest{Config: pod})
		if err != nil {
			continue
		}
		_, err = n.kubelet.CreateContainer(n.t.Context(), &runtimeapi.CreateContainerRequest{PodSandboxId: made.GetPodSandboxId(), SandboxConfig: pod, Config: &runtimeapi.ContainerConfig{
			Metadata: &runtimeapi.ContainerMetadata{Name: "app"}, Image: &runtimeapi.ImageSpec{Image: "web:1"},
			Linux: &runtimeapi.LinuxContainerConfig{Resources: &runtimeapi.LinuxContainerResources{CpuQuota: 100000, CpuPeriod: 100000}},
		}})
		n.must(err)
	}
}

// await waits until the daemon's status is as wanted.
func (n *node) await(wanted func(*status.Status) bool) {
	n.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		s, err := admin.Client{Socket: n.root + "/run/wasmproxy/admin.sock"}.Status(n.t.Context())
		if err == nil && wanted(s) {
			return
		}
		if time.Now().After(end) {
			n.t.Fatalf("the daemon's status: error %v, %+v", err, s)
		}
	}
}

// findings are those of a report, a line each, without notes on checks that were not made.
func findings(r *doctor.Report) string {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%s %s: %s: %s\n", f.Severity, f.Check, f.Where, f.Found)
	}
	return b.String()
}
