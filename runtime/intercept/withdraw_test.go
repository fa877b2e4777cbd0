package intercept_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// withdrawing withdraws a field or entry, or with field 0 a cgroup file, of an object.
func withdrawing(o abi.Object, f abi.Field, key string) function {
	return func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		_, err := adj.Withdraw(o, f, key)
		return err
	}
}

// both is two plugins in one.
func both(first, second function) function {
	return func(ctx context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
		return errors.Join(first(ctx, ev, adj), second(ctx, ev, adj))
	}
}

func named(id string, hook abi.Hook, f function) plugin.Member {
	m := on(hook, f)
	m.ID = id
	return m
}

const quota = abi.Resources + abi.CPUQuota

// What a plugin sets and withdraws in one call leaves nothing that a later plugin could conflict with.
func TestWithdrawnInOneCall(t *testing.T) {
	device := func(permissions string) function {
		return func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
			return errors.Join(
				adj.AddElement(abi.Container, abi.ContainerDevices, string(abi.AppendEntries(nil, func(yield func(k, v string) bool) {
					_ = yield("container_path", "/dev/a") && yield("host_path", "/dev/a") && yield("permissions", permissions)
				}))),
				adj.SetEntry(abi.Container, abi.ContainerEnv, "A", permissions),
				adj.SetInt64(abi.Container, quota, 20_000))
		}
	}
	withdraw := both(withdrawing(abi.Container, abi.ContainerDevices, "/dev/a"),
		both(withdrawing(abi.Container, abi.ContainerEnv, "A"), withdrawing(abi.Container, quota, "")))
	n := newNode(t, []plugin.Member{
		named("10-first", abi.PreCreateContainer, both(device("r"), withdraw)),
		named("20-second", abi.PreCreateContainer, both(withdraw, device("rw"))),
	})
	n.runPod()
	devices := decodeSent[runtimeapi.CreateContainerRequest](n).Config.Devices
	if len(devices) == 0 || devices[len(devices)-1].Permissions != "rw" {
		t.Errorf("the runtime got the devices %v", devices)
	}
	n.hasField("cpu_quota", "20-second", "20000", "50000", "20000")
}

// A resource that a plugin holds goes back to kubelet's value with the update in which the plugin withdraws it: with kubelet's
// own, if that names it, and else with one of the proxy's. A later plugin of the same event may set it.
func TestWithdrawnResource(t *testing.T) {
	for name, test := range map[string]struct {
		kubelet *runtimeapi.LinuxContainerResources
		then    function
		sent    int64   // with kubelet's update
		own     []int64 // with updates of the proxy's own
		field   []string
	}{
		"kubelet repeats its value": {&runtimeapi.LinuxContainerResources{CpuQuota: 50_000}, nil, 50_000, nil, []string{"", "", "", ""}},
		"kubelet names another":     {&runtimeapi.LinuxContainerResources{CpuShares: 7}, nil, 0, []int64{50_000}, []string{"", "", "", ""}},
		"a later plugin sets it": {&runtimeapi.LinuxContainerResources{CpuQuota: 50_000}, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
			return adj.SetInt64(abi.Container, quota, 30_000)
		}, 30_000, nil, []string{"20-later", "30000", "50000", "30000"}},
	} {
		t.Run(name, func(t *testing.T) {
			fs, _, _ := scratchGroup(t)
			n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, twice)}, withCgroups(fs))
			n.runPod()
			n.begin()
			members := []plugin.Member{on(abi.PreUpdateContainerResources, withdrawing(abi.Container, quota, ""))}
			if test.then != nil {
				members = append(members, named("20-later", abi.PreUpdateContainerResources, test.then))
			}
			m := n.with(withCgroups(fs), members...)
			m.must(m.updateC1(test.kubelet))
			if got := decodeSent[runtimeapi.UpdateContainerResourcesRequest](m).GetLinux().GetCpuQuota(); got != test.sent {
				t.Errorf("kubelet's update went on with the quota %d", got)
			}
			m.hasField("cpu_quota", test.field...)
			var own []int64
			for _, u := range m.backend.updates {
				own = append(own, u.GetLinux().GetCpuQuota())
			}
			if diff := cmp.Diff(test.own, own); diff != "" {
				t.Errorf("quotas of the proxy's own updates (-want +got):\n%s", diff)
			}
			m.hasField("cpuset_cpus", "10-test", "1", "0-1", "1") // which it has not withdrawn
		})
	}
}

