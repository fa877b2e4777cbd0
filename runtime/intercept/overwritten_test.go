package intercept_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/explain"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/ledger"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// sets is a plugin that sets resources of its container.
func sets(set func(r func(abi.Field, int64), text func(abi.Field, string), key func(name, value string))) function {
	return func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) (err error) {
		set(func(f abi.Field, n int64) { err = errors.Join(err, adj.SetInt64(abi.Container, abi.Resources+f, n)) },
			func(f abi.Field, s string) { err = errors.Join(err, adj.SetText(abi.Container, abi.Resources+f, s)) },
			func(name, s string) {
				err = errors.Join(err, adj.SetEntry(abi.Container, abi.Resources+abi.Unified, name, s))
			})
		return err
	}
}

// twoFields sets a quota and shares.
func twoFields(r func(abi.Field, int64), _ func(abi.Field, string), _ func(string, string)) {
	r(abi.CPUQuota, 30_000)
	r(abi.CPUShares, 256)
}

// runs has a runtime in k's cgroup: what it is sent it writes there.
func (k kernelGroup) runs(n *node) {
	n.backend.hear = func() {
		r := n.backend.updates[len(n.backend.updates)-1].GetLinux()
		if r.GetCpuQuota() != 0 {
			n.must(k.quota(int(r.GetCpuQuota())))
		}
		if r.GetCpuShares() != 0 {
			k.share(n.t, r.GetCpuShares())
		}
	}
}

// quotaFile is the file of the quota in this machine's version, which shows a quota of us.
func (k kernelGroup) quotaFile(us int) (file, shown string) {
	if k.fs.Version() == 1 {
		return "cpu.cfs_quota_us", strconv.Itoa(us)
	}
	return "cpu.max", fmt.Sprint(us, " 100000")
}

// A quota and shares that something else writes to the kernel are the plugin's again, with the
// next scan and after each call that repairs files, on this machine's cgroups.
func TestOverwrittenFieldsOnTheKernel(t *testing.T) {
	k := newKernelGroup(t, "")
	var events observe.Recorder
	n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, sets(twoFields))}, withCgroups(k.fs), withObserver(&events))
	k.runs(n)
	n.create(k.parent)
	n.must(k.quota(30_000))
	shares := k.share(t, 256)
	n.must(n.start())
	file, quota := k.quotaFile(30_000)
	if k.fs.Version() == 2 { // the fake runtime writes shares as a weight of that number
		shares = "35"
		k.write(t, k.shareFile(), shares)
		n.backend.hear = func() { k.write(t, k.shareFile(), shares); n.must(k.quota(30_000)) }
	}
	update := func() error {
		_, err := n.call(t.Context(), "UpdateContainerResources", &runtimeapi.UpdateContainerResourcesRequest{ContainerId: containerID,
			Linux: &runtimeapi.LinuxContainerResources{MemoryLimitInBytes: 1 << 28}}, &runtimeapi.UpdateContainerResourcesResponse{})
		return err
	}
	sibling := func() error {
		_, err := n.call(t.Context(), "CreateContainer", createRequest(), &runtimeapi.CreateContainerResponse{ContainerId: "c2"})
		_, startErr := n.call(t.Context(), "StartContainer", &runtimeapi.StartContainerRequest{ContainerId: "c2"}, &runtimeapi.StartContainerResponse{})
		return errors.Join(err, startErr)
	}
	for name, do := range map[string]func() error{
		"scan":                  func() error { intercept.Scan(t.Context(), n.options); return nil },
		"reload of systemd":     func() error { intercept.AfterReload(t.Context(), n.options); return nil },
		"connection":            func() error { intercept.Settle(t.Context(), n.options); return nil },
		"update":                update,
		"start of a sibling":    sibling,
		"another scan, of both": func() error { intercept.Scan(t.Context(), n.options); return nil },
	} {
		events.Take()
		n.must(k.quota(20_000))
		k.share(t, 700)
		n.must(do())
		n.must(n.queue.Drain(t.Context()))
		if q, s := content(t, k.dir, file), content(t, k.dir, k.shareFile()); q != quota || s != shares {
			t.Errorf("%s: the quota is %s, want %s, and the share is %s, want %s", name, q, quota, s, shares)
		}
		told := map[string]string{}
		for _, e := range observe.All[*observe.CgroupFileRepaired](events.Take()) {
			told[e.Field+" in "+e.File] = e.Plugin + ": " + e.Found + " → " + e.Value
		}
		weight := map[int]string{1: "70", 2: "700"}[k.fs.Version()]
		if told["cpu_quota in cpu.max"] != "10-test: 20000 100000 → 30000" || !strings.HasSuffix(told["cpu_shares in cpu.weight"], " → 256") || len(told) != 2 {
			t.Errorf("%s: told %v (the weight of the foreign write is %s)", name, told, weight)
		}
	}
	updates := len(n.backend.updates)
	for range 2 {
		intercept.Scan(t.Context(), n.options)
		n.must(n.queue.Drain(t.Context()))
	}
	if got := len(n.backend.updates); got != updates {
		t.Errorf("%d updates while nothing was overwritten", got-updates)
	}
}

