package intercept_test

import (
	"context"
	"slices"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// A plugin matched to one runtime handler is asked about its pods and their
// containers only, and reads the handler and the overhead of their RuntimeClass;
// what counts is the handler that an earlier plugin chose.
func TestRuntimeClass(t *testing.T) {
	const hooks = 1<<abi.PreRunPodSandbox | 1<<abi.PostRunPodSandbox | 1<<abi.PreCreateContainer | 1<<abi.PreStartContainer
	var told []string
	matched := on(0, func(_ context.Context, ev plugin.Event, _ *plugin.Adjustment) error {
		name, _ := ev.Text(abi.Pod, abi.PodName)
		handler, _ := ev.Text(abi.Pod, abi.PodRuntimeHandler)
		overhead, _ := ev.Int64(abi.Pod, abi.Overhead+abi.MemoryLimit)
		told = append(told, ev.Hook().String()+" "+name+" "+handler)
		if overhead != 1<<20 {
			t.Errorf("%v: the overhead is %d", ev.Hook(), overhead)
		}
		return nil
	})
	matched.ID, matched.Hooks = "20-kata", hooks
	matched.Match = plugin.Matches{}.And(hooks, abi.Match{RuntimeHandlers: []string{"kata"}})
	chooses := on(abi.PreRunPodSandbox, func(_ context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
		if name, _ := ev.Text(abi.Pod, abi.PodName); name == "chosen" {
			return adj.SetText(abi.Pod, abi.PodRuntimeHandler, "kata")
		}
		return nil
	})
	n := newNode(t, []plugin.Member{chooses, matched})
	for name, handler := range map[string]string{"plain": "runc", "sandboxed": "kata", "chosen": "runc"} {
		n.runClass(name, handler)
	}
	var want []string
	for _, name := range []string{"sandboxed", "chosen"} {
		for _, info := range abi.Hooks {
			if matched.Hooks.Has(info.Hook) {
				want = append(want, info.Name+" "+name+" kata")
			}
		}
		if record, _ := n.store.Pod(name); record.RuntimeHandler != "kata" {
			t.Errorf("the store has handler %q of %s", record.RuntimeHandler, name)
		}
	}
	slices.Sort(want)
	slices.Sort(told)
	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

// runClass runs a pod of a RuntimeClass with this handler, with a container.
func (n *node) runClass(name, handler string) {
	config := &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: name, Uid: name},
		Linux:    &runtimeapi.LinuxPodSandboxConfig{Overhead: &runtimeapi.LinuxContainerResources{MemoryLimitInBytes: 1 << 20}},
	}
	_, err := n.call(n.t.Context(), "RunPodSandbox", &runtimeapi.RunPodSandboxRequest{Config: config, RuntimeHandler: handler}, &runtimeapi.RunPodSandboxResponse{PodSandboxId: name})
	n.must(err)
	n.must(n.queue.Drain(n.t.Context()))
	_, err = n.call(n.t.Context(), "CreateContainer", &runtimeapi.CreateContainerRequest{PodSandboxId: name, SandboxConfig: config, Config: &runtimeapi.ContainerConfig{}},
		&runtimeapi.CreateContainerResponse{ContainerId: "c-" + name})
	n.must(err)
	_, err = n.call(n.t.Context(), "StartContainer", &runtimeapi.StartContainerRequest{ContainerId: "c-" + name}, &runtimeapi.StartContainerResponse{})
	n.must(err)
}
