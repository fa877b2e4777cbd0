package monitoring

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/artifact"
)

// lab is a wasmproxy with plugins, before a runtime that answers at once.
type lab struct {
	t       *testing.T
	builder *artifact.Builder
	bin     string // directory of the programs
	dir     string // of this lab
	metrics string // address
	runtime cri.RuntimeServiceClient
	images  cri.ImageServiceClient
	proxy   *exec.Cmd
}

// programs builds what the labs run, and returns its directory.
func programs(t *testing.T) (*artifact.Builder, string) {
	t.Helper()
	builder, err := artifact.NewBuilder(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := errors.Join(builder.Prometheus(t.Context(), dir), builder.Bench(t.Context(), dir), builder.Proxy(t.Context(), dir)); err != nil {
		t.Fatal(err)
	}
	return builder, dir
}

// newLab makes the directories and starts the runtime.
func newLab(t *testing.T, builder *artifact.Builder, bin string) *lab {
	t.Helper()
	dir, err := os.MkdirTemp("", "wp") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l := &lab{t: t, builder: builder, bin: bin, dir: dir, metrics: freeAddress(t)}
	for _, dir := range []string{"plugins.d", "hooks", "cgroup"} {
		if err := os.Mkdir(l.path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	l.start("bench", "backend", l.path("backend.sock"))
	return l
}

// patiently is a plugin's JSON with a time limit that a busy machine does not reach.
func (l *lab) patiently(settings string) string {
	l.t.Helper()
	keys := map[string]any{}
	l.must(json.Unmarshal([]byte(settings), &keys))
	keys["timeout"] = "20s"
	text, err := json.Marshal(keys)
	l.must(err)
	return string(text)
}

// plugin puts a module of the project and its JSON into the plugin directory, each by a rename.
func (l *lab) plugin(id, module, settings string) {
	l.t.Helper()
	settings = l.patiently(settings)
	text, err := os.ReadFile(l.builder.ProjectFile(module))
	if err != nil {
		l.t.Fatal(err)
	}
	for _, file := range []struct {
		name    string
		content []byte
	}{{id + ".json", []byte(settings)}, {id + ".wasm", text}} {
		if err := errors.Join(os.WriteFile(l.path("new"), file.content, 0o644), os.Rename(l.path("new"), l.path("plugins.d/"+file.name))); err != nil {
			l.t.Fatal(err)
		}
	}
}

// keep writes a module and its JSON as the last good version of a plugin, as a proxy did that could load them.
func (l *lab) keep(id, module, settings string) {
	l.t.Helper()
	settings = l.patiently(settings)
	content, err := os.ReadFile(l.builder.ProjectFile(module))
	l.must(err)
	sum := sha256.Sum256(content)
	digest := hex.EncodeToString(sum[:])
	entry, err := json.Marshal(map[string]any{"version": 1, "file": l.path("plugins.d/" + id + ".wasm"), "text": settings, "digest": digest, "since": time.Now()})
	l.must(err)
	l.must(os.WriteFile(l.path("data/last-good/modules/"+digest+".wasm"), content, 0o600))
	l.must(os.WriteFile(l.path("data/last-good/plugins/"+id+".json"), entry, 0o600))
}

// freeAddress returns an address on which nobody listens.
func freeAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// start starts a program, which ends with the test.
func (l *lab) start(program string, args ...string) *exec.Cmd {
	l.t.Helper()
	log, err := os.OpenFile(l.path(program+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		l.t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(filepath.Join(l.bin, program), args...)
	cmd.Stdout, cmd.Stderr, cmd.Env = log, log, []string{"PATH=" + os.Getenv("PATH")}
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if said, err := os.ReadFile(log.Name()); l.t.Failed() {
			l.t.Logf("%s said (%v):\n%s", program, err, said[max(0, len(said)-4096):])
		}
	})
	return cmd
}

// await waits until f succeeds.
func (l *lab) await(what string, f func() error) {
	l.t.Helper()
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if err = f(); err == nil {
			return
		}
	}
	l.t.Fatalf("%s: %v", what, err)
}

func (l *lab) path(name string) string { return filepath.Join(l.dir, name) }

// startProxy starts wasmproxy, with further flags, and waits until it serves metrics.
func (l *lab) startProxy(flags ...string) {
	l.t.Helper()
	l.proxy = l.start("wasmproxy", append([]string{"serve", "--config", "", "--listen", l.path("proxy.sock"), "--backend", l.path("backend.sock"),
		"--plugin-dir", l.path("plugins.d"), "--hook-dir", l.path("hooks"), "--cache-dir", filepath.Join(l.bin, "cache"), "--state-dir", l.path("state"), "--data-dir", l.path("data"),
		"--admin-socket", l.path("admin.sock"), "--status-socket", l.path("status/s"), "--bypass-file", l.path("bypass"), "--cgroup-root", l.path("cgroup"), "--cgroup-mode", "v2",
		"--metrics-listen", l.metrics}, flags...)...)
	if l.runtime == nil {
		conn, err := grpc.NewClient("unix://"+l.path("proxy.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 10 * time.Millisecond, Multiplier: 1, MaxDelay: 10 * time.Millisecond}}))
		if err != nil {
			l.t.Fatal(err)
		}
		l.t.Cleanup(func() { conn.Close() })
		l.runtime, l.images = cri.NewRuntimeServiceClient(conn), cri.NewImageServiceClient(conn)
	}
	l.await("wasmproxy", func() error {
		_, err := l.runtime.Version(l.t.Context(), &cri.VersionRequest{}) // as kubelet does at once, so that the runtime is connected
		if err == nil {
			_, err = get("http://" + l.metrics + "/healthz")
		}
		return err
	})
}

// awaitMetric waits until so many lines of the metrics match a pattern.
func (l *lab) awaitMetric(pattern string, count int) {
	l.t.Helper()
	line := regexp.MustCompile("(?m)^" + pattern + "$")
	l.await(pattern, func() error {
		text, err := get("http://" + l.metrics + "/metrics")
		if n := len(line.FindAllString(text, -1)); err == nil && n < count {
			err = fmt.Errorf("%d of %d lines", n, count)
		}
		return err
	})
}

// runPod runs a pod with a container, as kubelet does. A plugin may refuse it.
func (l *lab) runPod(namespace string) (pod *cri.PodSandboxConfig, sandbox, container string, err error) {
	ctx, cancel := context.WithTimeout(l.t.Context(), patience)
	defer cancel()
	uid := fmt.Sprint(time.Now().UnixNano())
	group := "/kubepods/burstable/pod" + uid
	pod = &cri.PodSandboxConfig{
		Metadata: &cri.PodSandboxMetadata{Name: "web", Namespace: namespace, Uid: uid}, Linux: &cri.LinuxPodSandboxConfig{CgroupParent: group},
		Annotations: map[string]string{"memory-qos.wasmproxy.io/request.app": "1048576"},
	}
	if err := os.MkdirAll(l.path("cgroup"+group), 0o755); err != nil {
		l.t.Fatal(err)
	}
	if _, err := l.runtime.Version(ctx, &cri.VersionRequest{}); err != nil {
		l.t.Fatal(err)
	}
	run, err := l.runtime.RunPodSandbox(ctx, &cri.RunPodSandboxRequest{Config: pod})
	if err != nil {
		return pod, "", "", err
	}
	c, err := l.runtime.CreateContainer(ctx, &cri.CreateContainerRequest{PodSandboxId: run.PodSandboxId, SandboxConfig: pod, Config: &cri.ContainerConfig{
		Metadata: &cri.ContainerMetadata{Name: "app"},
		Linux:    &cri.LinuxContainerConfig{Resources: &cri.LinuxContainerResources{CpuQuota: 100000, CpuPeriod: 100000, MemoryLimitInBytes: 2 << 20}},
	}})
	if err != nil {
		return pod, run.PodSandboxId, "", err
	}
	_, err = l.runtime.StartContainer(ctx, &cri.StartContainerRequest{ContainerId: c.ContainerId})
	return pod, run.PodSandboxId, c.ContainerId, err
}

// everyCall makes the other calls of a pod's life, and those of images.
func (l *lab) everyCall(sandbox, container string) error {
	ctx, cancel := context.WithTimeout(l.t.Context(), patience)
	defer cancel()
	var failed error
	do := func(_ any, err error) { failed = errors.Join(failed, err) }
	do(l.runtime.UpdateContainerResources(ctx, &cri.UpdateContainerResourcesRequest{ContainerId: container, Linux: &cri.LinuxContainerResources{CpuShares: 512}}))
	do(l.runtime.UpdatePodSandboxResources(ctx, &cri.UpdatePodSandboxResourcesRequest{PodSandboxId: sandbox}))
	do(l.runtime.ExecSync(ctx, &cri.ExecSyncRequest{ContainerId: container, Cmd: []string{"true"}}))
	do(l.runtime.Exec(ctx, &cri.ExecRequest{ContainerId: container, Cmd: []string{"true"}, Stdout: true}))
	do(l.runtime.Attach(ctx, &cri.AttachRequest{ContainerId: container, Stdout: true}))
	do(l.runtime.PortForward(ctx, &cri.PortForwardRequest{PodSandboxId: sandbox, Port: []int32{80}}))
	do(l.runtime.CheckpointContainer(ctx, &cri.CheckpointContainerRequest{ContainerId: container}))
	do(l.images.PullImage(ctx, &cri.PullImageRequest{Image: &cri.ImageSpec{Image: "web:1"}}))
	do(l.images.RemoveImage(ctx, &cri.RemoveImageRequest{Image: &cri.ImageSpec{Image: "web:1"}}))
	do(l.runtime.StopContainer(ctx, &cri.StopContainerRequest{ContainerId: container}))
	do(l.runtime.RemoveContainer(ctx, &cri.RemoveContainerRequest{ContainerId: container}))
	do(l.runtime.StopPodSandbox(ctx, &cri.StopPodSandboxRequest{PodSandboxId: sandbox}))
	do(l.runtime.RemovePodSandbox(ctx, &cri.RemovePodSandboxRequest{PodSandboxId: sandbox}))
	return failed
}

func get(url string) (body string, err error) {
	client := http.Client{Timeout: patience}
	resp, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: status %d: %s", url, resp.StatusCode, text)
	}
	return string(text), err
}
