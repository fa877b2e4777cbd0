package pods

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func run(s *Store, id string, config *runtimeapi.PodSandboxConfig) {
	s.Observe(nil, &runtimeapi.RunPodSandboxRequest{Config: config}, &runtimeapi.RunPodSandboxResponse{PodSandboxId: id})
}

func create(s *Store, id, pod string, config *runtimeapi.ContainerConfig) {
	s.Observe(nil, &runtimeapi.CreateContainerRequest{PodSandboxId: pod, Config: config}, &runtimeapi.CreateContainerResponse{ContainerId: id})
}

func update(s *Store, id string, r *runtimeapi.LinuxContainerResources) {
	s.Observe(nil, &runtimeapi.UpdateContainerResourcesRequest{ContainerId: id, Linux: r}, &runtimeapi.UpdateContainerResourcesResponse{})
}

func removeContainer(s *Store, id string) {
	s.Observe(nil, &runtimeapi.RemoveContainerRequest{ContainerId: id}, &runtimeapi.RemoveContainerResponse{})
}

func removePod(s *Store, id string) {
	s.Observe(nil, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: id}, &runtimeapi.RemovePodSandboxResponse{})
}

func size(t *testing.T, s *Store, pods, containers int) {
	t.Helper()
	if p, c := s.Len(); p != pods || c != containers {
		t.Fatalf("the store holds %d pods and %d containers, want %d and %d", p, c, pods, containers)
	}
}

