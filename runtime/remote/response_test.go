package remote_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/remote"
	pb "github.com/wasmproxy/wasmproxy/runtime/remote/runtimehook"
)

// TestEchoSetsNothing holds for every hook, whatever the request holds.
func TestEchoSetsNothing(t *testing.T) {
	p := plugged(t, echoing())
	for _, hook := range all() {
		if changes, err := ask(t, p, newEvent(hook)); err != nil || len(changes) != 0 {
			t.Errorf("%s: %v, %v", hook, changes, err)
		}
	}
}

// asked writes changes as "target=value" or "-target".
func asked(changes []plugin.Change) []string {
	var all []string
	for _, c := range changes {
		switch c.Op {
		case plugin.DeleteEntry:
			all = append(all, "-"+c.Target())
		case plugin.SetInt64:
			all = append(all, fmt.Sprintf("%s=%d", c.Target(), c.Int))
		default:
			all = append(all, c.Target()+"="+c.Text)
		}
	}
	return all
}

// TestContainerResponses holds what a response to PreCreateContainer sets.
func TestContainerResponses(t *testing.T) {
	sent := newEventResources(t)
	overlaid := func(write func(*runtimeapi.LinuxContainerResources)) *pb.ContainerResourceHookResponse {
		r := proto.CloneOf(sent)
		write(r)
		return &pb.ContainerResourceHookResponse{ContainerResources: r}
	}
	resources := func(r *runtimeapi.LinuxContainerResources) *pb.ContainerResourceHookResponse {
		return &pb.ContainerResourceHookResponse{ContainerResources: r}
	}
	for _, test := range []struct {
		name string
		resp *pb.ContainerResourceHookResponse
		want []string
	}{
		{"nothing", &pb.ContainerResourceHookResponse{}, nil},
		{"no resources set", resources(&runtimeapi.LinuxContainerResources{}), nil},
		{"one field and no echo clears nothing", resources(&runtimeapi.LinuxContainerResources{CpuShares: 77}),
			[]string{"container.resources.cpu_shares=77"}},
		{"every field", resources(&runtimeapi.LinuxContainerResources{
			CpuPeriod: 50000, CpuQuota: -1, CpuShares: 2, MemoryLimitInBytes: 5, OomScoreAdj: -5, CpusetCpus: "3", CpusetMems: "1", MemorySwapLimitInBytes: 6,
			HugepageLimits: []*runtimeapi.HugepageLimit{{PageSize: "2MB", Limit: 4}, {PageSize: "1GB", Limit: 1 << 30}},
			Unified:        map[string]string{"memory.low": "7", "memory.high": "1000000"},
		}), []string{
			"container.resources.cpu_period=50000", "container.resources.cpu_quota=-1", "container.resources.cpu_shares=2",
			"container.resources.memory_limit_in_bytes=5", "container.resources.oom_score_adj=-5",
			"container.resources.cpuset_cpus=3", "container.resources.cpuset_mems=1",
			`container.resources.hugepage_limits["2MB"]=4`, `container.resources.unified["memory.low"]=7`,
			"container.resources.memory_swap_limit_in_bytes=6",
		}},
		{"values that the incumbent does not take", resources(&runtimeapi.LinuxContainerResources{
			CpuPeriod: -1, CpuShares: -1, MemoryLimitInBytes: -2, MemorySwapLimitInBytes: -2,
		}), nil},
		{"memory without a limit", resources(&runtimeapi.LinuxContainerResources{MemoryLimitInBytes: -1, MemorySwapLimitInBytes: -1}),
			[]string{"container.resources.memory_limit_in_bytes=-1", "container.resources.memory_swap_limit_in_bytes=-1"}},
		{"an echo that empties the cpuset", overlaid(func(r *runtimeapi.LinuxContainerResources) { r.CpusetCpus = "" }),
			[]string{"container.resources.cpuset_cpus="}},
		{"an echo that empties all that can be emptied", overlaid(func(r *runtimeapi.LinuxContainerResources) {
			r.CpusetCpus, r.CpusetMems, r.OomScoreAdj = "", "", 0
		}), []string{"container.resources.oom_score_adj=0", "container.resources.cpuset_cpus=", "container.resources.cpuset_mems="}},
		{"all but the period repeated is no echo", overlaid(func(r *runtimeapi.LinuxContainerResources) { r.CpuPeriod, r.CpusetCpus = 0, "" }), nil},
		{"all but the hugepages repeated is no echo", overlaid(func(r *runtimeapi.LinuxContainerResources) { r.HugepageLimits, r.CpusetCpus = nil, "" }), nil},
		{"annotations", &pb.ContainerResourceHookResponse{ContainerAnnotations: map[string]string{"b": "2", "a": "1"}},
			[]string{`container.annotations["a"]=1`, `container.annotations["b"]=2`}},
		{"cgroup parent", &pb.ContainerResourceHookResponse{PodCgroupParent: "/other"}, []string{"pod.cgroup_parent=/other"}},
		{"env replaces what was sent and leaves what was not", &pb.ContainerResourceHookResponse{ContainerEnvs: map[string]string{"PATH": "/usr/bin", "NEW": ""}},
			[]string{`-container.env["EMPTY"]`, `container.env["NEW"]=`, `container.env["PATH"]=/usr/bin`}},
		{"env of a name that could not be sent", &pb.ContainerResourceHookResponse{ContainerEnvs: map[string]string{"PATH": "/bin", "EMPTY": "", "KEY": "k"}},
			[]string{`container.env["KEY"]=k`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			changes, err := ask(t, plugged(t, answering(test.resp)), newEvent(abi.PreCreateContainer))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, asked(changes)); diff != "" {
				t.Errorf("changes differ (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSparseResources: where the request has little, a response that lacks it is
// not yet an echo; one that repeats some of it is.
func TestSparseResources(t *testing.T) {
	ev := &event{
		hook:    abi.PreCreateContainer,
		numbers: map[field]int64{{abi.Container, abi.Resources + abi.CPUShares}: 2},
		texts:   map[field]string{{abi.Container, abi.Resources + abi.CpusetCpus}: "0-1"},
	}
	for shares, want := range map[int64][]string{
		77: {"container.resources.cpu_shares=77"},
		2:  {"container.resources.cpuset_cpus="},
		0:  nil,
	} {
		resp := &pb.ContainerResourceHookResponse{ContainerResources: &runtimeapi.LinuxContainerResources{CpuShares: shares}}
		changes, err := ask(t, plugged(t, answering(resp)), ev)
		if diff := cmp.Diff(want, asked(changes)); err != nil || diff != "" {
			t.Errorf("cpu_shares %d: %v, changes differ (-want +got):\n%s", shares, err, diff)
		}
	}
}

// TestNoMemoryLimit: a server that says so of a container without one, as koordlet
// does, wants nothing.
func TestNoMemoryLimit(t *testing.T) {
	p := plugged(t, answering(&pb.ContainerResourceHookResponse{ContainerResources: &runtimeapi.LinuxContainerResources{MemoryLimitInBytes: -1}}))
	if changes, err := ask(t, p, &event{hook: abi.PreCreateContainer}); err != nil || len(changes) > 0 {
		t.Errorf("%v, %v", changes, err)
	}
}

// TestClearUnset is koord-runtime-proxy's way with resources that a response does
// not name: the cpusets and the score are cleared, the rest stays.
func TestClearUnset(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "hook.sock")
	serve(t, socket, hookServer{container: func(_ context.Context, method string, _ *pb.ContainerResourceHookRequest) (*pb.ContainerResourceHookResponse, error) {
		if method == abi.PreUpdateContainerResources.String() {
			return &pb.ContainerResourceHookResponse{}, nil
		}
		return &pb.ContainerResourceHookResponse{ContainerResources: &runtimeapi.LinuxContainerResources{CpuShares: 77}}, nil
	}})
	p, err := remote.New(remote.Options{ID: "koordlet", Endpoint: socket, Hooks: remote.Hooks(), ClearUnset: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close(t.Context())
	want := []string{
		"container.resources.cpu_shares=77", "container.resources.oom_score_adj=0",
		"container.resources.cpuset_cpus=", "container.resources.cpuset_mems=",
	}
	changes, err := ask(t, p, newEvent(abi.PreCreateContainer))
	if diff := cmp.Diff(want, asked(changes)); err != nil || diff != "" {
		t.Errorf("%v, changes differ (-want +got):\n%s", err, diff)
	}
	if changes, err := ask(t, p, newEvent(abi.PreUpdateContainerResources)); err != nil || len(changes) > 0 {
		t.Errorf("a response without resources: %v, %v", changes, err)
	}
}

// newEventResources returns the container's resources as newEvent has them.
func newEventResources(t *testing.T) *runtimeapi.LinuxContainerResources {
	t.Helper()
	req, _ := requestOf(t, newEvent(abi.PreCreateContainer))
	return req.(*pb.ContainerResourceHookRequest).GetContainerResources()
}

// A hook server is held to the same table of cgroup files as any plugin. What kubelet itself
// asked for is neither refused nor touched, whatever it is.
func TestUnifiedOfAHookServerIsChecked(t *testing.T) {
	sent := []entry{{"cgroup.freeze", "0"}, {"memory.high", "1000000"}}
	for _, test := range []struct {
		name    string
		unified map[string]string
		want    []string
		errno   abi.Errno
	}{
		{"an echo of what kubelet sent", map[string]string{"cgroup.freeze": "0", "memory.high": "1000000"}, nil, abi.OK},
		{"nothing of what kubelet sent", map[string]string{}, nil, abi.OK},
		{"a file of its own", map[string]string{"cgroup.freeze": "0", "memory.min": " 04096"}, []string{`container.resources.unified["memory.min"]=4096`}, abi.OK},
		{"processes of the node", map[string]string{"cgroup.freeze": "0", "cgroup.procs": "1"}, nil, abi.Denied},
		{"another value of kubelet's", map[string]string{"cgroup.freeze": "1"}, nil, abi.Denied},
		{"several lines", map[string]string{"memory.high": "1\n2"}, nil, abi.Invalid},
	} {
		t.Run(test.name, func(t *testing.T) {
			ev := newEvent(abi.PreCreateContainer)
			ev.entries[field{abi.Container, abi.Resources + abi.Unified}] = sent
			p := plugged(t, answering(&pb.ContainerResourceHookResponse{ContainerResources: &runtimeapi.LinuxContainerResources{Unified: test.unified}}))
			changes, err := ask(t, p, ev)
			if diff := cmp.Diff(test.want, asked(changes)); diff != "" || plugin.ErrnoOf(err) != test.errno {
				t.Errorf("got %v, want %v; changes differ (-want +got):\n%s", err, test.errno, diff)
			}
		})
	}
}

// TestWhatAHookCannotChange ignores what the hook has no way to change, as
// the incumbent does: servers answer every hook alike.
func TestWhatAHookCannotChange(t *testing.T) {
	p := plugged(t, answering(&pb.ContainerResourceHookResponse{
		ContainerAnnotations: map[string]string{"a": "1"}, ContainerResources: &runtimeapi.LinuxContainerResources{CpuShares: 77},
		PodCgroupParent: "/other", ContainerEnvs: map[string]string{"NEW": "1"},
	}))
	for hook, want := range map[abi.Hook][]string{
		abi.PreUpdateContainerResources: {`container.annotations["a"]=1`, "container.resources.cpu_shares=77"},
		abi.PreStartContainer:           nil,
		abi.PostStartContainer:          nil,
		abi.PostStopContainer:           nil,
	} {
		changes, err := ask(t, p, newEvent(hook))
		if diff := cmp.Diff(want, asked(changes)); err != nil || diff != "" {
			t.Errorf("%s: %v, changes differ (-want +got):\n%s", hook, err, diff)
		}
	}
}

// TestPodResponses holds what a response to PreRunPodSandbox sets, and that one
// to PostStopPodSandbox sets nothing.
func TestPodResponses(t *testing.T) {
	p := plugged(t, hookServer{pod: func(context.Context, string, *pb.PodSandboxHookRequest) (*pb.PodSandboxHookResponse, error) {
		return &pb.PodSandboxHookResponse{
			Labels: map[string]string{"app": "shop", "qos": "BE"}, Annotations: map[string]string{"n": "1"},
			CgroupParent: "/besteffort", Resources: &runtimeapi.LinuxContainerResources{CpuShares: 2},
		}, nil
	}})
	want := []string{`pod.labels["app"]=shop`, `pod.labels["qos"]=BE`, `pod.annotations["n"]=1`, "pod.cgroup_parent=/besteffort"}
	changes, err := ask(t, p, newEvent(abi.PreRunPodSandbox))
	if diff := cmp.Diff(want, asked(changes)); err != nil || diff != "" {
		t.Errorf("%v, changes differ (-want +got):\n%s", err, diff)
	}
	if changes, err := ask(t, p, newEvent(abi.PostStopPodSandbox)); err != nil || len(changes) != 0 {
		t.Errorf("PostStopPodSandbox: %v, %v", changes, err)
	}
}

// TestBadResponses are the server's fault, with the field's name in the error.
func TestBadResponses(t *testing.T) {
	for field, resp := range map[string]*pb.ContainerResourceHookResponse{
		`container.annotations["io.kubernetes.pod.uid"]`: {ContainerAnnotations: map[string]string{"io.kubernetes.pod.uid": "other"}},
		"container.resources.cpuset_cpus":                {ContainerResources: &runtimeapi.LinuxContainerResources{CpusetCpus: "all"}},
		"container.resources.oom_score_adj":              {ContainerResources: &runtimeapi.LinuxContainerResources{OomScoreAdj: 5000}},
		"pod.cgroup_parent":                              {PodCgroupParent: "../.."},
		`container.env["A=B"]`:                           {ContainerEnvs: map[string]string{"A=B": "x"}},
		`container.resources.hugepage_limits["2 MiB"]`:   {ContainerResources: &runtimeapi.LinuxContainerResources{HugepageLimits: []*runtimeapi.HugepageLimit{{PageSize: "2 MiB"}}}},
	} {
		_, err := ask(t, plugged(t, answering(resp)), newEvent(abi.PreCreateContainer))
		if refused := new(plugin.WriteError); !errors.As(err, &refused) || !strings.Contains(err.Error(), field) {
			t.Errorf("error %v does not name %s", err, field)
		}
	}
}

// TestLargeMessages takes 16 MiB both ways.
func TestLargeMessages(t *testing.T) {
	ev := newEvent(abi.PreCreateContainer)
	env := field{abi.Container, abi.ContainerEnv}
	for i := range 16 {
		ev.entries[env] = append(ev.entries[env], entry{fmt.Sprint("V", i), strings.Repeat("v", 1<<20)})
	}
	if changes, err := ask(t, plugged(t, echoing()), ev); err != nil || len(changes) != 0 {
		t.Errorf("%d changes, %v", len(changes), err)
	}
}

// TestEnvOverLimit is a fault, not a part of what was asked for.
func TestEnvOverLimit(t *testing.T) {
	env := maps.Collect(func(yield func(string, string) bool) {
		for i := range 1000 {
			if !yield(fmt.Sprint("V", i), "v") {
				return
			}
		}
	})
	_, err := ask(t, plugged(t, answering(&pb.ContainerResourceHookResponse{ContainerEnvs: env})), newEvent(abi.PreCreateContainer))
	if !errors.Is(err, abi.Limit) {
		t.Errorf("error %v, want %v", err, abi.Limit)
	}
}

// TestResponseWithTooManyEntries: a map that no object may have is an error and changes nothing.
func TestResponseWithTooManyEntries(t *testing.T) {
	many := map[string]string{}
	for i := range abi.MaxEntries + 1 {
		many[fmt.Sprint("memory.", i)] = "1"
	}
	resp := &pb.ContainerResourceHookResponse{ContainerResources: &runtimeapi.LinuxContainerResources{Unified: many}}
	changes, err := ask(t, plugged(t, answering(resp)), newEvent(abi.PreCreateContainer))
	if !errors.Is(err, abi.TooLarge) || !strings.Contains(err.Error(), "resources.unified") || len(changes) != 0 {
		t.Errorf("changes %v, error %v", changes, err)
	}
}
