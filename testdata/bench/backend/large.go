package backend

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	// LargeListLabel is the label that a ListContainers filter selects by to get LargeList.
	LargeListLabel = "bench.wasmproxy.io/large"

	// largeSize is the most that kubelet and containerd take: 16 MiB in both.
	largeSize = 16 << 20
)

// LargeList returns the list with most containers that kubelet accepts, each of about the size that
// a node's are.
func LargeList() *cri.ListContainersResponse {
	list := &cri.ListContainersResponse{}
	for size := 0; ; {
		next := &cri.ListContainersResponse{Containers: []*cri.Container{container(len(list.Containers))}}
		if size += proto.Size(next); size > largeSize {
			return list
		}
		list.Containers = append(list.Containers, next.Containers[0])
	}
}

func container(n int) *cri.Container {
	name, uid := fmt.Sprintf("worker-%d", n), fmt.Sprintf("9e107d9d-372b-4f5d-9b6c-%012x", n)
	return &cri.Container{
		Id:           fmt.Sprintf("%064x", n),
		PodSandboxId: fmt.Sprintf("%064x", n/2),
		Metadata:     &cri.ContainerMetadata{Name: name},
		Image:        &cri.ImageSpec{Image: fmt.Sprintf("registry.example/team/worker@sha256:%064x", n/10), UserSpecifiedImage: "registry.example/team/worker:v1.2.3"},
		ImageRef:     fmt.Sprintf("sha256:%064x", n/10),
		ImageId:      fmt.Sprintf("sha256:%064x", n/10),
		State:        cri.ContainerState_CONTAINER_RUNNING,
		CreatedAt:    1_700_000_000_000_000_000 + int64(n),
		Labels: map[string]string{
			"io.kubernetes.container.name": name,
			"io.kubernetes.pod.name":       name,
			"io.kubernetes.pod.namespace":  "production",
			"io.kubernetes.pod.uid":        uid,
		},
		Annotations: map[string]string{
			"io.kubernetes.container.hash":                     "5fb1a4c5",
			"io.kubernetes.container.ports":                    `[{"name":"http","containerPort":8080,"protocol":"TCP"}]`,
			"io.kubernetes.container.restartCount":             "0",
			"io.kubernetes.container.terminationMessagePath":   "/dev/termination-log",
			"io.kubernetes.container.terminationMessagePolicy": "File",
			"io.kubernetes.pod.terminationGracePeriod":         "30",
		},
	}
}
