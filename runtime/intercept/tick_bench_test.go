package intercept

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
	"github.com/wasmproxy/wasmproxy/runtime/workqueue"
)

// calledObserver keeps what the last call of a plugin cost.
type calledObserver struct{ called *observe.HookCalled }

func (o *calledObserver) Wants(observe.Kind) bool { return true }
func (o *calledObserver) Observe(_ context.Context, e observe.Event) {
	if e, ok := e.(*observe.HookCalled); ok {
		o.called = e
	}
}

// reader is a node with 250 containers, and the plugin testdata/wat/reader, which reads four
// files of each in a Tick.
func reader(tb testing.TB, fs *cgroup.FS) (tick func() *observe.HookCalled, store *pods.Store) {
	tb.Helper()
	store = pods.NewStore()
	for p := range 50 {
		pod := &runtimeapi.PodSandboxConfig{
			Metadata: &runtimeapi.PodSandboxMetadata{Name: fmt.Sprint("web-", p), Namespace: "prod", Uid: fmt.Sprint("u", p)},
			Linux:    &runtimeapi.LinuxPodSandboxConfig{CgroupParent: fmt.Sprint(readerRoot, p)},
		}
		store.Observe(nil, &runtimeapi.RunPodSandboxRequest{Config: pod}, &runtimeapi.RunPodSandboxResponse{PodSandboxId: fmt.Sprint("pod", p)})
		for c := range 5 {
			create := &runtimeapi.CreateContainerRequest{
				PodSandboxId: fmt.Sprint("pod", p), SandboxConfig: pod,
				Config: &runtimeapi.ContainerConfig{Metadata: &runtimeapi.ContainerMetadata{Name: fmt.Sprint("c", c)}},
			}
			store.Observe(nil, create, &runtimeapi.CreateContainerResponse{ContainerId: fmt.Sprint("c", p, "-", c)})
		}
	}
	e, err := wasm.NewEngine(tb.Context(), wasm.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { e.Close(context.Background()) })
	module, err := os.ReadFile("../../testdata/wat/reader.wasm")
	if err != nil {
		tb.Fatal(err)
	}
	granted := abi.CapabilitySetOf(abi.StoreRead, abi.CgroupRead)
	p, err := e.Load(tb.Context(), "reader", module, wasm.PluginOptions{Granted: granted})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { p.Close(context.Background()) })
	log := new(calledObserver)
	o := Options{
		Enforcer: enforce.Enforcer{Observer: log, Store: store, Ledger: enforce.NewLedger(), Queue: workqueue.New(), Cgroups: fs, Node: &crifield.Node{CgroupVersion: fs.Version()}},
		Keep:     keep, CallTime: DefaultCallTime,
		Chain: plugin.NewChain(log, fs.Version()), NewChain: func(m ...plugin.Member) *plugin.Chain { return plugin.NewChain(log, fs.Version(), m...) },
	}
	m := plugin.Member{
		ID: "reader", Plugin: p, Metered: true, Hooks: abi.HookSetOf(abi.Tick),
		Breaker: plugin.NewBreaker(observe.Discard(), "reader", nil), Capabilities: granted,
	}
	return func() *observe.HookCalled {
		Tick(tb.Context(), o, m, "")
		if log.called == nil || log.called.Err != nil {
			tb.Fatalf("the tick failed: %+v", log.called)
		}
		return log.called
	}, store
}

const readerRoot = "/wasmproxy-reader/pod"

// readerGroup is the cgroup of a container of reader.
func readerGroup(pod, container int) string {
	return fmt.Sprint(readerRoot, pod, "/c", pod, "-", container)
}

// plainReaderTree is a v2 tree of plain files with the groups of reader.
func plainReaderTree(tb testing.TB) *cgroup.FS {
	tb.Helper()
	root := tb.TempDir()
	files := map[string]string{"cpu.stat": "usage_usec 5\nnr_periods 0\n", "memory.current": "4096\n", "pids.current": "3\n", "cpu.max": "max 100000\n"}
	for p := range 50 {
		for c := range 5 {
			dir := filepath.Join(root, readerGroup(p, c))
			if err := os.MkdirAll(dir, 0o755); err != nil {
				tb.Fatal(err)
			}
			for name, text := range files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
					tb.Fatal(err)
				}
			}
		}
	}
	fs, err := cgroup.Open(root, "v2")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { fs.Close() })
	return fs
}