// manyFields sets what a cgroup file of its own shows.
func manyFields(r func(abi.Field, int64), text func(abi.Field, string), key func(string, string)) {
	r(abi.CPUQuota, 12_345)
	r(abi.CPUShares, 256)
	r(abi.MemoryLimit, 1<<27+1)
	r(abi.MemorySwap, 1<<27+1+8192)
	text(abi.CpusetCpus, "0,1")
	text(abi.CpusetMems, "0")
	key("memory.low", "8193")
}

// manyFiles are what the kernel makes of manyFields.
var manyFiles = map[string]string{
	"cpu.max": "12345 100000", "cpu.weight": "35", "memory.max": "134217728", "memory.swap.max": "8192",
	"cpuset.cpus": "0-1", "cpuset.mems": "0", "memory.low": "8192",
}

// many is a node with the running container c1, to which a plugin has given manyFields.
func many(t *testing.T, opts ...option) (n *node, dir string) {
	fs, _, dir := scratchGroup(t)
	n = newNode(t, []plugin.Member{on(abi.PreCreateContainer, sets(manyFields))}, append(opts, withCgroups(fs))...)
	for file, value := range manyFiles {
		put(t, dir, file, value)
	}
	n.runPod()
	n.begin()
	n.must(n.queue.Drain(t.Context()))
	return n, dir
}

// scanned are the updates of a scan.
func (n *node) scanned() (all []*runtimeapi.LinuxContainerResources) {
	n.t.Helper()
	n.backend.updates = nil
	intercept.Scan(n.t.Context(), n.options)
	n.must(n.queue.Drain(n.t.Context()))
	for _, r := range n.backend.updates {
		all = append(all, r.GetLinux())
	}
	return all
}

