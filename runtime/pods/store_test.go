package pods

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestFindPod(t *testing.T) {
	s := NewStore()
	pod := func(id, name, namespace, uid string, attempt uint32) {
		run(s, id, &runtimeapi.PodSandboxConfig{Metadata: &runtimeapi.PodSandboxMetadata{Name: name, Namespace: namespace, Uid: uid, Attempt: attempt}})
	}
	stop := func(id string) {
		s.Observe(nil, &runtimeapi.StopPodSandboxRequest{PodSandboxId: id}, nil)
	}
	pod("z", "web", "prod", "u1", 0)
	stop("z")
	pod("a", "web", "prod", "u1", 2)
	pod("m", "web", "prod", "u1", 1)
	pod("n", "web", "test", "u2", 9)
	// A StatefulSet's pod, removed after a restart and made anew under its name.
	pod("old", "db-0", "prod", "u3", 4)
	stop("old")
	pod("new", "db-0", "prod", "u4", 0)
	run(s, "nameless", nil)

	for _, test := range []struct {
		what, want string
		find       func() (Pod, bool)
	}{
		{"a uid with three attempts", "a", func() (Pod, bool) { return s.FindPodByUID("u1") }},
		{"a name with three attempts", "a", func() (Pod, bool) { return s.FindPodByName("prod", "web") }},
		{"the same name elsewhere", "n", func() (Pod, bool) { return s.FindPodByName("test", "web") }},
		{"a name made anew", "new", func() (Pod, bool) { return s.FindPodByName("prod", "db-0") }},
		{"the uid before", "old", func() (Pod, bool) { return s.FindPodByUID("u3") }},
		{"the nameless", "", func() (Pod, bool) { return s.FindPodByName("", "") }},
		{"no uid", "", func() (Pod, bool) { return s.FindPodByUID("") }},
		{"nobody", "", func() (Pod, bool) { return s.FindPodByUID("u5") }},
	} {
		if p, ok := test.find(); p.ID != test.want || ok != (test.want != "") {
			t.Errorf("%s: got %q, %v, want %q", test.what, p.ID, ok, test.want)
		}
	}
}

func TestListsAreSorted(t *testing.T) {
	s := NewStore()
	ids := []string{"c", "a", "d", "b"}
	for _, id := range ids {
		run(s, "pod-"+id, nil)
		create(s, "ctr-"+id, "pod-a", nil)
	}
	var got []string
	for _, p := range s.Pods() {
		got = append(got, p.ID)
	}
	for _, c := range s.Containers("pod-a") {
		got = append(got, c.ID)
	}
	want := []string{"pod-a", "pod-b", "pod-c", "pod-d", "ctr-a", "ctr-b", "ctr-c", "ctr-d"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestShortIDs: crictl passes on what its user typed, and runtimes find it.
func TestShortIDs(t *testing.T) {
	s := NewStore()
	run(s, "abc1", nil)
	run(s, "abd1", nil)
	create(s, "ccc1", "abc", nil)
	for id, want := range map[string]bool{"abc": true, "abc1": true, "abd": true, "ab": false, "": false, "abc12": false} {
		if _, ok := s.Pod(id); ok != want {
			t.Errorf("a pod for %q: %v, want %v", id, ok, want)
		}
	}
	if got := s.Containers("abc"); len(got) != 1 || got[0].PodID != "abc1" {
		t.Errorf("the containers of abc are %v", got)
	}
	update(s, "cc", &runtimeapi.LinuxContainerResources{CpuShares: 5})
	if c, _ := s.Container("ccc1"); c.Config.GetLinux().GetResources().GetCpuShares() != 5 {
		t.Errorf("an update by a short ID went astray: %v", c.Config)
	}
	removePod(s, "ab") // the runtime would refuse it: of two
	size(t, s, 2, 1)
	removeContainer(s, "c")
	removePod(s, "abc")
	removePod(s, "abd")
	empty(t, s)
}

// TestReadingKeepsToItsID: a read that hangs on a busy node must not gather what
// happens to others.
func TestReadingKeepsToItsID(t *testing.T) {
	s := NewStore()
	r := s.begin("c1")
	create(s, "d1", "p", nil)
	update(s, "d1", &runtimeapi.LinuxContainerResources{CpuShares: 5})
	update(s, "c1", &runtimeapi.LinuxContainerResources{CpuShares: 5})
	if got := len(r.containers.since); got != 1 {
		t.Errorf("it follows %d containers, want 1", got)
	}
	s.end(r)
}
