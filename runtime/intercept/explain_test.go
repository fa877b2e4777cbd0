package intercept_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/explain"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// explained is what is shown of a value of container c1, in the form "owner: kubelet → wishes →
// sent → kernel, state".
func (n *node) explained(kind explain.Kind, name string) string {
	n.t.Helper()
	n.must(n.queue.Drain(n.t.Context()))
	r, err := n.options.Explain(n.t.Context(), "prod/web/app")
	n.must(err)
	if len(r.Pods) != 1 || len(r.Pods[0].Containers) != 1 || r.Pods[0].Containers[0].ID != "c1" {
		n.t.Fatalf("the report is %+v", r)
	}
	for _, v := range r.Pods[0].Containers[0].Values {
		if v.Kind == kind && v.Name == name {
			return valueText(&v)
		}
	}
	return ""
}

func valueText(v *explain.Value) string {
	show := func(s *string) string {
		if s == nil {
			return "-"
		}
		return *s
	}
	var wishes []string
	for _, w := range v.Wishes {
		wishes = append(wishes, w.Value+" by "+w.Plugin+" in "+w.Hook)
	}
	return strings.TrimSpace(v.Owner + ": " + show(v.Kubelet) + " → " + strings.Join(wishes, ", ") + " → " + show(v.Sent) + " → " + show(v.Kernel) + " " + string(v.State))
}

func (n *node) wantExplained(kind explain.Kind, name, want string) {
	n.t.Helper()
	if got := n.explained(kind, name); got != want {
		n.t.Errorf("%s %s is told as %q, want %q", kind, name, got, want)
	}
}

// Every field that kubelet has set is shown, with the plugin's value if there is one.
func TestExplainFields(t *testing.T) {
	fs, _, dir := scratchGroup(t)
	n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, twice)}, withCgroups(fs))
	n.runPod()
	n.wantExplained(explain.Field, "cpu_quota", "10-test: 50000 → 100000 by 10-test in PreCreateContainer → 100000 → -")
	n.begin()
	n.wantExplained(explain.Field, "cpu_quota", "10-test: 50000 → 100000 by 10-test in PreCreateContainer → 100000 → 50000 drift") // the runtime has written nothing
	put(t, dir, "cpu.max", "100000 100000")
	put(t, dir, "cpu.weight", "20")
	n.wantExplained(explain.Field, "cpu_quota", "10-test: 50000 → 100000 by 10-test in PreCreateContainer → 100000 → 100000")
	n.wantExplained(explain.Field, "cpu_shares", "kubelet: 512 →  → 512 → weight 20")
	n.wantExplained(explain.Field, "hugepage_limits[2MB]", "kubelet: 4194304 →  → 4194304 → -")
	n.wantExplained(explain.Field, "unified[memory.high]", "10-test: 100 → 200 by 10-test in PreCreateContainer → 200 → max drift")
}

// A value that systemd or the kernel shows in another form is no drift.
func TestExplainComparesAsTheKernelShows(t *testing.T) {
	var quota, memory int64 = 12345, 1<<27 + 1
	fs, _, dir := scratchGroup(t)
	n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		return errors.Join(adj.SetInt64(abi.Container, abi.Resources+abi.CPUQuota, quota), adj.SetInt64(abi.Container, abi.Resources+abi.MemoryLimit, memory),
			adj.SetText(abi.Container, abi.Resources+abi.CpusetCpus, "0,1"), adj.SetEntry(abi.Container, abi.Resources+abi.Unified, "memory.high", "8193"))
	})}, withCgroups(fs))
	n.runPod()
	n.begin()
	state := func(name string) string {
		told := n.explained(explain.Field, name)
		return told[strings.LastIndex(told, " → ")+len(" → "):]
	}
	for _, c := range []struct{ file, shown, field, want string }{
		{"cpu.max", "13000 100000", "cpu_quota", "13000"},
		{"cpu.max", "14000 100000", "cpu_quota", "14000 drift"},
		{"cpu.max", "12000 100000", "cpu_quota", "12000 drift"},
		{"cpu.max", "max 100000", "cpu_quota", "-1 drift"},
		{"memory.max", "134217728", "memory_limit_in_bytes", "134217728"},
		{"memory.max", "134213632", "memory_limit_in_bytes", "134213632 drift"},
		{"cpuset.cpus", "0-1", "cpuset_cpus", "0-1"},
		{"cpuset.cpus", "0", "cpuset_cpus", "0 drift"},
		{"memory.high", "8192", "unified[memory.high]", "8192"},
		{"memory.high", "4096", "unified[memory.high]", "4096 drift"},
	} {
		put(t, dir, c.file, c.shown)
		if got := state(c.field); got != c.want {
			t.Errorf("%s %s: %s is told as %q, want %q", c.file, c.shown, c.field, got, c.want)
		}
	}
}

