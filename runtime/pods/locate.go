package pods

import (
	"cmp"
	"context"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Locate asks the backend once where a container's cgroup is that was seen being
// created, and returns its record with the answer, which the store keeps. An error
// of the backend is wrapped.
func (s *Store) Locate(ctx context.Context, from Backend, id string) (Container, error) {
	return shared(ctx, &s.flights, "cgroup of "+id, func(ctx context.Context) (Container, error) {
		told, err := s.askContainer(ctx, from, id)
		if err != nil {
			return Container{}, err
		}
		s.editContainer(told.ID, func(c Container) Container {
			c.CgroupsPath = cmp.Or(told.CgroupsPath, c.CgroupsPath)
			if told.State == runtimeapi.ContainerState_CONTAINER_EXITED { // from which it never comes back
				c.State = told.State
			}
			return told.asKernelSays(c)
		})
		c, _ := s.Container(told.ID)
		return c, nil
	})
}
