package suite_test

import (
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/image"
)

// staticPod is a pod on the host's network.
func staticPod(name string, containers ...core.Container) *core.Pod {
	return &core.Pod{
		TypeMeta:   meta.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: meta.ObjectMeta{Name: name, Namespace: "default"},
		Spec: core.PodSpec{
			HostNetwork:                   true,
			TerminationGracePeriodSeconds: ptr.To[int64](1),
			Containers:                    containers,
		},
	}
}

// ticking is a container that prints a line a second until it is told to end.
func ticking(name string, resources core.ResourceRequirements) core.Container {
	return core.Container{
		Name: name, Image: image.Busybox, Resources: resources,
		Command: []string{"sh", "-c", "trap 'exit 0' TERM; while true; do echo tick; sleep 1 & wait $!; done"},
		Env:     []core.EnvVar{{Name: "GREETING", Value: "hello"}, {Name: "NOTHING"}},
	}
}

func limits(cpu, memory string) core.ResourceRequirements {
	return core.ResourceRequirements{Limits: quantities(cpu, memory)}
}

func requests(cpu, memory string) core.ResourceRequirements {
	return core.ResourceRequirements{Requests: quantities(cpu, memory)}
}

func quantities(cpu, memory string) core.ResourceList {
	return core.ResourceList{core.ResourceCPU: resource.MustParse(cpu), core.ResourceMemory: resource.MustParse(memory)}
}
