package intercept_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/explain"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

var errRefused = status.Error(codes.Unknown, "write cpuset.cpus: permission denied")

// manyParts are the updates that bring back manyFields one part at a time, by one file of each.
var manyParts = []struct {
	file string
	r    *runtimeapi.LinuxContainerResources
}{
	{"cpu.max", &runtimeapi.LinuxContainerResources{CpuQuota: 12_345, CpuPeriod: 100_000}},
	{"cpu.weight", &runtimeapi.LinuxContainerResources{CpuShares: 256}},
	{"cpuset.cpus", &runtimeapi.LinuxContainerResources{CpusetCpus: "0,1", CpusetMems: "0"}},
	{"memory.low", &runtimeapi.LinuxContainerResources{Unified: map[string]string{"memory.low": "8193"}}},
	{"memory.max", &runtimeapi.LinuxContainerResources{MemoryLimitInBytes: 1<<27 + 1, MemorySwapLimitInBytes: 1<<27 + 8193}},
}

// overwriteMany has something else overwrite the files of manyFields.
func overwriteMany(t *testing.T, dir string) {
	for file, value := range map[string]string{
		"cpu.max": "20000 100000", "cpu.weight": "50", "memory.max": "max", "memory.swap.max": "0",
		"cpuset.cpus": "1", "cpuset.mems": "1", "memory.low": "0",
	} {
		put(t, dir, file, value)
	}
}

// filesOf are the files of manyFields that an update has the runtime write.
func filesOf(r *runtimeapi.LinuxContainerResources) (files []string) {
	for file, named := range map[string]bool{
		"cpu.max": r.GetCpuQuota() != 0, "cpu.weight": r.GetCpuShares() != 0,
		"memory.max": r.GetMemoryLimitInBytes() != 0, "memory.swap.max": r.GetMemorySwapLimitInBytes() != 0,
		"cpuset.cpus": r.GetCpusetCpus() != "", "cpuset.mems": r.GetCpusetMems() != "", "memory.low": r.GetUnified()["memory.low"] != "",
	} {
		if named {
			files = append(files, file)
		}
	}
	return files
}

// refusesFiles has the runtime refuse each update that names one of the files, and carry out the
// others.
func (n *node) refusesFiles(dir string, refused ...string) {
	n.backend.hear = func() {
		n.backend.refuses = nil
		files := filesOf(n.backend.updates[len(n.backend.updates)-1].GetLinux())
		for _, file := range refused {
			if slices.Contains(files, file) {
				n.backend.refuses = errRefused
				return
			}
		}
		for _, file := range files {
			put(n.t, dir, file, manyFiles[file])
		}
	}
}

// A field that the runtime refuses does not hold up the repair of the others. They are sent on their
// own, each with what runtimes write together with it. The refused one is sent alone by the next
// scans, and told of once.
func TestOneOfTheRepairsIsRefused(t *testing.T) {
	var events observe.Recorder
	n, dir := many(t, withObserver(&events))
	events.Take()
	overwriteMany(t, dir)
	n.refusesFiles(dir, "cpuset.cpus")
	want := []*runtimeapi.LinuxContainerResources{{CpuQuota: 12_345, CpuPeriod: 100_000, CpuShares: 256, CpusetCpus: "0,1", CpusetMems: "0",
		MemoryLimitInBytes: 1<<27 + 1, MemorySwapLimitInBytes: 1<<27 + 8193, Unified: map[string]string{"memory.low": "8193"}}}
	for _, part := range manyParts {
		want = append(want, part.r)
	}
	if diff := cmp.Diff(want, n.scanned(), protocmp.Transform()); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	all := events.Take()
	failed := observe.All[*observe.FieldsNotReset](all)
	if repairs := len(observe.All[*observe.CgroupFileRepaired](all)); repairs != 5 || len(failed) != 1 {
		t.Fatalf("%d repairs are told, and the failures are %v", repairs, failed)
	}
	if e := failed[0]; !slices.Equal(e.Fields, []string{"cpuset_cpus", "cpuset_mems"}) || !errors.Is(e.Err, errRefused) || e.ContainerID != "c1" {
		t.Errorf("the failure is %+v", e)
	}
	n.wantExplained(explain.Field, "cpuset_cpus", "10-test: 0-1 → 0,1 by 10-test in PreCreateContainer → - → 1 failed")
	n.wantExplained(explain.Field, "cpu_shares", "10-test: 512 → 256 by 10-test in PreCreateContainer → 256 → weight 35")
	for range 2 {
		if diff := cmp.Diff([]*runtimeapi.LinuxContainerResources{manyParts[2].r}, n.scanned(), protocmp.Transform()); diff != "" {
			t.Errorf("sent by a later scan (-want +got):\n%s", diff)
		}
	}
	if all := events.Take(); len(all) > 0 {
		t.Errorf("later scans tell %v", all)
	}
	n.refusesFiles(dir)
	n.scanned()
	if told := observe.All[*observe.CgroupFileRepaired](events.Take()); len(told) != 2 || content(t, dir, "cpuset.cpus") != "0-1" {
		t.Errorf("told %v after the runtime has accepted it, and cpuset.cpus is %s", told, content(t, dir, "cpuset.cpus"))
	}
}