// A Tick reads four files of 250 containers in few calls of the host.
func TestTickReadsFilesOfManyContainers(t *testing.T) {
	tick, _ := reader(t, plainReaderTree(t))
	if called := tick(); called.HostCalls >= 100 {
		t.Errorf("%d calls of the host, want fewer than 100", called.HostCalls)
	}
}

// The cgroup of a container that is found by its name is looked for once.
func TestTickFindsACgroupOnce(t *testing.T) {
	tick, store := reader(t, plainReaderTree(t))
	tick()
	for _, id := range []string{"c0-0", "c49-4"} {
		pod, _, _ := strings.Cut(strings.TrimPrefix(id, "c"), "-")
		if c, _ := store.Container(id); c.CgroupsPath != readerRoot+pod+"/"+id {
			t.Errorf("the store has the cgroup of %s at %q", id, c.CgroupsPath)
		}
	}
}

// BenchmarkTickReads is a Tick that reads four files of 250 containers:
//
//	plain   plain files of v2
//	kernel  those of this machine's kernel; on v1, two of the four are two files each
//	reads   the kernel's files, opened, read and closed in turn, and nothing else
//
// What the host adds to the reads is kernel - reads. cpu-ms is the processor's time.
func BenchmarkTickReads(b *testing.B) {
	b.Run("plain", func(b *testing.B) { benchmarkTick(b, plainReaderTree(b)) })
	b.Run("kernel", func(b *testing.B) {
		fs := kernelFS(b)
		makeReaderGroups(b, fs)
		benchmarkTick(b, fs)
	})
	b.Run("reads", benchmarkReads)
}

func benchmarkReads(b *testing.B) {
	fs := kernelFS(b)
	makeReaderGroups(b, fs)
	files := []string{"./cpu.stat", "./memory.current", "./pids.current", "./cpu.max"}
	if fs.Version() == 1 {
		files = []string{"cpuacct/cpuacct.usage", "cpu/cpu.stat", "memory/memory.usage_in_bytes", "pids/pids.current", "cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us"}
	}
	var paths []string
	for p := range 50 {
		for c := range 5 {
			for _, file := range files {
				controller, name, _ := strings.Cut(file, "/")
				paths = append(paths, filepath.Join(kernelRoot, controller, readerGroup(p, c), name))
			}
		}
	}
	text, before := make([]byte, 4096), processorTime()
	for b.Loop() {
		for _, path := range paths {
			readOnce(b, path, text)
		}
	}
	reportProcessorTime(b, before)
}

// readOnce reads a file with three system calls; package os needs more.
func readOnce(b *testing.B, path string, text []byte) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		b.Fatalf("opening %s: %v", path, err)
	}
	_, err = unix.Read(fd, text)
	if err = errors.Join(err, unix.Close(fd)); err != nil {
		b.Fatalf("reading %s: %v", path, err)
	}
}

func benchmarkTick(b *testing.B, fs *cgroup.FS) {
	tick, _ := reader(b, fs)
	before := processorTime()
	for b.Loop() {
		b.ReportMetric(float64(tick().HostCalls), "hostcalls/op")
	}
	reportProcessorTime(b, before)
}

// makeReaderGroups makes the groups of reader in the kernel.
func makeReaderGroups(b *testing.B, fs *cgroup.FS) {
	b.Helper()
	controllers := []string{"."}
	if fs.Version() == 1 {
		controllers = []string{"cpu", "cpuacct", "memory", "pids"}
	}
	for _, controller := range controllers {
		for p := range 50 {
			for c := range 5 {
				makeGroup(b, filepath.Join(kernelRoot, controller, readerGroup(p, c)))
			}
		}
	}
}

// makeGroup makes a group and those above it until the benchmark ends.
func makeGroup(b *testing.B, dir string) {
	if _, err := os.Stat(dir); err == nil {
		return
	}
	makeGroup(b, filepath.Dir(dir))
	if err := os.Mkdir(dir, 0o755); err != nil {
		b.Skip(err)
	}
	b.Cleanup(func() { os.Remove(dir) })
}