func TestUpdateLaysWhatIsSet(t *testing.T) {
	all := &runtimeapi.LinuxContainerResources{
		CpuPeriod: 100000, CpuQuota: 20000, CpuShares: 204, MemoryLimitInBytes: 1 << 27, OomScoreAdj: 990,
		CpusetCpus: "0-3", CpusetMems: "0", MemorySwapLimitInBytes: 1 << 28,
		HugepageLimits: []*runtimeapi.HugepageLimit{{PageSize: "2MB", Limit: 1}, {PageSize: "1GB", Limit: 2}},
		Unified:        map[string]string{"memory.high": "1", "cpu.idle": "0"},
	}
	with := func(change func(*runtimeapi.LinuxContainerResources)) *runtimeapi.LinuxContainerResources {
		r := proto.CloneOf(all)
		change(r)
		return r
	}
	tests := []struct {
		name               string
		base, update, want *runtimeapi.LinuxContainerResources
	}{
		{"nothing", all, nil, all},
		{"empty", all, &runtimeapi.LinuxContainerResources{}, all},
		{"kubelet's CPU manager", all, &runtimeapi.LinuxContainerResources{CpusetCpus: "5"},
			with(func(r *runtimeapi.LinuxContainerResources) { r.CpusetCpus = "5" })},
		{"a quota lifted", all, &runtimeapi.LinuxContainerResources{CpuQuota: -1},
			with(func(r *runtimeapi.LinuxContainerResources) { r.CpuQuota = -1 })},
		{"one page size", all, &runtimeapi.LinuxContainerResources{HugepageLimits: []*runtimeapi.HugepageLimit{{PageSize: "1GB", Limit: 9}, {PageSize: "64KB", Limit: 7}}},
			with(func(r *runtimeapi.LinuxContainerResources) {
				r.HugepageLimits = []*runtimeapi.HugepageLimit{{PageSize: "2MB", Limit: 1}, {PageSize: "1GB", Limit: 9}, {PageSize: "64KB", Limit: 7}}
			})},
		{"one unified key", all, &runtimeapi.LinuxContainerResources{Unified: map[string]string{"cpu.idle": "1"}},
			with(func(r *runtimeapi.LinuxContainerResources) { r.Unified["cpu.idle"] = "1" })},
		{"oom_score_adj of a resize", all, &runtimeapi.LinuxContainerResources{OomScoreAdj: 1, CpuShares: 2},
			with(func(r *runtimeapi.LinuxContainerResources) { r.OomScoreAdj, r.CpuShares = 1, 2 })},
		{"oom_score_adj that is not named", all, &runtimeapi.LinuxContainerResources{CpuShares: 2},
			with(func(r *runtimeapi.LinuxContainerResources) { r.CpuShares = 2 })},
		{"no resources before", nil, &runtimeapi.LinuxContainerResources{CpusetCpus: "1"}, &runtimeapi.LinuxContainerResources{CpusetCpus: "1"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			created := &runtimeapi.ContainerConfig{Envs: env("A", "b"), Linux: &runtimeapi.LinuxContainerConfig{Resources: test.base}}
			before := proto.CloneOf(created)
			s := NewStore()
			create(s, "c", "p", created)
			update(s, "c", test.update)
			c, _ := s.Container("c")
			if diff := cmp.Diff(test.want, c.Config.GetLinux().GetResources(), protocmp.Transform()); diff != "" {
				t.Errorf("resources (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, created, protocmp.Transform()); diff != "" {
				t.Errorf("the message that was handed over changed (-was +is):\n%s", diff)
			}
		})
	}
}

func TestUpdateWithoutLinuxConfig(t *testing.T) {
	s := NewStore()
	create(s, "c", "p", nil)
	update(s, "c", &runtimeapi.LinuxContainerResources{CpuShares: 2})
	c, _ := s.Container("c")
	if got := c.Config.GetLinux().GetResources().GetCpuShares(); got != 2 {
		t.Errorf("cpu_shares is %d, want 2", got)
	}
}

func TestUpdateAnnotations(t *testing.T) {
	s := NewStore()
	create(s, "c", "p", &runtimeapi.ContainerConfig{Annotations: map[string]string{"kept": "1", "changed": "1"}})
	s.Observe(nil, &runtimeapi.UpdateContainerResourcesRequest{ContainerId: "c", Annotations: map[string]string{"changed": "2", "new": "3"}}, nil)
	c, _ := s.Container("c")
	if diff := cmp.Diff(map[string]string{"kept": "1", "changed": "2", "new": "3"}, c.Config.GetAnnotations()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestUnknownFields: what a newer kubelet sends stays, and the same field of many
// updates stays once.
func TestUnknownFields(t *testing.T) {
	field := func(n protowire.Number, v uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(nil, n, protowire.VarintType), v)
	}
	resources := func(unknown ...[]byte) *runtimeapi.LinuxContainerResources {
		r := &runtimeapi.LinuxContainerResources{CpuShares: 2}
		var all []byte
		for _, u := range unknown {
			all = append(all, u...)
		}
		r.ProtoReflect().SetUnknown(all)
		return r
	}
	s := NewStore()
	config := &runtimeapi.ContainerConfig{Linux: &runtimeapi.LinuxContainerConfig{Resources: resources(field(900, 1), field(901, 1))}}
	config.ProtoReflect().SetUnknown(field(950, 5))
	create(s, "c", "p", config)
	for v := range uint64(100) {
		update(s, "c", resources(field(901, v), field(902, v)))
	}
	c, _ := s.Container("c")
	want := proto.CloneOf(config)
	want.Linux.Resources = resources(field(900, 1), field(901, 99), field(902, 99))
	if diff := cmp.Diff(want, c.Config, protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLives follows the records through the calls that make and end them.
func TestLives(t *testing.T) {
	s := NewStore()
	run(s, "p1", podConfig())
	run(s, "p2", podConfig())
	for i := range 3 {
		create(s, fmt.Sprint("c", i), "p1", bareConfig())
	}
	create(s, "d", "p2", bareConfig())
	size(t, s, 2, 4)

	state := func(id string, want runtimeapi.ContainerState) {
		t.Helper()
		if c, _ := s.Container(id); c.State != want || c.PodID != "p1" {
			t.Errorf("%s of %q is %v, want %v of p1", id, c.PodID, c.State, want)
		}
	}
	state("c0", runtimeapi.ContainerState_CONTAINER_CREATED)
	s.Observe(nil, &runtimeapi.StartContainerRequest{ContainerId: "c0"}, nil)
	state("c0", runtimeapi.ContainerState_CONTAINER_RUNNING)
	s.Observe(nil, &runtimeapi.StopContainerRequest{ContainerId: "c0"}, nil)
	state("c0", runtimeapi.ContainerState_CONTAINER_EXITED)
	size(t, s, 2, 4)

	removeContainer(s, "c0")
	size(t, s, 2, 3)
	s.Observe(nil, &runtimeapi.StopPodSandboxRequest{PodSandboxId: "p1"}, nil)
	size(t, s, 2, 3)
	state("c1", runtimeapi.ContainerState_CONTAINER_EXITED)
	if p, _ := s.Pod("p1"); p.State != runtimeapi.PodSandboxState_SANDBOX_NOTREADY {
		t.Errorf("a stopped pod is %v", p.State)
	}
	removePod(s, "p1")
	size(t, s, 1, 1)
	if got := s.Containers("p1"); len(got) != 0 {
		t.Errorf("a removed pod has containers: %v", got)
	}
	removeContainer(s, "d")
	removePod(s, "p2")
	empty(t, s)
}

// empty looks behind the methods for what would leak.
func empty(t *testing.T, s *Store) {
	t.Helper()
	size(t, s, 0, 0)
	s.mu.RLock()
	defer s.mu.RUnlock()
	if n := len(s.members) + len(s.pods.reads) + len(s.containers.reads); n != 0 {
		t.Errorf("%d notes are left behind: %v, %v, %v", n, s.members, s.pods.reads, s.containers.reads)
	}
}

func TestRequested(t *testing.T) {
	asked, same := podConfig(), podConfig()
	changed := podConfig()
	changed.Linux.CgroupParent = "/elsewhere"
	for _, test := range []struct {
		name        string
		asked, sent *runtimeapi.PodSandboxConfig
		want        *runtimeapi.PodSandboxConfig
	}{
		{"not given", nil, asked, asked},
		{"the same message", asked, asked, asked},
		{"an equal message", asked, same, asked},
		{"changed by a plugin", asked, changed, asked},
	} {
		t.Run(test.name, func(t *testing.T) {
			var req proto.Message
			if test.asked != nil {
				req = &runtimeapi.RunPodSandboxRequest{Config: test.asked}
			}
			s := NewStore()
			s.Observe(req, &runtimeapi.RunPodSandboxRequest{Config: test.sent, RuntimeHandler: "kata"}, &runtimeapi.RunPodSandboxResponse{PodSandboxId: "p"})
			p, _ := s.Pod("p")
			if p.Requested != test.want || p.Unchanged != (test.asked == nil) || p.Config != test.sent || p.RuntimeHandler != "kata" {
				t.Errorf("requested %v, config %v, runtime handler %q", p.Requested, p.Config, p.RuntimeHandler)
			}
		})
	}
}

func TestUpdatePodSandboxResources(t *testing.T) {
	s := NewStore()
	config := podConfig()
	run(s, "p", config)
	sum := &runtimeapi.LinuxContainerResources{CpuShares: 7}
	s.Observe(nil, &runtimeapi.UpdatePodSandboxResourcesRequest{PodSandboxId: "p", Resources: sum}, nil)
	want := podConfig()
	want.Linux.Resources = sum // whole; the overhead was not given, and stays
	p, _ := s.Pod("p")
	if diff := cmp.Diff(want, p.Config, protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(podConfig(), config, protocmp.Transform()); diff != "" {
		t.Errorf("the message that was handed over changed:\n%s", diff)
	}
}

func TestRestorePod(t *testing.T) {
	s := NewStore()
	s.Observe(nil,
		&runtimeapi.RestorePodRequest{Config: podConfig(), RuntimeHandler: "runc", ContainerConfigs: []*runtimeapi.ContainerConfig{appConfig(), bareConfig()}},
		&runtimeapi.RestorePodResponse{PodSandboxId: "p", RestoredContainers: []*runtimeapi.RestoredContainer{
			{Name: "bare", ContainerId: "c1"}, {Name: "app", ContainerId: "c2"}, {Name: "unasked", ContainerId: "c3"},
		}})
	size(t, s, 1, 2)
	var got []string
	for _, c := range s.Containers("p") {
		got = append(got, c.ID+" "+c.Config.GetMetadata().GetName()+" "+c.State.String())
	}
	if diff := cmp.Diff([]string{"c1 bare CONTAINER_CREATED", "c2 app CONTAINER_CREATED"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestObserveWhatIsNotThere: no call about the unknown makes a record or panics.
func TestObserveWhatIsNotThere(t *testing.T) {
	s := NewStore()
	for _, req := range []proto.Message{
		nil, (*runtimeapi.CreateContainerRequest)(nil), &runtimeapi.VersionRequest{},
		&runtimeapi.RunPodSandboxRequest{}, &runtimeapi.CreateContainerRequest{}, &runtimeapi.RestorePodRequest{},
		&runtimeapi.StopPodSandboxRequest{PodSandboxId: "x"}, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: "x"},
		&runtimeapi.StartContainerRequest{ContainerId: "x"}, &runtimeapi.StopContainerRequest{ContainerId: "x"},
		&runtimeapi.RemoveContainerRequest{ContainerId: "x"}, &runtimeapi.UpdateContainerResourcesRequest{ContainerId: "x"},
		&runtimeapi.UpdatePodSandboxResourcesRequest{PodSandboxId: "x"},
		&runtimeapi.CheckpointContainerRequest{ContainerId: "x"}, &runtimeapi.CheckpointPodRequest{PodSandboxId: "x"},
	} {
		for _, resp := range []proto.Message{nil, (*runtimeapi.RunPodSandboxResponse)(nil), &runtimeapi.CreateContainerResponse{}} {
			s.Observe(req, req, resp)
		}
	}
	empty(t, s)

	// A container may be made in a pod that nothing is known of.
	create(s, "c", "p", nil)
	if c, ok := s.Container("c"); !ok || c.PodID != "p" || c.Config == nil {
		t.Errorf("got %v, %v", c, ok)
	}
	removePod(s, "p")
	empty(t, s)
}

// No call shows that a container ends by itself. kubelet's next attempt does; other containers of
// the pod, and other pods, go on.
func TestNextAttemptEndsTheEarlierOne(t *testing.T) {
	s := NewStore()
	run(s, "p", &runtimeapi.PodSandboxConfig{})
	run(s, "q", &runtimeapi.PodSandboxConfig{})
	attempt := func(id, pod, name string, n uint32) {
		create(s, id, pod, &runtimeapi.ContainerConfig{Metadata: &runtimeapi.ContainerMetadata{Name: name, Attempt: n}})
		s.Observe(nil, &runtimeapi.StartContainerRequest{ContainerId: id}, &runtimeapi.StartContainerResponse{})
	}
	attempt("app-0", "p", "app", 0)
	attempt("log-0", "p", "log", 0)
	attempt("other", "q", "app", 0)
	attempt("app-1", "p", "app", 1)
	for id, want := range map[string]runtimeapi.ContainerState{
		"app-0": runtimeapi.ContainerState_CONTAINER_EXITED, "app-1": runtimeapi.ContainerState_CONTAINER_RUNNING,
		"log-0": runtimeapi.ContainerState_CONTAINER_RUNNING, "other": runtimeapi.ContainerState_CONTAINER_RUNNING,
	} {
		if c, _ := s.Container(id); c.State != want {
			t.Errorf("%s is %v, want %v", id, c.State, want)
		}
	}
}
