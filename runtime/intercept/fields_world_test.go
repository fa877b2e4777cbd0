package intercept_test

import (
	"context"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// fieldWorld is a node with one container, whose runtime knows a few fields of each resource, and
// what everybody wants of them. Fields have the names and values of the ledger; one without a value
// is in no map.
type fieldWorld struct {
	*node
	t       *testing.T
	state   string
	ask     map[string]map[string]string // the next wishes of each plugin
	runtime map[string]string
	model   map[string]*wantedField
}

type wantedField struct {
	kubelet, wish string
	owner         string // "" if no plugin wants it
	left          string // of a plugin that is gone, where CRI cannot bring back kubelet's value; "" if there is none
}

// setFields are what plugins set: CRI can bring back the numbers, the cpuset if kubelet has set one, and
// no entry of unified.
var setFields = []string{"cpu_quota", "cpu_shares", "memory_limit_in_bytes", "unified[memory.high]", "cpuset_cpus"}

// v2 is a node whose runtime takes entries of unified.
type v2 struct{}

func (v2) Version() int { return 2 }

// valueOf is one of few, so that kubelet often wants what a plugin does.
func valueOf(field string, r *rand.Rand) string {
	n := r.IntN(4)
	if field == "cpuset_cpus" {
		return []string{"0", "1", "0-1", "2-3"}[n]
	}
	return strconv.Itoa(40_000 + 4096*n)
}

func set(adj *plugin.Adjustment, field, value string) error {
	n, _ := strconv.ParseInt(value, 10, 64)
	switch field {
	case "cpu_quota":
		return adj.SetInt64(abi.Container, abi.Resources+abi.CPUQuota, n)
	case "cpu_shares":
		return adj.SetInt64(abi.Container, abi.Resources+abi.CPUShares, n)
	case "memory_limit_in_bytes":
		return adj.SetInt64(abi.Container, abi.Resources+abi.MemoryLimit, n)
	case "cpuset_cpus":
		return adj.SetText(abi.Container, abi.Resources+abi.CpusetCpus, value)
	}
	return adj.SetEntry(abi.Container, abi.Resources+abi.Unified, "memory.high", value)
}

func request(values map[string]string) *runtimeapi.LinuxContainerResources {
	n := func(field string) int64 { n, _ := strconv.ParseInt(values[field], 10, 64); return n }
	r := &runtimeapi.LinuxContainerResources{
		CpuQuota: n("cpu_quota"), CpuShares: n("cpu_shares"), MemoryLimitInBytes: n("memory_limit_in_bytes"), CpusetCpus: values["cpuset_cpus"],
	}
	if high, ok := values["unified[memory.high]"]; ok {
		r.Unified = map[string]string{"memory.high": high}
	}
	return r
}

// apply is what runtimes do with an update: what it does not name stays.
func (w *fieldWorld) apply(r *runtimeapi.LinuxContainerResources) {
	for f, n := range map[string]int64{"cpu_quota": r.GetCpuQuota(), "cpu_shares": r.GetCpuShares(), "memory_limit_in_bytes": r.GetMemoryLimitInBytes()} {
		if n != 0 {
			w.runtime[f] = strconv.FormatInt(n, 10)
		}
	}
	if cpus := r.GetCpusetCpus(); cpus != "" {
		w.runtime["cpuset_cpus"] = cpus
	}
	for key, value := range r.GetUnified() {
		w.runtime["unified["+key+"]"] = value
	}
}

// newFieldWorld has a container for which kubelet asks for a value of every field, or of numbers
// alone, as it does without the CPU manager and the feature gate MemoryQoS.
func newFieldWorld(t *testing.T, numbers bool) *fieldWorld {
	w := &fieldWorld{t: t, state: filepath.Join(t.TempDir(), "state"), ask: map[string]map[string]string{}, runtime: map[string]string{}, model: map[string]*wantedField{}}
	w.open(nil)
	w.runSandboxAndContainer(numbers)
	w.begin()
	for _, f := range setFields {
		w.model[f] = &wantedField{kubelet: w.runtime[f]}
	}
	return w
}

func (w *fieldWorld) runSandboxAndContainer(numbers bool) {
	_, err := w.call(w.t.Context(), "RunPodSandbox", &runtimeapi.RunPodSandboxRequest{Config: podConfig()}, &runtimeapi.RunPodSandboxResponse{PodSandboxId: "pod1"})
	w.must(err)
	req := createRequest()
	if numbers {
		req.Config.Linux.Resources.CpusetCpus, req.Config.Linux.Resources.Unified = "", nil
	}
	_, err = w.call(w.t.Context(), "CreateContainer", req, &runtimeapi.CreateContainerResponse{ContainerId: "c1"})
	w.must(err)
	w.apply(req.Config.Linux.Resources)
}

// open is a start of the proxy, with the store of the one before.
func (w *fieldWorld) open(before *node) {
	var members []plugin.Member
	for _, id := range propertyPlugins {
		m := on(abi.PreUpdateContainerResources, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
			for f, value := range w.ask[id] {
				_ = set(adj, f, value) // a conflict is an outcome
			}
			return nil
		})
		m.ID = id
		members = append(members, m)
	}
	opts := []option{func(o *intercept.Options) {
		o.Ledger, o.Chain = openLedger(w.t, w.state), plugin.NewChain(o.Observer, v2{}, members...)
	}}
	if before != nil {
		w.must(before.queue.Drain(w.t.Context()))
		opts = append(opts, func(o *intercept.Options) { o.Store = before.options.Store })
	}
	w.node = newNode(w.t, members, opts...)
}

// update is kubelet's, in which the plugins may ask.
func (w *fieldWorld) update(named map[string]string) {
	for f, value := range named {
		if m := w.model[f]; m.owner == "" { // it may be what a plugin has left
			m.left = ""
			if value != m.kubelet {
				m.left = value
			}
		}
	}
	w.must(w.updateC1(request(named)))
	w.apply(decodeSent[runtimeapi.UpdateContainerResourcesRequest](w.node).GetLinux())
	clear(w.ask)
	w.settle()
}

// settle has the runtime hear the updates of the proxy's own.
func (w *fieldWorld) settle() {
	w.must(w.queue.Drain(w.t.Context()))
	for _, u := range w.backend.updates {
		w.apply(u.GetLinux())
	}
	w.backend.updates = nil
}

// resize is one of a field by kubelet, which names the others as it wants them.
func (w *fieldWorld) resize(f, value string) {
	m, named := w.model[f], map[string]string{}
	for _, other := range setFields {
		named[other] = w.model[other].kubelet
	}
	named[f] = value
	maps.DeleteFunc(named, func(_, value string) bool { return value == "" })
	if value != m.kubelet {
		m.kubelet, m.owner = value, ""
	}
	w.update(named)
}
