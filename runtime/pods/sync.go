package pods

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// A Backend answers the four questions that the store asks. Every
// [runtimeapi.RuntimeServiceClient] is one.
type Backend interface {
	ListPodSandbox(context.Context, *runtimeapi.ListPodSandboxRequest, ...grpc.CallOption) (*runtimeapi.ListPodSandboxResponse, error)
	PodSandboxStatus(context.Context, *runtimeapi.PodSandboxStatusRequest, ...grpc.CallOption) (*runtimeapi.PodSandboxStatusResponse, error)
	ListContainers(context.Context, *runtimeapi.ListContainersRequest, ...grpc.CallOption) (*runtimeapi.ListContainersResponse, error)
	ContainerStatus(context.Context, *runtimeapi.ContainerStatusRequest, ...grpc.CallOption) (*runtimeapi.ContainerStatusResponse, error)
}

// statusCalls is how many status calls of one Sync may be under way. A runtime
// answers one in about a millisecond, and has kubelet to serve beside.
const statusCalls = 8

// Sync makes the store hold what the backend has: at start, and after the
// backend was away. Calls may go on meanwhile; what Observe sees wins, and what
// it sees removed does not come back. A pod or container whose status cannot be
// read stays as it was, and the error says how many they are and why the first;
// it wraps the backend's error. It is an [*UnreadError] if the store knows them all, though some by
// the list alone.
func (s *Store) Sync(ctx context.Context, from Backend) error {
	r := s.begin("")
	defer s.end(r)
	listed, err := from.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		return fmt.Errorf("listing the backend's pod sandboxes: %w", err)
	}
	listedContainers, err := from.ListContainers(ctx, &runtimeapi.ListContainersRequest{})
	if err != nil {
		return fmt.Errorf("listing the backend's containers: %w", err)
	}
	pods, containers := listed.GetItems(), listedContainers.GetContainers()
	s.prune(r, pods, containers)

	var failed failures
	var g errgroup.Group
	g.SetLimit(statusCalls)
	for _, p := range pods {
		g.Go(func() error {
			failed.add(s.syncPod(ctx, from, r, p))
			return nil
		})
	}
	for _, c := range containers {
		g.Go(func() error {
			failed.add(s.syncContainer(ctx, from, r, c))
			return nil
		})
	}
	_ = g.Wait() // the errors are counted instead
	if failed.count == 0 {
		return nil
	}
	all := len(pods) + len(containers)
	err = fmt.Errorf("%d of the backend's %d pods and containers could not be read, first: %w", failed.count, all, failed.first)
	if failed.backend || ctx.Err() != nil {
		return err
	}
	return &UnreadError{err, failed.count}
}

// prune forgets what the backend no longer has.
func (s *Store) prune(r reads, pods []*runtimeapi.PodSandbox, containers []*runtimeapi.Container) {
	listed := make(map[string]bool, len(pods)+len(containers))
	for _, p := range pods {
		listed[p.GetId()] = true
	}
	podOf := make(map[string]string, len(containers))
	for _, c := range containers {
		listed[c.GetId()], podOf[c.GetId()] = true, c.GetPodSandboxId()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range s.pods.vanished(r.pods, listed) {
		for c := range s.members[id] {
			if to, stays := podOf[c]; stays {
				s.move(c, id, to)
			}
		}
		s.removePod(id)
	}
	for _, id := range s.containers.vanished(r.containers, listed) {
		s.removeContainer(id)
	}
}

// An UnreadError says that the backend lists pods or containers whose status it cannot tell. The
// store knows them by the list if it knew no more.
type UnreadError struct {
	error
	Count int // of pods and containers
}

// Unwrap returns how many they are and the backend's error of the first.
func (e *UnreadError) Unwrap() error { return e.error }

// syncPod reads one pod that the backend lists. One that is no longer ready and has
// no status is known by what the list says, and is no failure: cri-dockerd lists sandboxes of
// which nothing but a checkpoint is left.
func (s *Store) syncPod(ctx context.Context, from Backend, r reads, listed *runtimeapi.PodSandbox) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	reported, err := fetchPod(ctx, from, listed.GetId())
	byList := ofObject(err)
	switch {
	case listed.GetState() == runtimeapi.PodSandboxState_SANDBOX_NOTREADY && (byList || errors.Is(err, errGone)):
		reported, err = podOfList(listed), nil
	case Gone(err):
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.pods.outlived(r.pods, listed.GetId()) {
			s.removePod(listed.GetId())
		}
		return nil
	case byList:
		reported = podOfList(listed)
	}
	if err == nil || byList {
		s.reconcilePod(r, reported)
	}
	return err
}

// Gone reports whether the runtime says that it does not know an object.
func Gone(err error) bool { return status.Code(err) == codes.NotFound || errors.Is(err, errGone) }

func podOfList(p *runtimeapi.PodSandbox) reportedPod {
	config := &runtimeapi.PodSandboxConfig{Metadata: p.GetMetadata(), Labels: p.GetLabels(), Annotations: p.GetAnnotations()}
	return reportedPod{Pod: Pod{
		ID: p.GetId(), Config: config, RuntimeHandler: p.GetRuntimeHandler(), State: p.GetState(),
		Unreported: allOfPod | unread,
	}}
}

func (s *Store) syncContainer(ctx context.Context, from Backend, r reads, c *runtimeapi.Container) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	reported, err := s.fetchContainer(ctx, from, c.GetId())
	if Gone(err) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.containers.outlived(r.containers, c.GetId()) {
			s.removeContainer(c.GetId())
		}
		return nil
	}
	if ofObject(err) {
		config := &runtimeapi.ContainerConfig{
			Metadata: c.GetMetadata(), Image: imageReported(c.GetImageId(), c.GetImage().GetImage()),
			Labels: c.GetLabels(), Annotations: c.GetAnnotations(), Linux: &runtimeapi.LinuxContainerConfig{},
		}
		reported = reportedContainer{Container: Container{
			ID: c.GetId(), Config: config, State: c.GetState(), Unreported: allOfContainer | unread,
		}}
	}
	if err == nil || ofObject(err) {
		reported.PodID = c.GetPodSandboxId()
		s.reconcileContainer(r, reported)
	}
	return err
}

// failures counts errors from several goroutines and keeps the first.
type failures struct {
	mu      sync.Mutex
	count   int
	first   error
	backend bool // one is no failure of an object
}

func (f *failures) add(err error) {
	if err == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.backend = f.backend || !ofObject(err)
	if f.count++; f.first == nil {
		f.first = err
	}
}