// A value that systemd, the kernel or a version of runc has in another form is not sent again, and
// another value is: with what runtimes write together with it.
func TestOverwrittenFieldsInTheirForms(t *testing.T) {
	type resources = runtimeapi.LinuxContainerResources
	for _, c := range []struct {
		file, shown string
		want        *resources // nil: it is the value
	}{
		{"cpu.max", "12345 100000", nil},
		{"cpu.max", "13000 100000", nil}, // systemd
		{"cpu.max", "12345 50000", nil},  // kubelet's period
		{"cpu.max", "14000 100000", &resources{CpuQuota: 12_345, CpuPeriod: 100_000}},
		{"cpu.max", "max 100000", &resources{CpuQuota: 12_345, CpuPeriod: 100_000}},
		{"cpu.weight", "35", nil},
		{"cpu.weight", "10", nil}, // runc before 1.3.2
		{"cpu.weight", "11", &resources{CpuShares: 256}},
		{"memory.max", "134213632", &resources{MemoryLimitInBytes: 1<<27 + 1, MemorySwapLimitInBytes: 1<<27 + 8193}},
		{"memory.max", "max", &resources{MemoryLimitInBytes: 1<<27 + 1, MemorySwapLimitInBytes: 1<<27 + 8193}},
		{"memory.swap.max", "0", &resources{MemorySwapLimitInBytes: 1<<27 + 8193, MemoryLimitInBytes: 1<<27 + 1}},
		{"cpuset.cpus", "1", &resources{CpusetCpus: "0,1"}},
		{"cpuset.cpus", "", &resources{CpusetCpus: "0,1"}},
		{"cpuset.mems", "1", &resources{CpusetMems: "0"}},
		{"memory.low", "0", &resources{Unified: map[string]string{"memory.low": "8193"}}},
		{"memory.high", "4096", nil}, // kubelet's
		{"pids.max", "1", nil},
	} {
		t.Run(c.file+" "+c.shown, func(t *testing.T) {
			n, dir := many(t)
			if sent := n.scanned(); len(sent) > 0 {
				t.Fatalf("sent %v while nothing was overwritten", sent)
			}
			put(t, dir, c.file, c.shown)
			n.backend.hear = func() { put(t, dir, c.file, manyFiles[c.file]) }
			var want []*resources
			if c.want != nil {
				want = append(want, c.want)
			}
			if diff := cmp.Diff(want, n.scanned(), protocmp.Transform()); diff != "" {
				t.Errorf("sent (-want +got):\n%s", diff)
			}
			if sent := n.scanned(); len(sent) > 0 {
				t.Errorf("sent again: %v", sent)
			}
		})
	}
}

// A field is left alone where a plugin sets the file itself, or a key of unified, while the group is
// idle, and of a container that has not started, has ended, or is not known.
func TestFieldsThatAreNotCompared(t *testing.T) {
	n, dir := many(t)
	put(t, dir, "cpu.idle", "1")
	put(t, dir, "cpu.weight", "0")
	if sent := n.scanned(); len(sent) > 0 {
		t.Errorf("of an idle group: %v", sent)
	}
	fs, _, dir := scratchGroup(t)
	all := func(ctx context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
		return errors.Join(sets(manyFields)(ctx, ev, adj), adj.WriteFile(abi.Container, "memory.max", "4096000"),
			adj.SetEntry(abi.Container, abi.Resources+abi.Unified, "cpu.max", "9000 100000"))
	}
	n = newNode(t, []plugin.Member{on(abi.PreCreateContainer, all)}, withCgroups(fs))
	for file, value := range manyFiles {
		put(t, dir, file, value)
	}
	put(t, dir, "cpu.max", "9000 100000")
	n.runPod()
	if put(t, dir, "cpuset.cpus", "1"); len(n.scanned()) > 0 {
		t.Errorf("of a container that has not started: %v", n.backend.updates)
	}
	put(t, dir, "cpuset.cpus", "0-1")
	n.begin()
	if sent := n.scanned(); len(sent) > 0 || content(t, dir, "memory.max") != "4096000" {
		t.Errorf("of files that plugins set themselves: %v, memory.max is %s", sent, content(t, dir, "memory.max"))
	}
	put(t, dir, "cpu.max", "12345 100000")
	if sent := n.scanned(); len(sent) != 1 || sent[0].GetUnified()["cpu.max"] != "9000 100000" || sent[0].GetCpuQuota() != 0 {
		t.Errorf("of a key of unified: %v", sent)
	}
	n, dir = many(t)
	_, err := n.call(t.Context(), "StopContainer", &runtimeapi.StopContainerRequest{ContainerId: "c1"}, &runtimeapi.StopContainerResponse{})
	n.must(err)
	if put(t, dir, "cpuset.cpus", "1"); len(n.scanned()) > 0 {
		t.Errorf("of a container that has ended: %v", n.backend.updates)
	}
}