// Whatever the runtime refuses, all other fields get their values, and the refused ones get theirs
// when the runtime accepts them.
func TestAnyOfTheRepairsAreRefused(t *testing.T) {
	for set := range 1 << len(manyParts) {
		var refused []string
		for k, part := range manyParts {
			if set&(1<<k) != 0 {
				refused = append(refused, part.file)
			}
		}
		t.Run(strings.Join(refused, " "), func(t *testing.T) { testRepairsRefused(t, refused) })
	}
}

func testRepairsRefused(t *testing.T, refused []string) {
	n, dir := many(t)
	overwriteMany(t, dir)
	n.refusesFiles(dir, refused...)
	n.scanned()
	for _, part := range manyParts {
		if repaired := content(t, dir, part.file) == manyFiles[part.file]; repaired == slices.Contains(refused, part.file) {
			t.Errorf("%s is %s", part.file, content(t, dir, part.file))
		}
	}
	n.refusesFiles(dir)
	n.scanned()
	for file, value := range manyFiles {
		if got := content(t, dir, file); got != value {
			t.Errorf("after the runtime accepts it, %s is %s, want %s", file, got, value)
		}
	}
}

// The same goes for the undo of a removed plugin.
func TestOneOfTheUndosIsRefused(t *testing.T) {
	fs, _, _ := scratchGroup(t)
	var events observe.Recorder
	n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, twice)}, withCgroups(fs), withObserver(&events))
	n.runPod()
	n.begin()
	n.must(n.queue.Drain(t.Context()))
	n.backend.hear = func() {
		n.backend.refuses = nil
		if r := n.backend.updates[len(n.backend.updates)-1]; r.GetLinux().GetCpuQuota() != 0 {
			n.backend.refuses = errRefused
		}
	}
	intercept.Withdraw(t.Context(), n.options, removed("10-test"))
	n.hasField("cpuset_cpus", "", "", "", "")
	n.hasField("cpu_quota", "", "", "50000", "100000")
	intercept.Scan(t.Context(), n.options)
	n.must(n.queue.Drain(t.Context()))
	if told := observe.All[*observe.FieldsNotReset](events.Take()); len(told) != 1 || !slices.Equal(told[0].Fields, []string{"cpu_quota"}) {
		t.Errorf("told %v", told)
	}
	quota := &runtimeapi.LinuxContainerResources{CpuQuota: 50_000, CpuPeriod: 100_000}
	want := []*runtimeapi.UpdateContainerResourcesRequest{
		{ContainerId: "c1", Linux: &runtimeapi.LinuxContainerResources{CpuQuota: 50_000, CpuPeriod: 100_000, CpusetCpus: "0-1"}},
		{ContainerId: "c1", Linux: quota}, {ContainerId: "c1", Linux: &runtimeapi.LinuxContainerResources{CpusetCpus: "0-1"}},
		{ContainerId: "c1", Linux: quota},
	}
	if diff := cmp.Diff(want, n.backend.updates, protocmp.Transform()); diff != "" {
		t.Errorf("updates (-want +got):\n%s", diff)
	}
}

