package pods

import (
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// LayResources lays the fields that over sets (not zero, not empty) on a copy of
// base, as runtimes do: kubelet's CPU manager sends cpuset_cpus alone. Hugepage
// limits merge by page size, unified by key, fields that this program does not
// know by number.
func LayResources(base, over *runtimeapi.LinuxContainerResources) *runtimeapi.LinuxContainerResources {
	res := &runtimeapi.LinuxContainerResources{}
	if base != nil {
		res = proto.CloneOf(base)
	}
	// proto.Merge appends lists and unknown fields: without bound, over a life of updates.
	hugepages := slices.Clone(res.GetHugepageLimits())
	for _, o := range over.GetHugepageLimits() {
		same := func(b *runtimeapi.HugepageLimit) bool { return b.GetPageSize() == o.GetPageSize() }
		if i := slices.IndexFunc(hugepages, same); i >= 0 {
			hugepages[i] = o
		} else {
			hugepages = append(hugepages, o)
		}
	}
	unknown := res.ProtoReflect().GetUnknown()
	if more := over.ProtoReflect().GetUnknown(); len(more) > 0 {
		set := map[protowire.Number]bool{}
		eachField(more, func(n protowire.Number, _ []byte) { set[n] = true })
		var sum []byte
		eachField(unknown, func(n protowire.Number, field []byte) {
			if !set[n] {
				sum = append(sum, field...)
			}
		})
		unknown = append(sum, more...)
	}
	proto.Merge(res, over)
	res.HugepageLimits = hugepages
	res.ProtoReflect().SetUnknown(unknown)
	return res
}

// eachField splits encoded fields. Unknown fields of a decoded message are
// always well-formed; it stops where they are not.
func eachField(b []byte, f func(protowire.Number, []byte)) {
	for len(b) > 0 {
		num, _, n := protowire.ConsumeField(b)
		if n < 0 {
			return
		}
		f(num, b[:n])
		b = b[n:]
	}
}

// withResources returns config with over laid on its Linux resources. The
// config itself does not change.
func withResources(config *runtimeapi.ContainerConfig, over *runtimeapi.LinuxContainerResources) *runtimeapi.ContainerConfig {
	if over == nil {
		return config
	}
	base := config.GetLinux().GetResources()
	res := LayResources(base, over)
	if proto.Equal(res, base) {
		return config
	}
	config = proto.CloneOf(config)
	if config.Linux == nil {
		config.Linux = &runtimeapi.LinuxContainerConfig{}
	}
	config.Linux.Resources = res
	return config
}

// withPodResources returns config with this overhead and these resources; nil
// leaves what is there.
func withPodResources(
	config *runtimeapi.PodSandboxConfig, overhead, resources *runtimeapi.LinuxContainerResources,
) *runtimeapi.PodSandboxConfig {
	if overhead == nil && resources == nil {
		return config
	}
	config = proto.CloneOf(config)
	if config.Linux == nil {
		config.Linux = &runtimeapi.LinuxPodSandboxConfig{}
	}
	if overhead != nil {
		config.Linux.Overhead = overhead
	}
	if resources != nil {
		config.Linux.Resources = resources
	}
	return config
}

// asOfNow returns config with the resources that the backend says the container
// has now, which differ from those it was created with after an update. Three
// of the backend's values are its own doing and are left out: see RATIONALE.md.
func asOfNow(config *runtimeapi.ContainerConfig, now *runtimeapi.LinuxContainerResources) *runtimeapi.ContainerConfig {
	if now == nil {
		return config
	}
	base := config.GetLinux().GetResources()
	now = proto.CloneOf(now)
	now.OomScoreAdj = 0
	if base.GetMemorySwapLimitInBytes() == 0 && now.GetMemorySwapLimitInBytes() == now.GetMemoryLimitInBytes() {
		now.MemorySwapLimitInBytes = 0
	}
	if base == nil && proto.Size(now) == 0 {
		return config
	}
	return withResources(config, now)
}
