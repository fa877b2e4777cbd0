package daemon_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-client/pkg/fake"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/daemon"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/observe/slogsink"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// patience is how long tests wait for what comes. On a busy machine, under the race detector, an
// interpreted module of the largest size takes more than 30 s to load.
const patience = 90 * time.Second

// node is a daemon between a client, as kubelet is one, and cri-client's fake
// runtime, all on real sockets, with real plugin directories.
type node struct {
	t       testing.TB
	dir     string
	config  *config.Config
	runtime *fake.RemoteRuntime
	conn    *grpc.ClientConn // to the daemon
	kubelet runtimeapi.RuntimeServiceClient
	log     *journal
	stop    context.CancelFunc
	ended   chan error
}

type runner func(context.Context, *config.Config, observe.Observer) error

// newNode makes a node whose runtime runs and whose daemon does not.
func newNode(t testing.TB) *node {
	t.Helper()
	dir, err := os.MkdirTemp("", "wp") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	most := config.Default()
	n := &node{t: t, dir: dir, log: newJournal(), config: &config.Config{
		Listen: dir + "/kubelet.sock", Backend: dir + "/runtime.sock", PluginDir: dir + "/plugins.d", HookDir: dir + "/hookserver.d",
		DrainTimeout: 10 * time.Second, MaxFuel: most.MaxFuel, MaxHostCalls: most.MaxHostCalls, MaxMemory: most.MaxMemory, MaxTimeout: most.MaxTimeout,
	}}
	for _, d := range []string{n.config.PluginDir, n.config.HookDir} {
		n.must(os.Mkdir(d, 0o755))
	}
	n.runtime = fake.NewFakeRemoteRuntime()
	n.must(n.runtime.Start("unix://" + n.config.Backend))
	t.Cleanup(n.runtime.Stop)
	return n
}

// start starts the daemon and waits until it serves.
func (n *node) start(run runner) {
	n.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	n.stop, n.ended = stop, make(chan error, 1)
	begun := n.log.end()
	n.log.seek(begun) // what an earlier daemon has logged is of no interest
	go func() {
		n.ended <- run(ctx, n.config, slogsink.New(slog.New(slog.NewTextHandler(n.log, &slog.HandlerOptions{Level: slog.LevelDebug}))))
	}()
	n.await("msg=serving")
	n.log.seek(begun) // plugins are loaded before
	conn, err := grpc.NewClient("unix://"+n.config.Listen, grpc.WithTransportCredentials(insecure.NewCredentials()))
	n.must(err)
	n.conn, n.kubelet = conn, runtimeapi.NewRuntimeServiceClient(conn)
	n.t.Cleanup(func() {
		conn.Close()
		n.end()
	})
}

// end stops the daemon and fails the test if it did not end well.
func (n *node) end() {
	n.t.Helper()
	if n.stop == nil {
		return
	}
	n.stop()
	n.stop = nil
	select {
	case err := <-n.ended:
		n.must(err)
	case <-time.After(patience):
		n.t.Errorf("the daemon does not end; its log:\n%s", n.log)
	}
}

// serving is a node whose daemon has these files in its plugin directory.
func serving(t testing.TB, files map[string]string) *node {
	t.Helper()
	n := newNode(t)
	for name, from := range files {
		n.put(name, from)
	}
	n.start(daemon.Run)
	return n
}

// put puts a file into the plugin directory, whole at once: a module of
// testdata/wat by its name, or JSON as it is.
func (n *node) put(name, content string) {
	n.t.Helper()
	if strings.HasSuffix(name, ".wasm") {
		content = module(n.t, content)
	}
	n.putRaw(name, content)
}

// putRaw is put for what is the file's content whatever its name.
func (n *node) putRaw(name, content string) {
	n.t.Helper()
	draft := filepath.Join(n.dir, "draft")
	n.must(os.WriteFile(draft, []byte(content), 0o644))
	n.must(os.Rename(draft, filepath.Join(n.config.PluginDir, name)))
}

