package pods

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// A full node: kubelet's default is 110 pods, some run 500.
const benchPods, benchContainers = 500, 3

func fullStore(b *testing.B) *Store {
	s := NewStore()
	if err := s.Sync(b.Context(), bigNode(benchPods, benchContainers)); err != nil {
		b.Fatal(err)
	}
	return s
}

func BenchmarkObserve(b *testing.B) {
	s := fullStore(b)
	b.Run("CreateAndRemoveContainer", func(b *testing.B) {
		b.ReportAllocs()
		config := appConfig()
		for b.Loop() {
			create(s, "bench", "pod-00001", config)
			removeContainer(s, "bench")
		}
	})
	b.Run("UpdateContainerResources", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			update(s, "pod-00001-1", &runtimeapi.LinuxContainerResources{CpusetCpus: fmt.Sprint(i % 64)})
		}
	})
	b.Run("StartContainer", func(b *testing.B) {
		b.ReportAllocs()
		req := &runtimeapi.StartContainerRequest{ContainerId: "pod-00001-1"}
		for b.Loop() {
			s.Observe(nil, req, nil)
		}
	})
}

func BenchmarkLookup(b *testing.B) {
	s := fullStore(b)
	for name, look := range map[string]func() bool{
		"Pod":           func() bool { _, ok := s.Pod("pod-00250"); return ok },
		"Container":     func() bool { _, ok := s.Container("pod-00250-1"); return ok },
		"Unknown":       func() bool { _, ok := s.Container("unknown"); return !ok },
		"Containers":    func() bool { return len(s.Containers("pod-00250")) == benchContainers },
		"Pods":          func() bool { return len(s.Pods()) == benchPods },
		"FindPodByName": func() bool { _, ok := s.FindPodByName("wasmproxy-test", "none"); return !ok },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !look() {
					b.Fatal("wrong answer")
				}
			}
		})
	}
	b.Run("ContainerParallel", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				s.Container("pod-00250-1")
			}
		})
	})
}

// BenchmarkSync500 reads a full node whose runtime answers at once, with what
// containerd says of a container: what is left is the store's own work.
func BenchmarkSync500(b *testing.B) {
	pod, container := recorded(b, "../../testdata/cri/containerd-2.4.2.json")
	n := bigNode(benchPods, benchContainers)
	for id := range n.pods {
		n.pods[id] = proto.CloneOf(pod)
		n.pods[id].Status.Id = id
	}
	for id := range n.containers {
		n.containers[id] = proto.CloneOf(container)
		n.containers[id].Status.Id = id
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := NewStore().Sync(b.Context(), n); err != nil {
			b.Fatal(err)
		}
	}
}

func recorded(b *testing.B, file string) (pod *runtimeapi.PodSandboxStatusResponse, container *runtimeapi.ContainerStatusResponse) {
	for _, e := range load(b, file) {
		switch e.Method {
		case "PodSandboxStatus":
			_, m := e.messages(b)
			pod = m.(*runtimeapi.PodSandboxStatusResponse)
		case "ContainerStatus":
			_, m := e.messages(b)
			container = m.(*runtimeapi.ContainerStatusResponse)
		}
	}
	return pod, container
}
