package pods

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"golang.org/x/sync/singleflight"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// readTimeout ends a read that all its callers have left, and one of a Sync, which has others to read.
// Callers wait no longer than their own contexts.
const readTimeout = 10 * time.Second

// ReadPod returns the pod with this ID, asking the backend if it is not known, or by a list alone:
// what the list told is the answer then if the backend fails.
// Callers that ask for one ID at the same time share one call. An error of the
// backend is wrapped.
func (s *Store) ReadPod(ctx context.Context, from Backend, id string) (Pod, error) {
	held, known := s.Pod(id)
	if known && !held.ByListAlone() {
		return held, nil
	}
	p, err := shared(ctx, &s.flights, "pod "+id, func(ctx context.Context) (Pod, error) {
		r := s.begin(id)
		defer s.end(r)
		reported, err := fetchPod(ctx, from, id)
		if err != nil {
			return Pod{}, err
		}
		return s.reconcilePod(r, reported), nil
	})
	if err != nil && known {
		return held, nil
	}
	return p, err
}

// ReadContainer returns the container with this ID, asking the backend for it
// and for its pod if they are not known. See [Store.ReadPod].
func (s *Store) ReadContainer(ctx context.Context, from Backend, id string) (Container, error) {
	held, known := s.Container(id)
	if known && !held.ByListAlone() {
		return held, nil
	}
	c, err := shared(ctx, &s.flights, "container "+id, func(ctx context.Context) (Container, error) {
		r := s.begin(id)
		defer s.end(r)
		reported, err := s.fetchContainer(ctx, from, id)
		if err != nil {
			return Container{}, err
		}
		if reported.PodID == "" {
			if reported.PodID, err = fetchPodOf(ctx, from, reported.ID); err != nil {
				return Container{}, err
			}
		}
		if _, err := s.ReadPod(ctx, from, reported.PodID); err != nil {
			return Container{}, err
		}
		return s.reconcileContainer(r, reported), nil
	})
	if err != nil && known {
		return held, nil
	}
	return c, err
}

// shared runs f once for all who ask for key meanwhile. It outlives the caller
// that came first, because others wait for it too.
func shared[T any](ctx context.Context, flights *singleflight.Group, key string, f func(context.Context) (T, error)) (T, error) {
	done := flights.DoChan(key, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
		defer cancel()
		return f(ctx)
	})
	var none T
	select {
	case <-ctx.Done():
		return none, fmt.Errorf("reading %s from the backend: %w", key, ctx.Err())
	case r := <-done:
		if r.Err != nil {
			return none, r.Err
		}
		return r.Val.(T), nil
	}
}

// reads is one look at pods and containers of the backend.
type reads struct {
	pods       *reading[Pod]
	containers *reading[Container]
}

// begin starts to read a pod or a container with this ID, or all with "". Of
// pods it follows all: with its pod a container goes too.
func (s *Store) begin(of string) reads {
	s.mu.Lock()
	defer s.mu.Unlock()
	return reads{s.pods.begin(""), s.containers.begin(of)}
}

func (s *Store) end(r reads) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pods.end(r.pods)
	s.containers.end(r.containers)
}

func (s *Store) reconcilePod(r reads, reported reportedPod) Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, _ := s.pods.reconcile(r.pods, reported.ID, reported.mergeInto)
	return p
}

func (s *Store) reconcileContainer(r reads, reported reportedContainer) Container {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pods.removed(r.pods, reported.PodID) {
		return reported.mergeInto(Container{}, false)
	}
	c, held := s.containers.reconcile(r.containers, reported.ID, reported.mergeInto)
	if held {
		s.enlist(c)
	}
	return c
}

// errGone is why a pod or container could not be read that the backend no longer
// lists, whatever it answers for its status.
var errGone = errors.New("the backend does not have it")

func fetchPod(ctx context.Context, from Backend, id string) (reported reportedPod, err error) {
	defer wrap(&err, "pod sandbox", id)
	resp, err := from.PodSandboxStatus(ctx, &runtimeapi.PodSandboxStatusRequest{PodSandboxId: id, Verbose: true})
	if !ofObject(err) {
		if err != nil {
			return reportedPod{}, err
		}
		return readPodStatus(resp)
	}
	list, listErr := from.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{Filter: &runtimeapi.PodSandboxFilter{Id: id}})
	if listErr == nil && len(list.GetItems()) == 0 {
		return reportedPod{}, fmt.Errorf("%w: %w", errGone, err)
	}
	return reportedPod{}, err
}

func (s *Store) fetchContainer(ctx context.Context, from Backend, id string) (reported reportedContainer, err error) {
	defer wrap(&err, "container", id)
	resp, err := from.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id, Verbose: true})
	if ofObject(err) {
		list, listErr := from.ListContainers(ctx, &runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{Id: id}})
		if listErr == nil && len(list.GetContainers()) == 0 {
			err = fmt.Errorf("%w: %w", errGone, err)
		}
	}
	if err != nil {
		return reportedContainer{}, err
	}
	if reported, err = readContainerStatus(resp); err != nil {
		return reported, err
	}

	// The kernel tells the cgroup of the container's process, and its resources if the runtime did not. The pid of a container
	// that does not run may belong to another process by now.
	alive := reported.State == runtimeapi.ContainerState_CONTAINER_CREATED || reported.State == runtimeapi.ContainerState_CONTAINER_RUNNING
	if s.kernel == nil || reported.pid <= 0 || !alive {
		return reported, nil
	}
	group, groupErr := s.kernel.Group(reported.pid, reported.ID)
	if groupErr != nil {
		return reported, nil // another pid namespace than the runtime's: what it reports has to do
	}
	reported.CgroupsPath = group
	if reported.now != nil || reported.Unreported&allResources == 0 {
		return reported, nil
	}
	if res, parts, err := s.kernel.Resources(group); err == nil {
		reported.ofKernel, reported.kernelParts = res, parts
	}
	return reported, nil
}

// ofObject reports whether a status call failed because of the object that it asks
// for, and not because of the backend or the caller. cri-dockerd answers code Unknown
// for a sandbox that has only its checkpoint left. That the answer takes too long may be because of either.
func ofObject(err error) bool {
	switch status.Code(err) {
	case codes.OK, codes.NotFound, codes.Canceled, codes.Unavailable, codes.ResourceExhausted, codes.Unimplemented:
		return false
	}
	return true
}

// fetchPodOf finds the pod of a container where the verbose status does not say.
func fetchPodOf(ctx context.Context, from Backend, id string) (podID string, err error) {
	defer wrap(&err, "container", id)
	resp, err := from.ListContainers(ctx, &runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{Id: id}})
	if err != nil {
		return "", err
	}
	for _, c := range resp.GetContainers() {
		if c.GetId() == id {
			return c.GetPodSandboxId(), nil
		}
	}
	return "", fmt.Errorf("the backend does not list it")
}

// wrap says whose reading failed, also when it panicked: it runs in goroutines
// where nobody else would catch that.
func wrap(err *error, kind, id string) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
	}
	if *err != nil {
		*err = fmt.Errorf("reading %s %s from the backend: %w", kind, id, *err)
	}
}