// A scan repairs a field five times, and then leaves it alone with one event, until the plugin asks
// again.
func TestFightOverAField(t *testing.T) {
	var events observe.Recorder
	n, dir := many(t, withObserver(&events))
	n.backend.hear = func() { put(t, dir, "cpuset.cpus", "0-1") }
	events.Take()
	updates := 0
	for range 8 {
		put(t, dir, "cpuset.cpus", "1")
		updates += len(n.scanned())
	}
	all := events.Take()
	fights := observe.All[*observe.CgroupFileFought](all)
	if repairs := len(observe.All[*observe.CgroupFileRepaired](all)); repairs != 5 || updates != 5 || len(fights) != 1 || content(t, dir, "cpuset.cpus") != "1" {
		t.Fatalf("%d repairs in %d updates, %d fights", repairs, updates, len(fights))
	}
	if e := observe.All[*observe.CgroupFileRepaired](all)[4]; e.Last != "" {
		t.Errorf("the last repair of a scan is %+v", e)
	}
	if e := fights[0]; e.Last != "StartContainer" || e.Found != "1" || e.Value != "0,1" || e.File != "cpuset.cpus" || e.Field != "cpuset_cpus" || e.ContainerID != "c1" {
		t.Errorf("the event is %+v", e)
	}
	n.wantExplained(explain.Field, "cpuset_cpus", "10-test: 0-1 → 0,1 by 10-test in PreCreateContainer → 0,1 → 1 fight")
	m := n.with(withCgroups(n.options.Cgroups), on(abi.PreUpdateContainerResources, sets(manyFields)))
	m.backend.hear = func() { put(t, dir, "cpuset.cpus", "0-1") }
	m.must(m.updateC1(&runtimeapi.LinuxContainerResources{OomScoreAdj: 8}))
	m.must(m.queue.Drain(t.Context()))
	if got := content(t, dir, "cpuset.cpus"); got != "0-1" {
		t.Errorf("cpuset.cpus is %s after the plugin has asked again", got)
	}
}

// After a restart of the proxy a field that was overwritten meanwhile is sent again. One that the
// runtime has never written is not.
func TestOverwrittenFieldAfterARestart(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	n, dir := many(t, withLedger(openLedger(t, state)))
	put(t, dir, "cpuset.cpus", "1")
	m := newNode(t, nil, withLedger(openLedger(t, state)), func(o *intercept.Options) { o.Store, o.Cgroups = n.store, n.options.Cgroups })
	m.store = n.store
	m.backend.hear = func() { put(t, dir, "cpuset.cpus", "0-1") }
	intercept.Settle(t.Context(), m.options)
	m.must(m.queue.Drain(t.Context()))
	if got := content(t, dir, "cpuset.cpus"); got != "0-1" || len(m.backend.updates) != 1 {
		t.Errorf("cpuset.cpus is %s, and the updates are %v", got, m.backend.updates)
	}

	state = filepath.Join(t.TempDir(), "state")
	fs, _, dir := scratchGroup(t) // whose cpu.max stays as it is
	n = newNode(t, []plugin.Member{on(abi.PreCreateContainer, twice)}, withCgroups(fs), withLedger(openLedger(t, state)))
	n.runPod()
	n.begin()
	m = newNode(t, nil, withLedger(openLedger(t, state)), func(o *intercept.Options) { o.Store, o.Cgroups = n.store, fs })
	m.store = n.store
	intercept.Settle(t.Context(), m.options)
	m.must(m.queue.Drain(t.Context()))
	if sent := m.scanned(); len(sent)+len(n.backend.updates)+len(m.backend.updates) > 0 {
		t.Errorf("sent %v", m.backend.updates)
	}
	put(t, dir, "memory.high", "300")
	if sent := m.scanned(); len(sent) != 1 || sent[0].GetUnified()["memory.high"] != "200" {
		t.Errorf("sent %v after another value", sent)
	}
}

