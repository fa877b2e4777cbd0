package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-client/pkg/fake"

	"github.com/wasmproxy/wasmproxy/plugins-wasm"
	"github.com/wasmproxy/wasmproxy/runtime/admin"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/simulate"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

// upgradePatience is how long tests of upgrades wait for what comes.
const upgradePatience = 90 * time.Second

// groupRuntime is cri-client's fake runtime with cgroups, which are directories of plain files.
// StopContainer takes as many milliseconds as its timeout has seconds.
type groupRuntime struct {
	*fake.RemoteRuntime
	cgroups *simulate.Cgroups
	stops   chan chan struct{} // each has StopPodSandbox wait until it is closed; nil: it does not wait
}

func (r *groupRuntime) StopPodSandbox(ctx context.Context, req *runtimeapi.StopPodSandboxRequest) (*runtimeapi.StopPodSandboxResponse, error) {
	if r.stops != nil {
		end := make(chan struct{})
		r.stops <- end
		<-end
	}
	return r.RemoteRuntime.StopPodSandbox(ctx, req)
}

func (r *groupRuntime) CreateContainer(ctx context.Context, req *runtimeapi.CreateContainerRequest) (*runtimeapi.CreateContainerResponse, error) {
	resp, err := r.RemoteRuntime.CreateContainer(ctx, req)
	if err != nil {
		return nil, err
	}
	return resp, r.cgroups.Make(groupOf(req.GetSandboxConfig(), resp.GetContainerId()), req.GetConfig().GetLinux().GetResources())
}

// PodSandboxStatus tells of the pod's config as containerd does.
func (r *groupRuntime) PodSandboxStatus(ctx context.Context, req *runtimeapi.PodSandboxStatusRequest) (*runtimeapi.PodSandboxStatusResponse, error) {
	resp, err := r.RemoteRuntime.PodSandboxStatus(ctx, req)
	if err == nil && req.GetVerbose() {
		config := podConfig(resp.GetStatus().GetMetadata().GetName())
		var info []byte
		info, err = json.Marshal(map[string]any{"config": config})
		resp.Info = map[string]string{"info": string(info)}
	}
	return resp, err
}

func (r *groupRuntime) StopContainer(ctx context.Context, req *runtimeapi.StopContainerRequest) (*runtimeapi.StopContainerResponse, error) {
	time.Sleep(time.Duration(req.GetTimeout()) * time.Millisecond)
	return r.RemoteRuntime.StopContainer(ctx, req)
}

func (r *groupRuntime) RemoveContainer(ctx context.Context, req *runtimeapi.RemoveContainerRequest) (*runtimeapi.RemoveContainerResponse, error) {
	if groups, _ := filepath.Glob(r.cgroups.Dir + "/*/" + req.GetContainerId()); len(groups) == 1 {
		os.RemoveAll(filepath.Dir(groups[0]))
	}
	return r.RemoteRuntime.RemoveContainer(ctx, req)
}

func groupOf(pod *runtimeapi.PodSandboxConfig, container string) string {
	return filepath.Join(pod.GetLinux().GetCgroupParent(), container)
}

// upgraded is a node whose proxy is a process of the real program, at a path where another version
// may be put.
type upgraded struct {
	t       *testing.T
	dir     string
	program string
	cgroups *simulate.Cgroups
	runtime *groupRuntime
	kubelet runtimeapi.RuntimeServiceClient
	admin   admin.Client
	pids    []int
	args    []string          // of the program; nil: serve with all settings as flags
	socket  *net.UnixListener // that a service manager holds; nil: the proxy makes it
}

// manage is a service manager for the proxy, as systemd is one.
func (u *upgraded) manage() {
	u.t.Helper()
	var err error
	u.socket, err = net.ListenUnix("unix", &net.UnixAddr{Name: u.dir + "/kubelet.sock", Net: "unix"})
	u.must(err)
	u.t.Cleanup(func() { u.socket.Close() })
}

