package intercept

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/ledger"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

// tenFiles are values of ten files, in the kernel's form.
var tenFiles = map[string]string{
	"cpu.idle": "0", "cpu.max": "50000 100000", "cpu.max.burst": "10000", "cpu.weight": "50", "memory.high": "8388608",
	"memory.low": "4194304", "memory.max": "16777216", "memory.min": "1048576", "memory.swap.max": "0", "pids.max": "100",
}

// BenchmarkScanOfFiles is a scan of 400 pods with five containers each and ten values of each
// container, of which nothing has overwritten any. The tree is of plain files. cpu-ms is the
// processor's time.
func BenchmarkScanOfFiles(b *testing.B) {
	o := fullNode(b, 400, 5)
	b.ReportAllocs()
	before := processorTime()
	for b.Loop() {
		Scan(b.Context(), o)
	}
	reportProcessorTime(b, before)
}

// processorTime is what the process has used.
func processorTime() time.Duration {
	var r unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// reportProcessorTime reports what was used since before as cpu-ms. It depends less than the time
// that passes on what else the machine does.
func reportProcessorTime(b *testing.B, before time.Duration) {
	b.ReportMetric(float64((processorTime()-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
}

// fullNode is a node with so many containers in each of its pods, whose values are in place.
func fullNode(b *testing.B, inNode, inPod int) Options {
	b.Helper()
	root := b.TempDir()
	fs, err := cgroup.Open(root, "v2")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { fs.Close() })
	o := Options{
		Observer: observe.Discard(), Store: pods.NewStore(), Ledger: ledger.New(), Cgroups: fs, Queue: NewWorkQueue(), Keep: keep,
		Node: &crifield.Node{CgroupVersion: 2}, CallTime: DefaultCallTime,
	}
	for p := range inNode {
		uid := fmt.Sprint("u", p)
		pod := &runtimeapi.PodSandboxConfig{
			Metadata: &runtimeapi.PodSandboxMetadata{Name: fmt.Sprint("web-", p), Namespace: "prod", Uid: uid},
			Linux:    &runtimeapi.LinuxPodSandboxConfig{CgroupParent: "/kubepods/burstable/pod" + uid},
		}
		o.Store.Observe(nil, &runtimeapi.RunPodSandboxRequest{Config: pod}, &runtimeapi.RunPodSandboxResponse{PodSandboxId: "sandbox " + uid})
		for c := range inPod {
			fullContainer(b, o, root, pod, fmt.Sprint(uid, "-", c))
		}
	}
	return o
}

// fullContainer adds a container with ten values to a pod of fullNode.
func fullContainer(b *testing.B, o Options, root string, pod *runtimeapi.PodSandboxConfig, id string) {
	b.Helper()
	uid := pod.Metadata.Uid
	create := &runtimeapi.CreateContainerRequest{
		PodSandboxId: "sandbox " + uid, SandboxConfig: pod, Config: &runtimeapi.ContainerConfig{Metadata: &runtimeapi.ContainerMetadata{Name: id}},
	}
	o.Store.Observe(nil, create, &runtimeapi.CreateContainerResponse{ContainerId: id})
	o.Store.Observe(nil, &runtimeapi.StartContainerRequest{ContainerId: id}, &runtimeapi.StartContainerResponse{})
	dir := filepath.Join(root, pod.Linux.CgroupParent, id)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	for file, value := range tenFiles {
		if err := os.WriteFile(filepath.Join(dir, file), []byte("7\n"), 0o644); err != nil {
			b.Fatal(err)
		}
		wish := ledger.Wish{Plugin: "10-a", Hook: abi.Tick, Value: value, At: time.Now()}
		o.Ledger.Ask(ledger.ID{Pod: uid, Container: id}, ledger.Asked{Target: ledger.File(file), Wish: wish})
	}
	i := &interceptor{Options: o}
	if done := i.repair(b.Context(), ledger.ID{Pod: uid, Container: id}, ledger.Wanted); len(done) < len(tenFiles)-1 {
		b.Fatalf("%d files were written", len(done))
	}
}