// What CRI cannot clear is shown until the container goes; what an update failed to reset,
// too.
func TestExplainFieldsOfARemovedPlugin(t *testing.T) {
	fs, _, _ := scratchGroup(t)
	n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, func(ctx context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
		return errors.Join(twice(ctx, ev, adj), adj.SetEntry(abi.Container, abi.Resources+abi.Unified, "memory.low", "4096"))
	})}, withCgroups(fs))
	n.runPod()
	n.begin()
	n.must(n.queue.Drain(t.Context()))
	n.backend.refuses = errDown
	n.withdraw("10-test")
	n.wantExplained(explain.Field, "unified[memory.low]", "kubelet:  →  → 4096 → - stays")
	n.wantExplained(explain.Field, "unified[memory.high]", "kubelet: 100 →  → 200 → max failed")
	n.wantExplained(explain.Field, "cpu_quota", "kubelet: 50000 →  → 100000 → 50000 failed")
}

// Files are told of before the container starts, while they hold, when something else has
// overwritten them, once and again, and when the plugin is gone.
func TestExplainFiles(t *testing.T) {
	fs, _, dir := scratchGroup(t)
	n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, write(abi.Container, "memory.high", "4096000"))}, withCgroups(fs))
	n.runPod()
	const wish = "10-test: max → 4096000 by 10-test in PreCreateContainer → - → "
	n.wantExplained(explain.File, "memory.high", "10-test: - → 4096000 by 10-test in PreCreateContainer → - → - waiting")
	n.begin()
	n.wantExplained(explain.File, "memory.high", wish+"4096000")
	put(t, dir, "memory.high", "777")
	n.wantExplained(explain.File, "memory.high", wish+"777 drift")
	n.must(n.updateC1(&runtimeapi.LinuxContainerResources{CpuShares: 7}))
	for range 8 {
		put(t, dir, "memory.high", "777")
		n.options.Scan(t.Context())
	}
	n.wantExplained(explain.File, "memory.high", "10-test: 777 → 4096000 by 10-test in PreCreateContainer → - → 777 fight")
	r, err := n.options.Explain(t.Context(), "web")
	n.must(err)
	values := r.Pods[0].Containers[0].Values
	v := values[len(values)-1]
	if !strings.Contains(v.Detail, "UpdateContainerResources") || v.Repairs != 6 || v.Found != "777" {
		t.Errorf("the fight is told as %+v", v)
	}
	if since := v.Wishes[0].Since; since.IsZero() || !since.Equal(n.options.Ledger.Record(enforce.ID{Pod: "u1", Container: "c1"}).Values()[enforce.File("memory.high")].Wishes[0].At) {
		t.Errorf("since is %v", since)
	}
	n.withdraw("10-test")
	n.wantExplained(explain.File, "memory.high", "")
}

// A limit of a pod that is lifted has the plugin for whose container it is. A fight over it names the call before.
func TestExplainPodLimit(t *testing.T) {
	n, _ := raising(t)
	told := func() string {
		r, err := n.options.Explain(t.Context(), "prod/web")
		n.must(err)
		v := r.Pods[0].Values[0]
		return v.Name + ", " + valueText(&v) + ", " + v.Detail
	}
	const wish = "cpu.max, 10-doubling: 50000 100000 → max 100000 by 10-doubling in PreCreateContainer → - → "
	if got := told(); got != wish+"max 100000, " {
		t.Errorf("it is told as %q", got)
	}
	another, pod := ranPod(t)
	n = another
	for range 8 {
		put(t, pod, "memory.high", "777")
		n.options.Scan(t.Context())
	}
	if got := told(); !strings.HasSuffix(got, "; the last call or reload before it was RunPodSandbox") {
		t.Errorf("the fight is told as %q", got)
	}
}

