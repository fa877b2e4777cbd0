package intercept

import (
	"errors"
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
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
	"github.com/wasmproxy/wasmproxy/runtime/workqueue"
)

// tenFiles are values of ten files, in the kernel's form.
var tenFiles = map[string]string{
	"cpu.idle": "0", "cpu.max": "50000 100000", "cpu.max.burst": "10000", "cpu.weight": "50", "memory.high": "8388608",
	"memory.low": "4194304", "memory.max": "16777216", "memory.min": "1048576", "memory.swap.max": "0", "pids.max": "100",
}

// BenchmarkScanOfFiles is a scan of 400 pods with five containers each and ten values of each
// container, of which nothing has overwritten any: in plain files of v2, and in those of this
// machine's kernel, whose groups take a minute to make; and in plain files of pods that are lifted, since their
// containers have more than they. cpu-ms is the processor's time.
func BenchmarkScanOfFiles(b *testing.B) {
	lifted := func(b *testing.B) tree {
		in := plainTree(b)
		in.lifted = true
		return in
	}
	for name, tree := range map[string]func(*testing.B) tree{"plain": plainTree, "kernel": kernelTree, "lifted": lifted} {
		b.Run(name, func(b *testing.B) {
			o := fullNode(b, tree(b), 400, 5)
			benchmarkScan(b, o)
		})
	}
}

func benchmarkScan(b *testing.B, o Options) {
	b.Helper()
	b.ReportAllocs()
	before := processorTime()
	for n := uint64(0); b.Loop(); n++ {
		o.ScanPart(b.Context(), n)
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

// tree is a cgroup tree for fullNode.
type tree struct {
	fs     *cgroup.FS
	parent string                   // of the cgroups of pods, and the beginning of their names
	make   func(group string) error // makes the cgroup of a container
	values map[string]string        // of ten files
	lifted bool                     // each pod has the sum of its containers' quotas, and these more by a plugin
}

// plainTree is of plain files of v2.
func plainTree(b *testing.B) tree {
	b.Helper()
	root := b.TempDir()
	fs, err := cgroup.Open(root, "v2")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { fs.Close() })
	return tree{fs: fs, parent: "/kubepods/burstable/pod", values: tenFiles, make: func(group string) error {
		dir := filepath.Join(root, group)
		err := os.MkdirAll(dir, 0o755)
		for file, value := range map[string]string{"cpuset.cpus": "0-1\n", "cpuset.mems": "0\n"} {
			err = errors.Join(err, os.WriteFile(filepath.Join(dir, file), []byte(value), 0o644))
		}
		for file := range tenFiles {
			err = errors.Join(err, os.WriteFile(filepath.Join(dir, file), []byte("7\n"), 0o644))
		}
		return err
	}}
}

// fullNode is a node with so many containers in each of its pods, whose values are in place.
func fullNode(b *testing.B, in tree, inNode, inPod int) Options {
	b.Helper()
	o := Options{Keep: keep, CallTime: DefaultCallTime, Enforcer: enforce.Enforcer{
		Observer: observe.Discard(), Store: pods.NewStore(), Ledger: enforce.NewLedger(), Cgroups: in.fs, Queue: workqueue.New(), Node: &crifield.Node{CgroupVersion: in.fs.Version()},
	}}
	for p := range inNode {
		uid := fmt.Sprint("u", p)
		pod := &runtimeapi.PodSandboxConfig{
			Metadata: &runtimeapi.PodSandboxMetadata{Name: fmt.Sprint("web-", p), Namespace: "prod", Uid: uid},
			Linux:    &runtimeapi.LinuxPodSandboxConfig{CgroupParent: in.parent + uid},
		}
		o.Store.Observe(nil, &runtimeapi.RunPodSandboxRequest{Config: pod}, &runtimeapi.RunPodSandboxResponse{PodSandboxId: "sandbox " + uid})
		if in.lifted {
			limitPod(b, in, pod.Linux.CgroupParent, inPod*quota)
		}
		for c := range inPod {
			fullContainer(b, o, in, pod, fmt.Sprint(uid, "-", c))
		}
		if limit, _ := in.fs.Read(pod.Linux.CgroupParent, "cpu.max"); in.lifted && limit != "max 100000" {
			b.Fatalf("%s has cpu.max %s", pod.Linux.CgroupParent, limit)
		}
	}
	return o
}

// quota is kubelet's of each container of a pod that is lifted.
const quota = 5000

func limitPod(b *testing.B, in tree, group string, quota int) {
	b.Helper()
	if err := errors.Join(in.make(group), in.fs.Write(b.Context(), group, "cpu.max", fmt.Sprint(quota, " 100000"))); err != nil {
		b.Fatal(err)
	}
}

// fullContainer adds a container with ten values to a pod of fullNode.
func fullContainer(b *testing.B, o Options, in tree, pod *runtimeapi.PodSandboxConfig, id string) {
	b.Helper()
	uid := pod.Metadata.Uid
	create := &runtimeapi.CreateContainerRequest{
		PodSandboxId: "sandbox " + uid, SandboxConfig: pod, Config: &runtimeapi.ContainerConfig{Metadata: &runtimeapi.ContainerMetadata{Name: id}},
	}
	if in.lifted {
		create.Config.Linux = &runtimeapi.LinuxContainerConfig{Resources: &runtimeapi.LinuxContainerResources{CpuQuota: quota, CpuPeriod: 100_000}}
	}
	o.Store.Observe(nil, create, &runtimeapi.CreateContainerResponse{ContainerId: id})
	o.Store.Observe(nil, &runtimeapi.StartContainerRequest{ContainerId: id}, &runtimeapi.StartContainerResponse{})
	if err := in.make(filepath.Join(pod.Linux.CgroupParent, id)); err != nil {
		b.Fatal(err)
	}
	for file, value := range in.values {
		wish := enforce.Wish{Plugin: "10-a", Hook: abi.Tick, Value: value, At: time.Now(), Raises: in.lifted && file == "cpu.max"}
		o.Ledger.Record(enforce.ID{Pod: uid, Container: id}).Ask(enforce.Asked{Target: enforce.File(file), Wish: wish})
	}
	<-o.Enforcer.Reconcile(b.Context(), enforce.ID{Pod: uid, Container: id})
	for file, value := range in.values {
		held, err := in.fs.Read(filepath.Join(pod.Linux.CgroupParent, id), file)
		if v := o.Ledger.Record(enforce.ID{Pod: uid, Container: id}).Values()[enforce.File(file)]; err != nil || v.Failed != nil || held != value {
			b.Fatalf("%s is %q, %v, want %q; the record is %+v", file, held, err, value, v)
		}
	}
}
