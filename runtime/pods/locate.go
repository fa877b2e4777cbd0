package pods

import (
	"cmp"
	"context"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Located notes where the cgroup of a container was found, which never moves. What the backend or
// the kernel has reported stays.
func (s *Store) Located(id, group string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.containers.edit(id, func(c Container) Container {
		c.CgroupsPath = cmp.Or(c.CgroupsPath, group)
		return c
	})
}

// Locate asks the backend once where a container's cgroup is that was seen being
// created, and returns its record with the answer, which the store keeps. That it has ended counts if
// no call has changed it meanwhile: in Docker a container may start again. An error of the backend is wrapped.
func (s *Store) Locate(ctx context.Context, from Backend, id string) (Container, error) {
	return shared(ctx, &s.flights, "cgroup of "+id, func(ctx context.Context) (Container, error) {
		r := s.begin(id)
		defer s.end(r)
		reported, err := s.fetchContainer(ctx, from, id)
		if err != nil {
			return Container{}, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		ended := reported.State == runtimeapi.ContainerState_CONTAINER_EXITED && s.containers.outlived(r.containers, reported.ID)
		s.containers.edit(reported.ID, func(c Container) Container {
			c.CgroupsPath = cmp.Or(reported.CgroupsPath, c.CgroupsPath)
			if ended {
				c.State = reported.State
			}
			return reported.withKernel(c)
		})
		_, c, _ := s.containers.find(reported.ID)
		return c, nil
	})
}