// ranPod is a node with a pod whose memory.high a plugin has set.
func ranPod(t *testing.T) (n *node, pod string) {
	fs, pod, _ := scratchGroup(t)
	n = newNode(t, []plugin.Member{on(abi.PreRunPodSandbox, write(abi.Pod, "memory.high", "8192000"))}, withCgroups(fs))
	_, err := n.call(t.Context(), "RunPodSandbox", &runtimeapi.RunPodSandboxRequest{Config: podConfig()}, &runtimeapi.RunPodSandboxResponse{PodSandboxId: "pod1"})
	n.must(err)
	return n, pod
}

// A write that the kernel refuses is reported with its reason.
func TestExplainFileThatFails(t *testing.T) {
	fs, _, _ := scratchGroup(t)
	n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, write(abi.Container, "cpu.bvt_warp_ns", "2"))}, withCgroups(fs))
	n.runPod()
	n.begin()
	n.wantExplained(explain.File, "cpu.bvt_warp_ns", "10-test: - → 2 by 10-test in PreCreateContainer → - → - failed")
}

// A container that has ended by itself is told as exited, and waits for nothing. So is a pod that is
// not ready, unless its cgroup is there, whose values are shown.
func TestExplainWhatHasEnded(t *testing.T) {
	n, _, dir := running(t)
	n.backend.containers = map[string]*runtimeapi.ContainerStatusResponse{
		"c1": {Status: &runtimeapi.ContainerStatus{Id: "c1", State: runtimeapi.ContainerState_CONTAINER_EXITED}},
	}
	n.must(os.RemoveAll(dir))
	n.wantExplained(explain.File, "memory.high", "10-test: max → 4096000 by 10-test in PreCreateContainer → - → -")
	n.wantExplained(explain.Field, "cpu_quota", "kubelet: 50000 →  → 50000 → -")
	r, err := n.options.Explain(t.Context(), "web")
	n.must(err)
	if c := r.Pods[0].Containers[0]; c.State != "exited" || c.Unread != "" || c.Cgroup != "" {
		t.Errorf("the container is %+v", c.Object)
	}
	n, pod := ranPod(t)
	_, err = n.call(t.Context(), "StopPodSandbox", &runtimeapi.StopPodSandboxRequest{PodSandboxId: "pod1"}, &runtimeapi.StopPodSandboxResponse{})
	n.must(err)
	for _, kernel := range []string{"8192000", "-"} {
		if kernel == "-" {
			n.must(os.RemoveAll(pod))
		}
		r, err := n.options.Explain(t.Context(), "web")
		n.must(err)
		p := r.Pods[0]
		if got, want := valueText(&p.Values[0]), "10-test: max → 8192000 by 10-test in PreRunPodSandbox → - → "+kernel; got != want || p.Unread != "" || p.State != "notready" {
			t.Errorf("the pod is %+v", p.Object)
		}
	}
}

// So is a container that the runtime has dropped, by a call that did not pass here.
func TestExplainWhatTheRuntimeHasDropped(t *testing.T) {
	n, _, dir := running(t)
	n.must(os.RemoveAll(dir))
	r, err := n.options.Explain(t.Context(), "web")
	n.must(err)
	if c := r.Pods[0].Containers[0]; c.State != "exited" || c.Running || c.Unread != "" || c.Cgroup != "" {
		t.Errorf("the container is %+v", c.Object)
	}
}

// Where the kernel cannot be read, the report says why.
func TestExplainWithoutCgroups(t *testing.T) {
	n := newNode(t, nil)
	n.runPod()
	n.begin()
	r, err := n.options.Explain(t.Context(), "web")
	n.must(err)
	if c := r.Pods[0].Containers[0]; c.Unread != "cgroup-root is empty" || c.Cgroup != "" || c.State != "running" {
		t.Errorf("the container is %+v", c)
	}
}

// Of several sandboxes of a pod and attempts of a container the newest is shown, and two pods
// of one name are both.
func TestExplainNewest(t *testing.T) {
	n := newNode(t, nil)
	n.runPod()
	run := func(id, uid string, attempt uint32) {
		config := podConfig()
		config.Metadata.Uid, config.Metadata.Attempt = uid, attempt
		_, err := n.call(t.Context(), "RunPodSandbox", &runtimeapi.RunPodSandboxRequest{Config: config}, &runtimeapi.RunPodSandboxResponse{PodSandboxId: id})
		n.must(err)
	}
	run("pod2", "u1", 4)
	run("pod3", "u2", 0)
	for attempt, id := range []string{"c2", "c3"} {
		req := createRequest()
		req.PodSandboxId, req.Config.Metadata.Attempt = "pod2", uint32(attempt)
		_, err := n.call(t.Context(), "CreateContainer", req, &runtimeapi.CreateContainerResponse{ContainerId: id})
		n.must(err)
	}
	r, err := n.options.Explain(t.Context(), "prod/web")
	n.must(err)
	if len(r.Pods) != 2 || r.Pods[0].ID != "pod2" || r.Pods[1].ID != "pod3" || len(r.Pods[0].Containers) != 1 || r.Pods[0].Containers[0].ID != "c3" {
		t.Errorf("the report is %+v", r)
	}
}

