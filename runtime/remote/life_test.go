package remote_test

import (
	"encoding/json"
	"math/rand/v2"
	"strconv"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// life is what kubelet asks for one container.
type life struct {
	run     *runtimeapi.RunPodSandboxRequest
	create  *runtimeapi.CreateContainerRequest
	updates []*runtimeapi.UpdateContainerResourcesRequest
}

func newLife(rng *rand.Rand, bare bool) life {
	o := newOverlay(rng)
	o.Bare = bare
	var updates []*runtimeapi.UpdateContainerResourcesRequest
	for i := range 4 {
		// kubelet's CPU manager sends a cpuset and nothing else.
		update := &runtimeapi.LinuxContainerResources{CpusetCpus: pick(rng, "0-2", "7")}
		if rng.IntN(2) == 0 {
			update = newResources(rng)
			update.OomScoreAdj, update.HugepageLimits = 0, nil // the incumbent drops these of an update
		}
		if i > 0 { // the server answers otherwise than before
			low := strconv.Itoa(i)
			update.Unified = map[string]string{"memory.low": low}
			o.Then[low] = newOverlay(rng)
		}
		updates = append(updates, &runtimeapi.UpdateContainerResourcesRequest{ContainerId: "container", Linux: update})
	}
	overlay, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	pod := &runtimeapi.PodSandboxConfig{
		Metadata:    &runtimeapi.PodSandboxMetadata{Name: "web-0", Namespace: "shop", Uid: "uid", Attempt: 1},
		Labels:      map[string]string{"app": "web"},
		Annotations: map[string]string{"overlay": string(overlay)},
		Linux:       &runtimeapi.LinuxPodSandboxConfig{CgroupParent: "/kubepods/besteffort/poduid"},
	}
	container := &runtimeapi.ContainerConfig{
		Metadata:    &runtimeapi.ContainerMetadata{Name: "app"},
		Annotations: map[string]string{"io.kubernetes.restartCount": "0"},
		Envs:        []*runtimeapi.KeyValue{{Key: "PATH", Value: []byte("/bin")}, {Key: "EMPTY"}},
		Linux:       &runtimeapi.LinuxContainerConfig{Resources: newResources(rng)},
	}
	return life{
		run:     &runtimeapi.RunPodSandboxRequest{Config: pod, RuntimeHandler: "runc"},
		create:  &runtimeapi.CreateContainerRequest{PodSandboxId: "pod", Config: container, SandboxConfig: proto.CloneOf(pod)},
		updates: updates,
	}
}

// newResources returns resources in kubelet's ranges. It always sets a score.
func newResources(rng *rand.Rand) *runtimeapi.LinuxContainerResources {
	return &runtimeapi.LinuxContainerResources{
		CpuPeriod: pick[int64](rng, 0, 100000), CpuQuota: pick[int64](rng, 0, -1, 20000), CpuShares: pick[int64](rng, 2, 1024),
		MemoryLimitInBytes: pick[int64](rng, 0, 1<<30), MemorySwapLimitInBytes: pick[int64](rng, 0, 2<<30),
		OomScoreAdj: pick[int64](rng, -997, 900, 1000), CpusetCpus: pick(rng, "", "0-3"), CpusetMems: pick(rng, "", "0"),
		HugepageLimits: pick(rng, nil, []*runtimeapi.HugepageLimit{{PageSize: "2MB"}, {PageSize: "1GB", Limit: 1 << 30}}),
		Unified:        pick(rng, nil, map[string]string{"memory.oom.group": "1"}),
	}
}

// overlay is what the hook server of testdata/koordinator writes over its echo,
// in koordlet's ranges.
type overlay struct {
	Labels       map[string]string  `json:",omitempty"`
	Annotations  map[string]string  `json:",omitempty"`
	CgroupParent string             `json:",omitempty"`
	CPUSet       *string            `json:",omitempty"`
	Quota        *int64             `json:",omitempty"`
	Shares       *int64             `json:",omitempty"`
	Memory       *int64             `json:",omitempty"`
	Env          map[string]string  `json:",omitempty"`
	Then         map[string]overlay `json:",omitempty"`
	Bare         bool               // the overlay is all of the answer
}

func newOverlay(rng *rand.Rand) overlay {
	return overlay{
		Then:         map[string]overlay{},
		Labels:       pick(rng, nil, map[string]string{"app": "shop", "koordinator.sh/qosClass": "BE"}),
		Annotations:  pick(rng, nil, map[string]string{"example.com/by": "koordlet"}),
		CgroupParent: pick(rng, "", "/kubepods/besteffort/poduid/other"),
		CPUSet:       pick(rng, nil, new(""), new("2")),
		Quota:        pick(rng, nil, new(int64(-1)), new(int64(5000))),
		Shares:       pick(rng, nil, new(int64(2)), new(int64(512))),
		Memory:       pick(rng, nil, new(int64(1<<29))), // -1 lifts a limit here, and counts for nothing there
		Env:          pick(rng, nil, map[string]string{"PATH": "/opt/bin", "NVIDIA_VISIBLE_DEVICES": "0"}),
	}
}

func pick[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }
