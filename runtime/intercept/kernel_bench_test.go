package intercept

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
	"github.com/wasmproxy/wasmproxy/runtime/workqueue"
)

const kernelRoot = "/sys/fs/cgroup"

// kernelTree is of this machine's kernel. On v1 other files than tenFiles are there.
func kernelTree(b *testing.B) tree {
	b.Helper()
	fs := kernelFS(b)
	root := fmt.Sprintf("/wasmproxy-bench-%d", os.Getpid())
	t := tree{fs: fs, parent: root + "/pod", values: tenFiles}
	if fs.Version() == 1 {
		t.values = map[string]string{
			"cpu.idle": "0", "cpu.max": "50000 100000", "cpu.max.burst": "10000", "cpu.weight": "50", "memory.max": "16777216", "memory.swap.max": "0",
			"pids.max": "100", "cpuset.cpus": "0", "cpuset.mems": "0", "io.max": diskOf(b) + " rbps=max wbps=max riops=max wiops=1000",
		}
	}
	t.make = func(group string) error { return makeKernelGroup(b, fs.Version(), group) }
	return t
}

func kernelFS(b *testing.B) *cgroup.FS {
	b.Helper()
	fs, err := cgroup.Open(kernelRoot, "auto")
	if err != nil {
		b.Skip(err)
	}
	b.Cleanup(func() { fs.Close() })
	return fs
}

// makeKernelGroup makes a group, and lets it have the controllers or CPUs of those above it.
func makeKernelGroup(b *testing.B, version int, group string) error {
	b.Helper()
	controllers := []string{"."}
	if version == 1 {
		controllers = []string{"cpu", "memory", "pids", "cpuset", "blkio"}
	}
	for _, controller := range controllers {
		makeGroup(b, filepath.Join(kernelRoot, controller, group))
	}
	var errs []error
	for i, c := range group {
		above := group[:i]
		switch {
		case c != '/' || above == "":
		case version == 2:
			errs = append(errs, os.WriteFile(filepath.Join(kernelRoot, above, "cgroup.subtree_control"), []byte("+cpu +memory +pids"), 0))
		default:
			for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
				text, err := os.ReadFile(filepath.Join(kernelRoot, "cpuset", filepath.Dir(above), file))
				errs = append(errs, err, os.WriteFile(filepath.Join(kernelRoot, "cpuset", above, file), text, 0))
			}
		}
	}
	return errors.Join(errs...)
}

// diskOf is MAJOR:MINOR of a disk of this machine.
func diskOf(b *testing.B) string {
	b.Helper()
	for _, name := range []string{"vda", "sda", "nvme0n1", "xvda"} {
		if text, err := os.ReadFile("/sys/block/" + name + "/dev"); err == nil {
			return strings.TrimSpace(string(text))
		}
	}
	b.Skip("this machine has no disk in /sys/block")
	return ""
}

// fourFiles is a plugin that sets four files of a container, each time to other values.
type fourFiles struct{ turn int }

// values are by file, with the kernel's own file on v1. On v2 the names are the same.
func (f *fourFiles) values() map[string]string {
	n := f.turn % 2
	return map[string]string{
		"cpu.weight": fmt.Sprint(200 + n), "cpu.max.burst": fmt.Sprint(1000 + n), "memory.max": fmt.Sprint(100<<20 + n<<20), "pids.max": fmt.Sprint(1000 + n),
	}
}

var inV1 = map[string]string{
	"cpu.weight": "cpu/cpu.shares", "cpu.max.burst": "cpu/cpu.cfs_burst_us", "memory.max": "memory/memory.limit_in_bytes", "pids.max": "pids/pids.max",
}

func (*fourFiles) Manifest() abi.Manifest      { return abi.Manifest{} }
func (*fourFiles) Close(context.Context) error { return nil }
func (f *fourFiles) Call(_ context.Context, _ *plugin.Budget, _ plugin.Event, adj *plugin.Adjustment) (err error) {
	for file, value := range f.values() {
		err = errors.Join(err, adj.WriteFile(abi.Container, file, value))
	}
	return err
}

// BenchmarkStartWithFourFiles is a CreateContainer and a StartContainer of a runtime that answers at
// once, in which a plugin in Go sets four files of this machine's kernel:
//
//	plain      without a plugin
//	writes     the same four values written by os.WriteFile, and nothing else
//	memory     with the plugin, and records in memory alone
//	state-dir  with the plugin, and records in a state directory on tmpfs, as on a node
//
// What the host adds to a container's start beyond the writes is state-dir - plain - writes. A hook
// of a plugin in WebAssembly costs more by what BenchmarkHook says. µs-median is the median of all.
func BenchmarkStartWithFourFiles(b *testing.B) {
	b.Run("plain", func(b *testing.B) { benchmarkStart(b, enforce.NewLedger(), nil) })
	b.Run("writes", benchmarkWrites)
	b.Run("memory", func(b *testing.B) { benchmarkStart(b, enforce.NewLedger(), new(fourFiles)) })
	b.Run("state-dir", func(b *testing.B) {
		dir, err := os.MkdirTemp("/dev/shm", "wasmproxy-")
		if err != nil {
			b.Skip(err)
		}
		b.Cleanup(func() { os.RemoveAll(dir) })
		l, err := enforce.OpenLedger(b.Context(), filepath.Join(dir, "state"), observe.Discard())
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { l.Close() })
		benchmarkStart(b, l, new(fourFiles))
	})
}

func benchmarkWrites(b *testing.B) {
	fs, f, parent := kernelFS(b), new(fourFiles), benchParent()
	if err := makeKernelGroup(b, fs.Version(), parent+"/c1"); err != nil {
		b.Fatal(err)
	}
	var all []time.Duration
	for ; b.Loop(); f.turn++ {
		values := f.values()
		start := time.Now()
		for file, value := range values {
			path := filepath.Join(kernelRoot, parent, "c1", file)
			if fs.Version() == 1 {
				controller, name, _ := strings.Cut(inV1[file], "/")
				path = filepath.Join(kernelRoot, controller, parent, "c1", name)
			}
			if err := os.WriteFile(path, []byte(value), 0); err != nil {
				b.Fatal(err)
			}
		}
		all = append(all, time.Since(start))
	}
	reportMedian(b, all)
}

func benchParent() string { return fmt.Sprintf("/wasmproxy-bench-%d/pod1", os.Getpid()) }

// reportMedian reports the median, which neighbours disturb less than the mean.
func reportMedian(b *testing.B, all []time.Duration) {
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2].Nanoseconds())/1000, "µs-median")
}

// benchmarkStart starts a container again and again; its removal in between is not in the median.
func benchmarkStart(b *testing.B, l *enforce.Ledger, f *fourFiles) {
	fs, parent := kernelFS(b), benchParent()
	if err := makeKernelGroup(b, fs.Version(), parent+"/c1"); err != nil {
		b.Fatal(err)
	}
	o := Options{Keep: keep, CallTime: DefaultCallTime, Enforcer: enforce.Enforcer{
		Observer: observe.Discard(), Store: pods.NewStore(), Ledger: l, Cgroups: fs, Queue: workqueue.New(), Node: &crifield.Node{CgroupVersion: fs.Version()},
	}}
	var members []plugin.Member
	if f != nil {
		members = append(members, plugin.Member{ID: "10-four", Plugin: f, Hooks: abi.HookSetOf(abi.PreCreateContainer), Capabilities: abi.AllCapabilities})
	}
	o.Chain = plugin.NewChain(o.Observer, fs.Version(), members...)
	route := Router(o)
	pod := &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: "web-0", Namespace: "prod", Uid: "u1"}, Linux: &runtimeapi.LinuxPodSandboxConfig{CgroupParent: parent},
	}
	o.Store.Observe(nil, &runtimeapi.RunPodSandboxRequest{Config: pod}, &runtimeapi.RunPodSandboxResponse{PodSandboxId: "pod1"})
	call := func(method string, req, answer proto.Message) {
		frame, err := cri.NewFrame(req)
		if err == nil {
			_, err = route("/runtime.v1.RuntimeService/"+method)(b.Context(), &cri.Call{Request: frame}, func(context.Context, *cri.Frame) (*cri.Frame, error) { return cri.NewFrame(answer) })
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	var all []time.Duration
	for b.Loop() {
		start := time.Now()
		call("CreateContainer", &runtimeapi.CreateContainerRequest{PodSandboxId: "pod1", SandboxConfig: pod, Config: &runtimeapi.ContainerConfig{
			Metadata: &runtimeapi.ContainerMetadata{Name: "app"}, Linux: &runtimeapi.LinuxContainerConfig{Resources: &runtimeapi.LinuxContainerResources{CpuPeriod: 100_000}},
		}}, &runtimeapi.CreateContainerResponse{ContainerId: "c1"})
		call("StartContainer", &runtimeapi.StartContainerRequest{ContainerId: "c1"}, &runtimeapi.StartContainerResponse{})
		all = append(all, time.Since(start))
		if f != nil {
			for file, want := range f.values() {
				if got, err := fs.Read(parent+"/c1", file); got != want {
					b.Fatalf("%s is %q, %v, want %q", file, got, err, want)
				}
			}
			f.turn++
		}
		call("RemoveContainer", &runtimeapi.RemoveContainerRequest{ContainerId: "c1"}, &runtimeapi.RemoveContainerResponse{})
	}
	reportMedian(b, all)
}
