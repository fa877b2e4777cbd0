package intercept_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

func withExempt(namespaces ...string) option {
	return func(o *intercept.Options) { o.ExemptNamespaces = namespaces }
}

// refusal is a way in which a plugin keeps a call from going on.
type refusal struct {
	name   string
	policy plugin.FailurePolicy
	do     function
	calls  int  // how many make the breaker open; 0: the plugin has none
	follow bool // it is called after the other plugin, else before it
}

var waysToRefuse = []refusal{
	{"error", plugin.Fail, func(context.Context, plugin.Event, *plugin.Adjustment) error { return errors.New("broken") }, 0, false},
	{"timeout", plugin.Fail, func(ctx context.Context, _ plugin.Event, _ *plugin.Adjustment) error { <-ctx.Done(); return ctx.Err() }, 0, false},
	{"trap", plugin.Fail, func(context.Context, plugin.Event, *plugin.Adjustment) error { panic("unreachable") }, 0, false},
	{"conflict", plugin.Fail, func(context.Context, plugin.Event, *plugin.Adjustment) error { return abi.Conflict }, 0, true},
	{"open breaker", plugin.Fail, func(context.Context, plugin.Event, *plugin.Adjustment) error { return errors.New("broken") }, 5, false},
	{"not loaded", plugin.Fail, func(context.Context, plugin.Event, *plugin.Adjustment) error {
		return fmt.Errorf("%w: it is being loaded", plugin.ErrNotLoaded)
	}, 0, false},
	{"hook server away", plugin.Fail, func(context.Context, plugin.Event, *plugin.Adjustment) error { return plugin.ErrAway }, 0, false},
	{"refusal under Fail", plugin.Fail, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error { return adj.Reject(0, "no") }, 0, false},
	{"refusal under Ignore", plugin.Ignore, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error { return adj.Reject(0, "no") }, 0, false},
	{"refusal by its answer", plugin.Ignore, func(context.Context, plugin.Event, *plugin.Adjustment) error {
		return &plugin.Rejection{Code: abi.RejectPermissionDenied, Reason: "no"}
	}, 0, true},
}

// changing wants a value of all that its hook lets it change, and then does what else it does.
func changing(value string, shares int64, then function) function {
	return func(ctx context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
		for _, o := range []abi.Object{abi.Pod, abi.Container} {
			_ = adj.SetInt64(o, abi.Resources+abi.CPUShares, shares)
		}
		_ = adj.SetEntry(abi.Pod, abi.PodAnnotations, "example.com/"+value, value)
		_ = adj.SetEntry(abi.Container, abi.ContainerAnnotations, "example.com/"+value, value)
		_ = adj.SetEntry(abi.Container, abi.ContainerEnv, strings.ToUpper(value), value)
		return then(ctx, ev, adj)
	}
}

// members are the plugin that refuses, and one that changes what it can. A conflict is one with that.
func (r refusal) members(hook abi.Hook) (bad, good plugin.Member) {
	good = on(hook, changing("good", 222, nothing))
	bad = on(hook, changing("bad", 111, r.do))
	bad.ID, bad.Policy, bad.Timeout = "20-bad", r.policy, 20*time.Millisecond
	if r.name != "timeout" {
		bad.Timeout = time.Minute
	}
	if r.calls > 0 {
		bad.Breaker = plugin.NewBreaker(observe.Discard(), bad.ID, func() time.Time { return time.Unix(0, 0) })
	}
	return bad, good
}

// requestsOf are the calls with a hook that can refuse them, about pod1 and c1 of the pod's config.
func requestsOf(config *runtimeapi.PodSandboxConfig) map[abi.Hook]proto.Message {
	create := createRequest()
	create.SandboxConfig = config
	return map[abi.Hook]proto.Message{
		abi.PrePullImage:                 &runtimeapi.PullImageRequest{Image: &runtimeapi.ImageSpec{Image: "web:1"}, SandboxConfig: config},
		abi.PreRunPodSandbox:             &runtimeapi.RunPodSandboxRequest{Config: config, RuntimeHandler: "runc"},
		abi.PreCreateContainer:           create,
		abi.PreStartContainer:            &runtimeapi.StartContainerRequest{ContainerId: "c1"},
		abi.PreUpdateContainerResources:  &runtimeapi.UpdateContainerResourcesRequest{ContainerId: "c1", Linux: &runtimeapi.LinuxContainerResources{CpuQuota: 30_000}},
		abi.PreUpdatePodSandboxResources: &runtimeapi.UpdatePodSandboxResourcesRequest{PodSandboxId: "pod1", Resources: fullResources()},
		abi.PreExec:                      &runtimeapi.ExecRequest{ContainerId: "c1", Cmd: []string{"sh"}},
		abi.PreExecSync:                  &runtimeapi.ExecSyncRequest{ContainerId: "c1", Cmd: []string{"sh"}},
		abi.PreAttach:                    &runtimeapi.AttachRequest{ContainerId: "c1"},
		abi.PrePortForward:               &runtimeapi.PortForwardRequest{PodSandboxId: "pod1"},
		abi.PreCheckpointContainer:       &runtimeapi.CheckpointContainerRequest{ContainerId: "c1"},
		abi.PreCheckpointPod:             &runtimeapi.CheckpointPodRequest{PodSandboxId: "pod1"},
		abi.PreRestorePod:                &runtimeapi.RestorePodRequest{Config: config},
		abi.PreRemoveImage:               &runtimeapi.RemoveImageRequest{Image: &runtimeapi.ImageSpec{Image: "web:1"}},
	}
}