func newUpgraded(t *testing.T) *upgraded {
	t.Helper()
	dir, err := os.MkdirTemp("", "wp") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	u := &upgraded{t: t, dir: dir, program: dir + "/wasmproxy", admin: admin.Client{Socket: dir + "/admin.sock"}}
	for _, d := range []string{"cgroup", "plugins.d"} {
		u.must(os.Mkdir(filepath.Join(dir, d), 0o755))
	}
	u.cgroups, err = simulate.NewCgroups(dir+"/cgroup", 2)
	u.must(err)
	u.runtime = &groupRuntime{RemoteRuntime: fake.NewFakeRemoteRuntime(), cgroups: u.cgroups}
	u.serveRuntime()
	conn, err := grpc.NewClient("unix://"+dir+"/kubelet.sock", grpc.WithTransportCredentials(insecure.NewCredentials()))
	u.must(err)
	t.Cleanup(func() { conn.Close() })
	u.kubelet = runtimeapi.NewRuntimeServiceClient(conn)
	return u
}

func (u *upgraded) must(err error) {
	u.t.Helper()
	if err != nil {
		u.t.Fatal(err)
	}
}

func (u *upgraded) serveRuntime() {
	l, err := net.Listen("unix", u.dir+"/runtime.sock")
	u.must(err)
	server := grpc.NewServer()
	runtimeapi.RegisterRuntimeServiceServer(server, u.runtime)
	runtimeapi.RegisterImageServiceServer(server, u.runtime)
	go server.Serve(l) // ends with the server
	u.t.Cleanup(server.Stop)
}

// build builds the program as a version and returns its path.
func build(t *testing.T, dir, version string) string {
	t.Helper()
	program := filepath.Join(dir, version)
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", program, "-ldflags", "-X main.version="+version, ".")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building the program: %v\n%s", err, out)
	}
	return program
}

// put puts a version of the program in the place of the present one, as package managers do.
func (u *upgraded) put(program string) {
	u.t.Helper()
	u.must(os.Link(program, u.program+".new"))
	u.must(os.Rename(u.program+".new", u.program))
}

// startWithPlugin starts a program with a plugin, and waits until it serves with it.
func (u *upgraded) startWithPlugin(program string) {
	u.t.Helper()
	u.must(os.WriteFile(u.dir+"/plugins.d/10-qos.wasm", plugins.QoS, 0o644))
	u.put(program)
	u.start()
	u.status(1)
}