// A burst is sent with the quota that the kernel checks it against.
func TestBurstIsSentWithTheQuota(t *testing.T) {
	fs, _, dir := scratchGroup(t)
	n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, sets(func(r func(abi.Field, int64), _ func(abi.Field, string), key func(string, string)) {
		r(abi.CPUQuota, 30_000)
		key("cpu.max.burst", "20000")
		key("memory.low", "8192")
	}))}, withCgroups(fs))
	for file, value := range map[string]string{"cpu.max": "30000 100000", "cpu.max.burst": "20000", "memory.low": "8192"} {
		put(t, dir, file, value)
	}
	n.runPod()
	n.begin()
	n.must(n.queue.Drain(t.Context()))
	for file, value := range map[string]string{"cpu.max": "10000 100000", "cpu.max.burst": "0", "memory.low": "0"} {
		put(t, dir, file, value)
	}
	n.backend.refuses = errRefused
	want := []*runtimeapi.LinuxContainerResources{
		{CpuQuota: 30_000, CpuPeriod: 100_000, Unified: map[string]string{"cpu.max.burst": "20000", "memory.low": "8192"}},
		{CpuQuota: 30_000, CpuPeriod: 100_000, Unified: map[string]string{"cpu.max.burst": "20000"}},
		{Unified: map[string]string{"memory.low": "8192"}},
	}
	if diff := cmp.Diff(want, n.scanned(), protocmp.Transform()); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}

// The share of a removed plugin and another plugin's cpu.idle are sent together: the kernel takes no
// weight of an idle group.
func TestIdleIsSentWithTheShares(t *testing.T) {
	fs, _, dir := scratchGroup(t)
	shares := on(abi.PreCreateContainer, sets(func(r func(abi.Field, int64), _ func(abi.Field, string), _ func(string, string)) {
		r(abi.CPUShares, 256)
	}))
	idle := on(abi.PreCreateContainer, sets(func(_ func(abi.Field, int64), _ func(abi.Field, string), key func(string, string)) {
		key("cpu.idle", "1")
	}))
	idle.ID = "20-idle"
	n := newNode(t, []plugin.Member{shares, idle}, withCgroups(fs))
	put(t, dir, "cpu.idle", "1")
	n.runPod()
	n.begin()
	n.must(n.queue.Drain(t.Context()))
	n.backend.refuses = errRefused
	intercept.Withdraw(t.Context(), n.options, removed("10-test"))
	n.must(n.queue.Drain(t.Context()))
	put(t, dir, "cpu.idle", "0")
	want := []*runtimeapi.LinuxContainerResources{{CpuShares: 512, Unified: map[string]string{"cpu.idle": "1"}}}
	if diff := cmp.Diff(want, n.scanned(), protocmp.Transform()); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}

// An error that is not about the fields is the answer to one update of all.
func TestErrorsThatAreNotAboutFields(t *testing.T) {
	for _, code := range []codes.Code{codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.NotFound, codes.ResourceExhausted, codes.Unimplemented} {
		n, dir := many(t)
		overwriteMany(t, dir)
		n.backend.refuses = status.Error(code, "no")
		if sent := n.scanned(); len(sent) != 1 || len(filesOf(sent[0])) != len(manyFiles) {
			t.Errorf("%v: sent %v", code, sent)
		}
	}
}

// If the runtime goes down between the parts, the later ones are not sent, and one event tells of
// them. The next scan sends what is left at once.
func TestRuntimeGoesDownBetweenTheParts(t *testing.T) {
	var events observe.Recorder
	n, dir := many(t, withObserver(&events))
	events.Take()
	overwriteMany(t, dir)
	n.backend.hear = func() {
		n.backend.refuses = map[int]error{1: errRefused, 3: errDown}[len(n.backend.updates)]
	}
	if sent := n.scanned(); len(sent) != 3 {
		t.Errorf("sent %v", sent)
	}
	failed := observe.All[*observe.FieldsNotReset](events.Take())
	want := "[cpu_shares cpuset_cpus cpuset_mems memory_limit_in_bytes memory_swap_limit_in_bytes unified[memory.low]]"
	if len(failed) != 1 || fmt.Sprint(failed[0].Fields) != want || !errors.Is(failed[0].Err, errDown) {
		t.Errorf("told %v, want one failure of %s", failed, want)
	}
	n.refusesFiles(dir)
	if sent := n.scanned(); len(sent) != 1 || slices.Contains(filesOf(sent[0]), "cpu.max") || content(t, dir, "cpu.weight") != "35" {
		t.Errorf("sent %v", sent)
	}
}