// neverKeptOut are the hooks that operations.md names.
var neverKeptOut = []abi.Hook{
	abi.PrePullImage, abi.PreRunPodSandbox, abi.PreCreateContainer, abi.PreStartContainer, abi.PreUpdateContainerResources, abi.PreUpdatePodSandboxResources,
}

// In an exempt namespace no way in which a plugin refuses a call, or fails, keeps a pod from running. The runtime
// gets what it would get without the plugin, and the log says so. In other namespaces, where the namespace is not
// known, and in other hooks, policy holds.
func TestExemptNamespaces(t *testing.T) {
	for _, info := range abi.Hooks {
		if info.Phase != abi.Before {
			continue
		}
		for _, r := range waysToRefuse {
			t.Run(info.Name+"/"+r.name, func(t *testing.T) {
				exempt := slices.Contains(neverKeptOut, info.Hook)
				r.test(t, info, "prod", exempt, withExempt("kube-system", "prod"))
				r.test(t, info, "prod", false, withExempt("kube-system"))
				r.test(t, info, "prod", false, withExempt())
				r.test(t, info, "", false, withExempt("kube-system", "prod"))
			})
		}
	}
}

func (r refusal) test(t *testing.T, info abi.HookInfo, namespace string, goesOn bool, exempt option) {
	t.Helper()
	config := podConfig()
	config.Metadata.Namespace = namespace
	bad, good := r.members(info.Hook)
	members := []plugin.Member{bad, good}
	if r.follow {
		members = []plugin.Member{good, bad}
	}
	want, _ := callOnce(t, config, info, 0, []plugin.Member{good}, exempt)
	n, err := callOnce(t, config, info, r.calls, members, exempt)
	lines := exempted(t, n)
	if !goesOn {
		if code := status.Code(err); code == codes.OK || n.sent != nil || len(lines) > 0 {
			t.Fatalf("namespace %q: answered %v, logged %v", namespace, err, lines)
		}
		return
	}
	if err != nil || n.sent == nil {
		t.Fatalf("namespace %q: answered %v", namespace, err)
	}
	if got, wanted := sent(t, n, info), sent(t, want, info); !proto.Equal(got, wanted) {
		t.Errorf("the runtime got\n%v\nand without the plugin\n%v", got, wanted)
	}
	if len(lines) != 1 || lines[0]["level"] != "WARN" || lines[0]["plugin"] != "20-bad" || lines[0]["hook"] != info.Name ||
		lines[0]["namespace"] != namespace || lines[0]["reason"] == nil {
		t.Errorf("logged %v, want one warning", lines)
	}
}

// callOnce makes the hook's call about a pod of this config, after the calls that make a breaker open.
func callOnce(t *testing.T, config *runtimeapi.PodSandboxConfig, info abi.HookInfo, before int, members []plugin.Member, exempt option) (*node, error) {
	t.Helper()
	create := createRequest()
	create.SandboxConfig = config
	n := newNode(t, members, exempt)
	bare := newNode(t, []plugin.Member{on(abi.PostRemoveImage, nothing)}, withStore(n))
	bare.runPodWith(config, create)
	req := requestsOf(config)[info.Hook]
	var err error
	for range before + 1 {
		n.log.Reset()
		_, err = n.call(t.Context(), info.Method, req, cri.MethodNamed(n.full(info.Method)).NewResponse())
	}
	n.must(n.queue.Drain(t.Context()))
	return n, err
}

func sent(t *testing.T, n *node, info abi.HookInfo) proto.Message {
	t.Helper()
	m := cri.MethodNamed(n.full(info.Method)).NewRequest()
	n.must(n.sent.Decode(m))
	return m
}