// start starts the proxy.
func (u *upgraded) start() {
	u.t.Helper()
	args := []string{"serve", "--listen", u.dir + "/kubelet.sock", "--backend", u.dir + "/runtime.sock", "--plugin-dir", u.dir + "/plugins.d",
		"--hook-dir", "", "--cache-dir", u.dir + "/cache", "--state-dir", u.dir + "/state", "--data-dir", u.dir + "/data", "--admin-socket", u.admin.Socket,
		"--status-socket", u.dir + "/status/s", "--bypass-file", u.dir + "/bypass",
		"--cgroup-root", u.cgroups.Dir, "--cgroup-mode", "v2", "--log-format", "text"}
	if u.args != nil {
		args = u.args
	}
	cmd := exec.Command(u.program, args...)
	if u.socket != nil {
		cmd = exec.Command("sh", append([]string{"-c", `LISTEN_PID=$$ exec "$@"`, "sh", u.program}, args...)...)
		file, err := u.socket.File()
		u.must(err)
		defer file.Close()
		cmd.ExtraFiles, cmd.Env = []*os.File{file}, append(os.Environ(), "LISTEN_FDS=1", "LISTEN_FDNAMES=wasmproxy.socket")
	}
	log, err := os.OpenFile(u.dir+"/log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	u.must(err)
	cmd.Stderr = log
	u.must(cmd.Start())
	u.must(log.Close())
	u.pids = append(u.pids, cmd.Process.Pid)
	u.t.Cleanup(func() {
		for _, pid := range u.pids {
			_ = unix.Kill(pid, unix.SIGKILL)
			_, _ = unix.Wait4(pid, nil, 0, nil)
		}
		if u.t.Failed() {
			log, _ := os.ReadFile(u.dir + "/log")
			u.t.Logf("the log of all processes:\n%s", log)
		}
	})
}

// status waits until the proxy serves with so many active plugins, and returns its state.
func (u *upgraded) status(plugins int) *status.Status {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.t.Context(), upgradePatience)
	defer cancel()
	for {
		s, err := u.admin.Status(ctx)
		active := 0
		if err == nil {
			for _, p := range s.Plugins.Plugins {
				if p.State == status.Active {
					active++
				}
			}
		}
		told, other := admin.Client{Socket: u.dir + "/status/s", StatusOnly: true}.Status(ctx)
		if err == nil && active == plugins && other == nil && told.PID == s.PID {
			return s
		}
		if ctx.Err() != nil {
			u.t.Fatalf("waiting for %d active plugins: %v, %v, %+v", plugins, err, other, s)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// awaitEnd waits until a process has ended by itself, and returns its exit status.
func (u *upgraded) awaitEnd(pid int) int {
	u.t.Helper()
	for end := time.Now().Add(upgradePatience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		var s unix.WaitStatus
		if got, _ := unix.Wait4(pid, &s, unix.WNOHANG, nil); got == pid {
			u.pids = slices.DeleteFunc(u.pids, func(p int) bool { return p == pid })
			return s.ExitStatus()
		}
	}
	u.t.Fatalf("process %d has not ended", pid)
	return 0
}

// load makes calls until it is told to end.
type load struct {
	u             *upgraded
	stop          chan struct{}
	wait          sync.WaitGroup
	calls         atomic.Int64
	withoutPlugin atomic.Bool  // calls may pass without it
	slow          atomic.Int64 // how much longer every third pod's stop takes, in ms
	mu            sync.Mutex
	failed        []string
	took          []time.Duration
}

// burst is what the plugin is to set for each container.
const burst = "5000"

// begin has so many pods live one life after the other, with a call of each in so much time.
func (u *upgraded) begin(pods int, each time.Duration) *load {
	l := &load{u: u, stop: make(chan struct{})}
	for i := range pods {
		l.wait.Go(func() {
			time.Sleep(each * time.Duration(9*i) / time.Duration(pods)) // a life has nine calls
			pace := time.NewTicker(each)
			defer pace.Stop()
			for n := 0; !l.ended(); n++ {
				l.life(fmt.Sprintf("web-%d-%d", i, n), int64(i%3)*(40+l.slow.Load()), pace)
			}
			l.life(fmt.Sprintf("web-%d-last", i), 0, pace) // which stays
		})
	}
	return l
}

func (l *load) ended() bool {
	select {
	case <-l.stop:
		return true
	default:
		return false
	}
}

func (l *load) end() {
	close(l.stop)
	l.wait.Wait()
}

// call makes one call.
func (l *load) call(what string, pace *time.Ticker, call func(context.Context) error) bool {
	<-pace.C
	ctx, cancel := context.WithTimeout(context.Background(), upgradePatience)
	defer cancel()
	start := time.Now()
	err := call(ctx)
	l.calls.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.took = append(l.took, time.Since(start))
	if err != nil {
		l.failed = append(l.failed, what+": "+err.Error())
	}
	return err == nil
}

// podConfig is that of a pod whose containers get a burst.
func podConfig(name string) *runtimeapi.PodSandboxConfig {
	return &runtimeapi.PodSandboxConfig{
		Metadata:    &runtimeapi.PodSandboxMetadata{Name: name, Namespace: "load", Uid: "uid-" + name},
		Annotations: map[string]string{"qos.wasmproxy.io/cpu-burst": burst},
		Linux:       &runtimeapi.LinuxPodSandboxConfig{CgroupParent: "/pod" + name},
	}
}

// life is that of one pod with one container, which stops as slowly as said.
func (l *load) life(name string, slowly int64, pace *time.Ticker) {
	k := l.u.kubelet
	config := podConfig(name)
	var pod, container string
	ok := l.call("RunPodSandbox", pace, func(ctx context.Context) error {
		r, err := k.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: config})
		pod = r.GetPodSandboxId()
		return err
	}) && l.call("CreateContainer", pace, func(ctx context.Context) error {
		r, err := k.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{PodSandboxId: pod, SandboxConfig: config, Config: &runtimeapi.ContainerConfig{
			Metadata: &runtimeapi.ContainerMetadata{Name: "app-" + name}, Image: &runtimeapi.ImageSpec{Image: "web"},
			Linux: &runtimeapi.LinuxContainerConfig{Resources: &runtimeapi.LinuxContainerResources{CpuQuota: 50000, CpuPeriod: 100000}},
		}})
		container = r.GetContainerId()
		return err
	}) && l.call("StartContainer", pace, func(ctx context.Context) error {
		_, err := k.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: container})
		if err == nil && !l.withoutPlugin.Load() {
			err = l.u.hasBurst(groupOf(config, container))
		}
		return err
	}) && l.call("UpdateContainerResources", pace, func(ctx context.Context) error {
		_, err := k.UpdateContainerResources(ctx, &runtimeapi.UpdateContainerResourcesRequest{ContainerId: container, Linux: &runtimeapi.LinuxContainerResources{CpuQuota: 60000, CpuPeriod: 100000}})
		if err == nil && !l.withoutPlugin.Load() {
			err = l.u.hasBurst(groupOf(config, container))
		}
		return err
	})
	if !ok || l.ended() { // the last containers stay
		return
	}
	_ = l.call("StopContainer", pace, func(ctx context.Context) error {
		_, err := k.StopContainer(ctx, &runtimeapi.StopContainerRequest{ContainerId: container, Timeout: slowly})
		return err
	}) && l.call("RemoveContainer", pace, func(ctx context.Context) error {
		_, err := k.RemoveContainer(ctx, &runtimeapi.RemoveContainerRequest{ContainerId: container})
		return err
	}) && l.call("StopPodSandbox", pace, func(ctx context.Context) error {
		_, err := k.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: pod})
		return err
	}) && l.call("RemovePodSandbox", pace, func(ctx context.Context) error {
		_, err := k.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: pod})
		return err
	}) && l.call("ListContainers", pace, func(ctx context.Context) error { // which no plugin sees
		_, err := k.ListContainers(ctx, &runtimeapi.ListContainersRequest{})
		return err
	})
}