// An update that fails withdraws nothing.
func TestWithdrawnInAnUpdateThatFails(t *testing.T) {
	fs, _, _ := scratchGroup(t)
	n := newNode(t, []plugin.Member{
		on(abi.PreCreateContainer, twice),
		named("20-same", abi.PreCreateContainer, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
			return adj.SetInt64(abi.Container, quota, 100_000)
		}),
	}, withCgroups(fs))
	n.runPod()
	n.begin()
	m := n.with(withCgroups(fs), on(abi.PreUpdateContainerResources, withdrawing(abi.Container, quota, "")))
	m.fails = errors.New("no")
	if m.updateC1(&runtimeapi.LinuxContainerResources{CpuQuota: 50_000}) == nil {
		t.Fatal("the update did not fail")
	}
	m.hasField("cpu_quota", "10-test", "100000", "50000", "100000")
	m.fails = nil
	m.must(m.updateC1(&runtimeapi.LinuxContainerResources{CpuQuota: 50_000})) // the second plugin's is the same
	m.hasField("cpu_quota", "20-same", "100000", "50000", "100000")
	if len(m.backend.updates) != 0 {
		t.Errorf("the proxy has sent %v", m.backend.updates)
	}
}

// A cgroup file that a plugin holds goes back to what it was, whether the plugin withdraws it by the container's number or by a
// handle. A plugin that wants the file, too, gets it.
func TestWithdrawnFile(t *testing.T) {
	byHandle := func(_ context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
		o, errno := ev.Find(abi.ByContainerID, "c1", nil)
		if errno != abi.OK {
			return errno
		}
		_, err := adj.Withdraw(o, 0, "memory.high")
		return err
	}
	later := write(abi.Container, "memory.high", "8192000")
	for name, test := range map[string]struct {
		members []plugin.Member
		want    string
	}{
		"by number":                 {[]plugin.Member{on(abi.PostUpdateContainerResources, withdrawing(abi.Container, 0, "memory.high"))}, "max"},
		"by handle":                 {[]plugin.Member{on(abi.PostUpdateContainerResources, byHandle)}, "max"},
		"before the call":           {[]plugin.Member{on(abi.PreUpdateContainerResources, withdrawing(abi.Container, 0, "memory.high"))}, "max"},
		"another file":              {[]plugin.Member{on(abi.PostUpdateContainerResources, withdrawing(abi.Container, 0, "memory.low"))}, "4096000"},
		"another plugin's":          {[]plugin.Member{named("20-other", abi.PostUpdateContainerResources, withdrawing(abi.Container, 0, "memory.high"))}, "4096000"},
		"and set again":             {[]plugin.Member{on(abi.PostUpdateContainerResources, both(withdrawing(abi.Container, 0, "memory.high"), write(abi.Container, "memory.high", "12288000")))}, "12288000"},
		"and set by a later plugin": {[]plugin.Member{on(abi.PostUpdateContainerResources, byHandle), named("20-later", abi.PostUpdateContainerResources, later)}, "8192000"},
	} {
		t.Run(name, func(t *testing.T) {
			fs, _, dir := scratchGroup(t)
			n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, write(abi.Container, "memory.high", "4096000"))}, withCgroups(fs))
			n.runPod()
			n.must(n.startC1())
			if got := content(t, dir, "memory.high"); got != "4096000" {
				t.Fatalf("memory.high is %s", got)
			}
			m := n.with(withCgroups(fs), test.members...)
			m.must(m.updateC1(&runtimeapi.LinuxContainerResources{CpuShares: 7}))
			if got := content(t, dir, "memory.high"); got != test.want {
				t.Errorf("memory.high is %s, want %s; the log:\n%s", got, test.want, m.log)
			}
		})
	}
}

// A Tick withdraws by handles; what the plugin does not hold is no change.
func TestWithdrawnInATick(t *testing.T) {
	n := newNode(t, nil)
	n.runPods(2)
	set, withdraw := &visitor{enough: 100}, 0
	m := on(abi.Tick, set.call)
	intercept.Tick(t.Context(), n.options, m, "")
	m = on(abi.Tick, func(_ context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
		all, _, _ := ev.Containers(abi.Node, nil)
		for _, c := range all[1:] {
			for _, f := range []abi.Field{abi.CPUQuota, abi.CPUPeriod} {
				if _, err := adj.Withdraw(c, abi.Resources+f, ""); err != nil {
					return err
				}
			}
		}
		withdraw = len(adj.Changes())
		return nil
	})
	intercept.Tick(t.Context(), n.options, m, "")
	if withdraw != 3 {
		t.Errorf("%d changes, want one for each container but the first", withdraw)
	}
	for c, want := range map[string]string{"p0-c0": "2000020", "p0-c1": "20", "p1-c0": "20", "p1-c1": "20"} {
		if got := n.tickedField(c, "cpu_quota") + n.tickedField(c, "cpu_shares"); got != want {
			t.Errorf("%s is to have %q, want %q", c, got, want)
		}
	}
	if v := n.options.Ledger.Record(enforce.ID{Pod: "u1", Container: "p1-c1"}).Values()[enforce.Field("cpu_quota")]; v.Last == "20000" {
		t.Errorf("the runtime still has the quota: %+v", v)
	}
}
