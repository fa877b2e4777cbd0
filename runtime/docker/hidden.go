package docker

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// In each version of the API, Docker up to 25.0 takes limits and privileges of a container also from
// places where plugins do not see them. No client uses them that is younger than Docker 1.12, of 2016.

// hostFields are the fields of HostConfig, and Cpuset, which Docker reads at the top of the body of
// ContainerCreate, too. They are those of github.com/moby/moby/api/types/container.
const hostFields = ` Binds ContainerIDFile LogConfig NetworkMode PortBindings RestartPolicy AutoRemove VolumeDriver VolumesFrom ConsoleSize
	Annotations CapAdd CapDrop Capabilities CgroupnsMode Dns DnsOptions DnsSearch ExtraHosts GroupAdd IpcMode Cgroup Links OomScoreAdj PidMode
	Privileged PublishAllPorts ReadonlyRootfs SecurityOpt StorageOpt Tmpfs UTSMode UsernsMode ShmSize Sysctls Runtime Isolation Mounts
	MaskedPaths ReadonlyPaths Init CpuShares Memory NanoCpus CgroupParent BlkioWeight BlkioWeightDevice BlkioDeviceReadBps
	BlkioDeviceWriteBps BlkioDeviceReadIOps BlkioDeviceWriteIOps CpuPeriod CpuQuota CpuRealtimePeriod CpuRealtimeRuntime CpusetCpus
	CpusetMems Cpuset Devices DeviceCgroupRules DeviceRequests KernelMemory KernelMemoryTCP MemoryReservation MemorySwap
	MemorySwappiness OomKillDisable PidsLimit Ulimits CpuCount CpuPercent IOMaximumIOps IOMaximumBandwidth `

// zeros are values by which a field changes nothing.
var zeros = []string{"null", "0", "false", `""`, "[]", "{}"}

// hidden says which part of the body of ContainerCreate Docker may read and plugins would not see;
// nil if there is none.
func hidden(body []byte) error {
	all, _, err := membersOf(body)
	if err != nil {
		return fmt.Errorf("its body cannot be decoded: %w", err)
	}
	configs := 0
	for _, m := range all {
		if strings.EqualFold(m.name, "HostConfig") {
			configs++
		}
		isHost := func(name string) bool { return strings.EqualFold(name, m.name) }
		if slices.ContainsFunc(strings.Fields(hostFields), isHost) && !slices.Contains(zeros, string(m.value)) {
			return fmt.Errorf("%q is outside of HostConfig; put it into HostConfig", m.name)
		}
	}
	if configs > 1 {
		return errors.New("HostConfig is there more than once; put all of it into one")
	}
	return nil
}