// hasBurst is an error if a group does not have the plugin's value.
func (u *upgraded) hasBurst(group string) error {
	b, err := os.ReadFile(filepath.Join(u.cgroups.Dir, group, "cpu.max.burst"))
	if err == nil && strings.TrimSpace(string(b)) != burst {
		err = fmt.Errorf("cpu.max.burst is %s", b)
	}
	return err
}

// restart ends the process that serves, and starts the program that is now at its path.
func (u *upgraded) restart() {
	u.t.Helper()
	pid := u.pids[len(u.pids)-1]
	u.must(unix.Kill(pid, unix.SIGTERM))
	if code := u.awaitEnd(pid); code != 0 {
		u.t.Errorf("process %d ended with status %d", pid, code)
	}
	u.start()
}

// TestRestartUnderLoad: while systemd holds the socket and kubelet makes 200 calls a second, an upgrade by a restart fails no
// call that is shorter than the drain timeout. The last process knows what the container runtime has.
func TestRestartUnderLoad(t *testing.T) {
	u := newUpgraded(t)
	u.manage()
	programs := []string{build(t, u.dir, "v1"), build(t, u.dir, "v2")}
	u.startWithPlugin(programs[0])
	l := u.begin(20, 100*time.Millisecond)
	l.slow.Store(1000)          // ms, of some stops
	l.withoutPlugin.Store(true) // which may take longer to load than calls wait for it
	for i := range 4 {
		time.Sleep(time.Second)
		u.put(programs[(i+1)%2])
		u.restart()
		if s := u.status(1); s.Version != filepath.Base(programs[(i+1)%2]) {
			t.Errorf("after restart %d version %s serves", i, s.Version)
		}
	}
	l.slow.Store(0)
	l.end()
	slices.Sort(l.took)
	t.Logf("%d calls, p50 %v, longest %v", l.calls.Load(), l.took[len(l.took)/2], l.took[len(l.took)-1])
	if len(l.failed) > 0 {
		t.Errorf("%d of %d calls failed, such as:\n%s", len(l.failed), l.calls.Load(), strings.Join(l.failed[:min(5, len(l.failed))], "\n"))
	}
	u.agree()
}

