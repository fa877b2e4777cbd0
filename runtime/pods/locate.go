package pods

import (
	"cmp"
	"context"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Located notes where the cgroup of a container was found, which never moves. What the backend or
// the kernel has reported stays.
func (s *Store) Located(id, group string) {
	s.editContainer(id, func(c Container) Container {
		c.CgroupsPath = cmp.Or(c.CgroupsPath, group)
		return c
	})
}

// Locate asks the backend once where a container's cgroup is that was seen being
// created, and returns its record with the answer, which the store keeps. An error
// of the backend is wrapped.
func (s *Store) Locate(ctx context.Context, from Backend, id string) (Container, error) {
	return shared(ctx, &s.flights, "cgroup of "+id, func(ctx context.Context) (Container, error) {
		reported, err := s.fetchContainer(ctx, from, id)
		if err != nil {
			return Container{}, err
		}
		s.editContainer(reported.ID, func(c Container) Container {
			c.CgroupsPath = cmp.Or(reported.CgroupsPath, c.CgroupsPath)
			if reported.State == runtimeapi.ContainerState_CONTAINER_EXITED { // it never leaves this state
				c.State = reported.State
			}
			return reported.withKernel(c)
		})
		c, _ := s.Container(reported.ID)
		return c, nil
	})
}
