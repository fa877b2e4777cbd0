package suite_test

import (
	"fmt"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/image"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// staticPod is a pod on the host's network whose containers tick once a second.
func staticPod(name string, containers ...core.Container) *core.Pod {
	grace := int64(1)
	return &core.Pod{
		TypeMeta:   meta.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: meta.ObjectMeta{Name: name, Namespace: "default"},
		Spec: core.PodSpec{
			HostNetwork:                   true,
			TerminationGracePeriodSeconds: &grace,
			Containers:                    containers,
		},
	}
}

func ticking(name string, resources core.ResourceRequirements) core.Container {
	return core.Container{
		Name: name, Image: image.Busybox, Resources: resources,
		Command: []string{"sh", "-c", "trap 'exit 0' TERM; while true; do echo tick; sleep 1 & wait $!; done"},
	}
}

func quantities(cpu, memory string) core.ResourceList {
	return core.ResourceList{core.ResourceCPU: resource.MustParse(cpu), core.ResourceMemory: resource.MustParse(memory)}
}

func TestDirect(t *testing.T) {
	node.StartContainerd(t)
	k := node.StartKubelet(t, node.ContainerdEndpoint, nil)
	pod := staticPod("hello", ticking("main", core.ResourceRequirements{Limits: quantities("250m", "128Mi")}))
	k.Apply(t, pod)
	node.Eventually(t, 30*time.Second, "the pod runs", func() error {
		p, err := k.Pod(t.Context(), pod)
		if err != nil {
			return err
		}
		if p.Status.Phase != core.PodRunning {
			return fmt.Errorf("%v", p.Status)
		}
		return nil
	})
}