// TestRestartWithAProgramThatDoesNotStart: while systemd holds the socket, a call waits until the program from before is back,
// which has the values of plugins.
func TestRestartWithAProgramThatDoesNotStart(t *testing.T) {
	u := newUpgraded(t)
	u.manage()
	good := build(t, u.dir, "v1")
	u.startWithPlugin(good)
	l := u.begin(5, 10*time.Millisecond)
	l.end()
	u.agree()
	pid := u.pids[0]
	u.must(unix.Kill(pid, unix.SIGTERM))
	u.awaitEnd(pid)
	ctx, cancel := context.WithTimeout(t.Context(), 5*upgradePatience)
	defer cancel()
	answered := make(chan error, 1)
	go func() {
		_, err := u.kubelet.Version(ctx, &runtimeapi.VersionRequest{}, grpc.WaitForReady(true))
		answered <- err
	}()
	for script, want := range map[string]int{
		"exit 3":                             3,
		`exec "` + good + `" "$@" --unheard`: exitUsage,
		`exec "` + good + `" "$@" --hook-dir "` + u.dir + `/plugins.d"`: exitFailure,
		`exec "` + good + `" "$@" --listen "` + u.dir + `/other.sock"`:  exitFailure,
	} {
		u.must(os.WriteFile(u.dir+"/script", []byte("#!/bin/sh\n"+script+"\n"), 0o755))
		u.put(u.dir + "/script")
		u.must(os.Remove(u.dir + "/script"))
		u.start()
		if code := u.awaitEnd(u.pids[len(u.pids)-1]); code != want {
			t.Errorf("%s: it ends with status %d", script, code)
		}
	}
	select {
	case err := <-answered:
		t.Errorf("the call did not wait: %v", err)
	default:
	}
	u.put(good)
	u.start()
	u.must(<-answered)
	u.agree()
}

// agree checks that the proxy knows the pods and containers of the runtime, and has the values of
// these containers and of no others.
func (u *upgraded) agree() {
	u.t.Helper()
	pods, err := u.kubelet.ListPodSandbox(u.t.Context(), &runtimeapi.ListPodSandboxRequest{})
	u.must(err)
	containers, err := u.kubelet.ListContainers(u.t.Context(), &runtimeapi.ListContainersRequest{})
	u.must(err)
	n := len(containers.GetContainers())
	s := u.status(1)
	if n == 0 || s.Store.Pods != len(pods.GetItems()) || s.Store.Containers != n || s.Values.Objects != n {
		u.t.Errorf("the runtime has %d pods and %d containers, the store %d and %d, the ledger %d objects", len(pods.GetItems()), n, s.Store.Pods, s.Store.Containers, s.Values.Objects)
	}
	l, err := enforce.OpenLedger(u.t.Context(), u.dir+"/state", observe.Discard())
	u.must(err)
	defer l.Close()
	if saved := len(l.Objects()); saved != n {
		u.t.Errorf("there are records of %d objects for %d containers", saved, n)
	}
}
