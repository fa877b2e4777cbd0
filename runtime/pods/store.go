package pods

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"sync"

	"golang.org/x/sync/singleflight"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// A Store holds the pods and containers of one backend. All its methods are
// safe for concurrent use, and no lock is held while the backend is asked, so
// queries answer at once. An ID may be given by any prefix that only one record
// has, as runtimes allow.
type Store struct {
	mu      sync.RWMutex
	records // guarded by mu

	flights singleflight.Group // reads of one ID from the backend
	kernel  Kernel             // nil: all that is known is from the backend
}

// NewStore returns an empty store that knows what the backend reports.
func NewStore() *Store { return NewStoreWith(nil) }

// NewStoreWith returns an empty store that asks the kernel, if it is not nil, for what
// the backend does not tell of running containers.
func NewStoreWith(kernel Kernel) *Store {
	s := &Store{kernel: kernel}
	s.Clear()
	return s
}

// Clear forgets everything, also what a Sync or a read under way would bring.
func (s *Store) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = records{pods: newTable[Pod](), containers: newTable[Container](), members: map[string]map[string]struct{}{}}
}

// Len returns how many pods and containers there are.
func (s *Store) Len() (pods, containers int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.pods.records), len(s.containers.records)
}

// Pod returns the pod sandbox with this ID.
func (s *Store) Pod(id string) (p Pod, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, p, ok = s.pods.find(id)
	s.addParent(&p)
	return p, ok
}

// Container returns the container with this ID.
func (s *Store) Container(id string) (Container, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, c, ok := s.containers.find(id)
	return c, ok
}

// Pods returns all pods in the order of their IDs. The slice is the caller's.
func (s *Store) Pods() []Pod {
	s.mu.RLock()
	all := slices.Collect(maps.Values(s.pods.records))
	for i := range all {
		s.addParent(&all[i])
	}
	s.mu.RUnlock()
	slices.SortFunc(all, func(a, b Pod) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// Containers returns the containers of one pod in the order of their IDs. The
// slice is the caller's.
func (s *Store) Containers(podID string) []Container {
	s.mu.RLock()
	podID, _, _ = s.pods.find(podID)
	all := make([]Container, 0, len(s.members[podID]))
	for id := range s.members[podID] {
		all = append(all, s.containers.records[id])
	}
	s.mu.RUnlock()
	slices.SortFunc(all, func(a, b Container) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// IDsByListAlone returns the IDs of those of a pod and its containers that are known by a list alone.
func (s *Store) IDsByListAlone(podID string) (ids []string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	podID, p, _ := s.pods.find(podID)
	if p.ByListAlone() {
		ids = append(ids, podID)
	}
	for id := range s.members[podID] {
		if s.containers.records[id].ByListAlone() {
			ids = append(ids, id)
		}
	}
	return ids
}

// Described reports whether the backend has told the status of the pod or container with this ID, and
// it is there. The ID is a whole one.
func (s *Store) Described(id string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if p, ok := s.pods.records[id]; ok {
		return !p.ByListAlone()
	}
	c, ok := s.containers.records[id]
	return ok && !c.ByListAlone()
}

// FindPodByUID returns the newest sandbox of the pod with this Kubernetes UID.
func (s *Store) FindPodByUID(uid string) (Pod, bool) {
	return s.FindPod(func(c *runtimeapi.PodSandboxConfig) bool {
		return uid != "" && c.GetMetadata().GetUid() == uid
	})
}

// FindPodByName returns the newest sandbox of the pod with this name: one that
// is ready if there is one, then that of the highest attempt.
func (s *Store) FindPodByName(namespace, name string) (Pod, bool) {
	return s.FindPod(func(c *runtimeapi.PodSandboxConfig) bool {
		m := c.GetMetadata()
		return name != "" && m.GetName() == name && m.GetNamespace() == namespace
	})
}

// FindPod returns the newest of the sandboxes that match. It holds a lock meanwhile.
func (s *Store) FindPod(match func(*runtimeapi.PodSandboxConfig) bool) (Pod, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var found []Pod
	for _, p := range s.pods.records {
		if match(p.Config) {
			found = append(found, p)
		}
	}
	if len(found) == 0 {
		return Pod{}, false
	}
	newest := slices.MaxFunc(found, byAge)
	s.addParent(&newest)
	return newest, true
}

// byAge orders sandboxes of one pod from the oldest to the newest. Attempts count
// within one UID only, and a pod made anew under the same name starts at 0: so
// the one that is ready comes before the count.
func byAge(a, b Pod) int {
	ready := runtimeapi.PodSandboxState_SANDBOX_READY
	switch {
	case a.State == ready && b.State != ready:
		return 1
	case a.State != ready && b.State == ready:
		return -1
	}
	return cmp.Or(
		cmp.Compare(a.Config.GetMetadata().GetAttempt(), b.Config.GetMetadata().GetAttempt()),
		cmp.Compare(a.ID, b.ID),
	)
}

// records are what a store knows. Its lock guards them.
type records struct {
	pods       table[Pod]
	containers table[Container]
	members    map[string]map[string]struct{} // container IDs by pod ID
}

// addParent fills in the cgroup parent of a pod if the backend did not report it: it is where the kernel has the pod's containers.
func (r *records) addParent(p *Pod) {
	if p.Unreported&PodCgroupParent == 0 {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(r.members[p.ID])) {
		if group := r.containers.records[id].CgroupsPath; group != "" {
			p.CgroupParent = path.Dir(group)
			return
		}
	}
}

// enlist makes a container a member of its pod.
func (r *records) enlist(c Container) {
	ids := r.members[c.PodID]
	if ids == nil {
		ids = map[string]struct{}{}
		r.members[c.PodID] = ids
	}
	ids[c.ID] = struct{}{}
}

// move gives a container's pod the ID that the backend knows it by: in Docker a pod may have
// another one as it is made. Readings that are under way may still complete both records.
func (r *records) move(container, from, to string) {
	delete(r.members[from], container)
	if to == "" || to == from {
		return
	}
	if _, known := r.pods.records[to]; !known {
		p := r.pods.records[from]
		p.ID = to
		r.pods.records[to] = p
	}
	c := r.containers.records[container]
	c.PodID = to
	r.containers.records[container] = c
	r.enlist(c)
}

func (r *records) removeContainer(id string) {
	id, c, ok := r.containers.find(id)
	r.containers.remove(id)
	if !ok {
		return
	}
	delete(r.members[c.PodID], id)
	if len(r.members[c.PodID]) == 0 {
		delete(r.members, c.PodID)
	}
}

// removePod forgets a pod and its containers.
func (r *records) removePod(id string) {
	id, _, _ = r.pods.find(id)
	for c := range r.members[id] {
		r.removeContainer(c)
	}
	r.pods.remove(id)
}