func (n *node) remove(name string) {
	n.t.Helper()
	n.must(os.Remove(filepath.Join(n.config.PluginDir, name)))
}

// module is a guest of testdata/wat.
func module(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile("../../testdata/wat/" + name + ".wasm")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func (n *node) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

// await waits until the log has a line with all of the words, beyond what earlier
// calls of await found.
func (n *node) await(words ...string) {
	n.t.Helper()
	if !n.log.await(words, patience) {
		n.t.Fatalf("the daemon does not log %q; its log:\n%s", words, n.log)
	}
}

// receive waits for what a channel has.
func receive[T any](n *node, from <-chan T) (value T) {
	n.t.Helper()
	select {
	case value = <-from:
	case <-time.After(patience):
		n.t.Fatalf("nothing comes; the daemon's log:\n%s", n.log)
	}
	return value
}

// awaitActive waits until exactly these plugins are what calls ask.
func (n *node) awaitActive(ids ...string) {
	n.t.Helper()
	list := strings.Join(ids, " ")
	if len(ids) > 1 {
		list = `"[` + list + `]"`
	} else {
		list = "[" + list + "]"
	}
	n.await("plugins active", "plugins="+list, "refusing=[]")
}

// runPod runs a sandbox; the name makes it another each time.
func (n *node) runPod(ctx context.Context, name string) (string, error) {
	resp, err := n.kubelet.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: podNamed(name)})
	return resp.GetPodSandboxId(), err
}

// podNamed is the config of a pod.
func podNamed(name string) *runtimeapi.PodSandboxConfig {
	return &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: name, Namespace: "test", Uid: name},
		Linux:    &runtimeapi.LinuxPodSandboxConfig{CgroupParent: "/kubepods/pod" + name},
	}
}

// createContainer creates a container in a pod.
func (n *node) createContainer(ctx context.Context, pod, name string) (string, error) {
	resp, err := n.kubelet.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{
		PodSandboxId:  pod,
		Config:        &runtimeapi.ContainerConfig{Metadata: &runtimeapi.ContainerMetadata{Name: name}, Image: &runtimeapi.ImageSpec{Image: "web:1"}},
		SandboxConfig: &runtimeapi.PodSandboxConfig{Metadata: &runtimeapi.PodSandboxMetadata{Name: pod}},
	})
	return resp.GetContainerId(), err
}

// journal is a log that can be waited on.
type journal struct {
	mu    sync.Mutex
	text  bytes.Buffer
	read  int           // what await has found
	wrote chan struct{} // closed and replaced at each write
}

func newJournal() *journal { return &journal{wrote: make(chan struct{})} }

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.text.Write(b)
	close(j.wrote)
	j.wrote = make(chan struct{})
	return len(b), nil
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func (j *journal) await(words []string, patience time.Duration) bool {
	for end := time.After(patience); ; {
		found, wrote := j.find(words)
		if found {
			return true
		}
		select {
		case <-wrote:
		case <-end:
			return false
		}
	}
}

// end is where the next line will be, and seek has await look from there on.
func (j *journal) end() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Len()
}

func (j *journal) seek(at int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.read = at
}

// find looks for a line with all the words in what no earlier find has passed.
func (j *journal) find(words []string) (bool, <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	rest := j.text.String()[j.read:]
	for at, line := range lines(rest) {
		if containsAll(line, words) {
			j.read += at + len(line)
			return true, nil
		}
	}
	return false, j.wrote
}

// lines yields the lines of a text with their offsets.
func lines(text string) func(func(int, string) bool) {
	return func(yield func(int, string) bool) {
		at := 0
		for line := range strings.Lines(text) {
			if !yield(at, line) {
				return
			}
			at += len(line)
		}
	}
}

func containsAll(line string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(line, w) {
			return false
		}
	}
	return true
}

func podName(i int) string { return fmt.Sprintf("web-%d", i) }

// endlessFuel is, in a plugin's JSON, as much fuel as a guest that loops cannot use up on any machine.
var endlessFuel = fmt.Sprintf(`"limits":{"fuel":%d}`, plugin.MaxFuel)