// exempted are the log's lines about calls that went on in exempt namespaces.
func exempted(t *testing.T, n *node) (lines []map[string]any) {
	t.Helper()
	for line := range strings.Lines(n.log.String()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(fmt.Sprint(fields["msg"]), "the namespace is exempt") {
			lines = append(lines, fields)
		}
	}
	return lines
}

// An image that is pulled for no pod, as crictl does it, is in no namespace.
func TestImageForNoPodIsNotExempt(t *testing.T) {
	bad, _ := waysToRefuse[0].members(abi.PrePullImage)
	n := newNode(t, []plugin.Member{bad}, withExempt("prod"))
	pull := &runtimeapi.PullImageRequest{Image: &runtimeapi.ImageSpec{Image: "web:1"}}
	if _, err := n.call(t.Context(), "PullImage", pull, nil); status.Code(err) != codes.Unavailable || n.sent != nil {
		t.Errorf("answered %v", err)
	}
}

// A file of a pod's cgroup that the kernel refuses keeps no pod of an exempt namespace from running, whatever the
// policy. As under Ignore, the value is written once the kernel takes it.
func TestFileOfAnExemptPod(t *testing.T) {
	const wish = "8192000"
	var events observe.Recorder
	fs, pod, _ := scratchGroup(t)
	m := on(abi.PreRunPodSandbox, write(abi.Pod, "memory.high", wish))
	m.Policy = plugin.Fail
	n := newNode(t, []plugin.Member{m}, withCgroups(fs), withObserver(&events), withExempt("prod"))
	err := refused(syscall.EINVAL, func() error {
		_, err := n.call(t.Context(), "RunPodSandbox", &runtimeapi.RunPodSandboxRequest{Config: podConfig()}, &runtimeapi.RunPodSandboxResponse{PodSandboxId: "pod1"})
		return err
	})
	n.must(err)
	all := events.Take()
	said := observe.All[*observe.CallExempted](all)
	if len(said) != 1 || said[0].Plugin != m.ID || said[0].Hook != abi.PreRunPodSandbox || said[0].Namespace != "prod" || !strings.Contains(said[0].Reason, "memory.high") {
		t.Errorf("said %+v", said)
	}
	if failed := observe.All[*observe.CgroupFileFailed](all); len(failed) != 1 {
		t.Errorf("failures %+v", failed)
	}
	if n.options.Scan(t.Context()); content(t, pod, "memory.high") != wish {
		t.Errorf("after a scan the file holds %q", content(t, pod, "memory.high"))
	}
}

// A container of which neither the store nor the runtime can tell, and a request that cannot be decoded, may be of any
// namespace.
func TestCallOfAnUnknownPodIsNotExempt(t *testing.T) {
	bad, _ := waysToRefuse[0].members(abi.PreStartContainer)
	n := newNode(t, []plugin.Member{bad}, withExempt("prod", "kube-system"))
	n.backend.down = true
	start := &runtimeapi.StartContainerRequest{ContainerId: "c9"}
	if _, err := n.call(t.Context(), "StartContainer", start, nil); status.Code(err) != codes.Unavailable || n.sent != nil {
		t.Errorf("an unknown container: answered %v", err)
	}
	bytes, err := cri.NewFrame(wrapperspb.Bytes([]byte{0xff})) // where the request has text
	n.must(err)
	if err := n.callFrame(t.Context(), "StartContainer", bytes, nil); status.Code(err) != codes.Unavailable || n.sent != nil {
		t.Errorf("a request that cannot be decoded: answered %v", err)
	}
}

// A request that cannot be decoded passes once a bypass has begun, also the one that was on its way then.
func TestUndecodableRequestPassesInABypass(t *testing.T) {
	bad, _ := waysToRefuse[0].members(abi.PreStartContainer)
	cut := intercept.NewCut()
	n := newNode(t, []plugin.Member{bad}, func(o *intercept.Options) { o.Cut = cut })
	bytes, err := cri.NewFrame(wrapperspb.Bytes([]byte{0xff})) // where the request has text
	n.must(err)
	answer := new(runtimeapi.StartContainerResponse)
	if err := n.callFrame(t.Context(), "StartContainer", bytes, answer); status.Code(err) != codes.Unavailable {
		t.Errorf("before the bypass: answered %v", err)
	}
	cut.Begin()
	if err := n.callFrame(t.Context(), "StartContainer", bytes, answer); err != nil || n.sent != bytes {
		t.Errorf("in the bypass: answered %v, sent %v", err, n.sent)
	}
}