// The log has one line for a value that the runtime accepts and does not write, which is then left alone.
func TestRuntimeThatDoesNotRepair(t *testing.T) {
	var events observe.Recorder
	n, dir := many(t, withObserver(&events))
	events.Take()
	put(t, dir, "memory.low", "0")
	for range 3 {
		intercept.Scan(t.Context(), n.options)
		n.must(n.queue.Drain(t.Context()))
	}
	all := events.Take()
	failed := observe.All[*observe.CgroupFileFailed](all)
	if len(n.backend.updates) != 1 || len(failed) != 1 || len(observe.All[*observe.CgroupFileRepaired](all)) > 0 {
		t.Fatalf("%d updates, and the failures are %v", len(n.backend.updates), failed)
	}
	if e := failed[0]; e.Field != "unified[memory.low]" || e.File != "memory.low" || e.Value != "8193" || !strings.Contains(e.Err.Error(), `"0"`) {
		t.Errorf("the event is %+v", e)
	}
	n.wantExplained(explain.Field, "unified[memory.low]", "10-test:  → 8193 by 10-test in PreCreateContainer → 8193 → 0 failed")
}

// A runtime that is down is asked again by the next scan. The log has the repair after that.
func TestOverwrittenFieldWhileTheRuntimeIsDown(t *testing.T) {
	var events observe.Recorder
	n, dir := many(t, withObserver(&events))
	events.Take()
	put(t, dir, "memory.low", "0")
	n.backend.refuses = errDown
	for range 2 {
		n.scanned()
	}
	all := events.Take()
	if len(observe.All[*observe.FieldsNotReset](all)) != 1 || len(observe.All[*observe.CgroupFileRepaired](all)) > 0 {
		t.Errorf("the events are %v", all)
	}
	n.backend.refuses, n.backend.hear = nil, func() { put(t, dir, "memory.low", "8192") }
	if sent := n.scanned(); len(sent) != 1 || content(t, dir, "memory.low") != "8192" {
		t.Errorf("sent %v", sent)
	}
	if told := observe.All[*observe.CgroupFileRepaired](events.Take()); len(told) != 1 || told[0].Found != "0" {
		t.Errorf("told %v", told)
	}
}

// What an update of kubelet's has written while a scan looks is not repaired: the scan waits for
// the update.
func TestScanDuringAnUpdateOfAField(t *testing.T) {
	n, dir := many(t)
	n.updating = func() {
		put(t, dir, "cpuset.cpus", "1")
		intercept.Scan(t.Context(), n.options)
	}
	n.must(n.updateC1(&runtimeapi.LinuxContainerResources{CpusetCpus: "1"}))
	n.must(n.queue.Drain(t.Context()))
	if len(n.backend.updates) > 0 || n.options.Ledger.Record(ledger.ID{Pod: "u1", Container: "c1"})[ledger.Field("cpuset_cpus")].Repairs > 0 {
		t.Errorf("the updates are %v", n.backend.updates)
	}
}

// While a quota that something else has overwritten is on its way back, the pod keeps the limit that
// the plugin has raised for it.
func TestPodLimitWhileAFieldIsOverwritten(t *testing.T) {
	n, pod := raising(t)
	dir := filepath.Join(pod, "c1")
	put(t, dir, "cpu.max", "100000 100000") // as the runtime writes it
	if sent := n.scanned(); len(sent) > 0 {
		t.Fatalf("sent %v", sent)
	}
	put(t, dir, "cpu.max", "20000 100000")
	n.backend.refuses = errDown
	for range 2 {
		n.scanned()
		n.wantCPU(pod, "100000 100000", "while the runtime is down")
	}
	n.backend.refuses, n.backend.hear = nil, func() {
		n.wantCPU(pod, "100000 100000", "when the container gets its quota")
		put(t, dir, "cpu.max", "100000 100000")
	}
	if sent := n.scanned(); len(sent) != 1 || sent[0].GetCpuQuota() != 100_000 {
		t.Errorf("sent %v", sent)
	}
	n.wantCPU(pod, "100000 100000", "after the repair")
}