// No environment variable, argument or label of a container is in a report.
func TestExplainTellsNoSecret(t *testing.T) {
	n := newNode(t, nil)
	n.runPod()
	r, err := n.options.Explain(t.Context(), "web")
	n.must(err)
	text, err := json.Marshal(r)
	n.must(err)
	for _, private := range []string{"second", "run it", "gold"} {
		if strings.Contains(string(text), private) {
			t.Errorf("the report has %q: %s", private, text)
		}
	}
}

// TestExplainUnownedValues: neither the owner nor kubelet's value is known of what a container had before the record
// of its pod was ignored. A value that a plugin asks for later has its owner, and so has a later container.
func TestExplainUnownedValues(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	n, _, group := running(t, withLedger(openLedger(t, dir)))
	n.must(os.WriteFile(filepath.Join(dir, "journal"), []byte(`{"version":2,"pod":"u1"}`+"\n"), 0o600))
	m := newNode(t, nil, withLedger(openLedger(t, dir)), withCgroups(n.options.Cgroups))
	m.store.Observe(nil, &runtimeapi.RunPodSandboxRequest{Config: podConfig()}, &runtimeapi.RunPodSandboxResponse{PodSandboxId: "pod1"})
	for id, sent := range map[string]*runtimeapi.PodSandboxConfig{"c1": nil, "c2": podConfig()} {
		r := createRequest()
		if r.SandboxConfig = sent; sent != nil {
			r.Config.Metadata.Name = "later"
		}
		m.store.Observe(nil, r, &runtimeapi.CreateContainerResponse{ContainerId: id})
		m.store.Observe(nil, &runtimeapi.StartContainerRequest{ContainerId: id}, &runtimeapi.StartContainerResponse{})
	}
	m.wantExplained(explain.Field, "cpu_shares", "unknown: - →  → 512 → -")
	m.wantExplained(explain.Field, "unified[memory.high]", "unknown: - →  → 100 → 4096000 drift")
	m.wantExplained(explain.File, "cpu.idle", "unknown: - →  → - → 1")
	m.wantExplained(explain.File, "cpu.max.burst", "unknown: - →  → - → 0")
	m.wantExplained(explain.File, "memory.high", "") // it is in the field
	m.options.Ledger.Record(enforce.ID{Pod: "u1", Container: "c1"}).Ask(enforce.Asked{Target: enforce.File("cpu.idle"), Wish: enforce.Wish{Plugin: "10-test", Hook: abi.Synchronize, Value: "1"}})
	m.wantExplained(explain.File, "cpu.idle", "10-test: - → 1 by 10-test in Synchronize → - → 1")
	put(t, group, "cpu.max.burst", "7")
	m.wantExplained(explain.File, "cpu.max.burst", "unknown: - →  → - → 7")

	r, err := m.options.Explain(t.Context(), "prod/web")
	m.must(err)
	if want := "a record in state-dir was ignored: line 1: its version is 2, and this version of wasmproxy reads 1"; r.Pods[0].Unowned != want {
		t.Errorf("the reason is %q, want %q", r.Pods[0].Unowned, want)
	}
	files := map[string]string{}
	for _, v := range r.Pods[0].Values {
		files[v.Name] = v.Owner
	}
	if files["cpu.idle"] != explain.Unknown || files["cpu.max"] != "" {
		t.Errorf("the owners of the pod's files are %v", files)
	}
	for _, v := range r.Pods[0].Containers[1].Values {
		if v.Owner != explain.Kubelet || v.Kubelet == nil {
			t.Errorf("the later container has %+v", v)
		}
	}
	if r.Diff(); len(r.Pods[0].Containers[0].Values) == 0 || len(r.Pods[0].Containers[1].Values) > 0 {
		t.Errorf("with --diff the values are %+v", r.Pods[0].Containers)
	}
}
