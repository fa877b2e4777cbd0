package node

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/isolation"
)

// CgroupDriverVariable names the cgroup driver of kubelet and the runtime.
const CgroupDriverVariable = "E2E_CGROUP_DRIVER"

// Cgroup drivers.
const (
	Cgroupfs = "cgroupfs"
	Systemd  = "systemd" // it needs a machine whose process 1 is systemd
)

// CgroupDriver is the one that [CgroupDriverVariable] names, cgroupfs unless set.
func CgroupDriver() string { return cmp.Or(os.Getenv(CgroupDriverVariable), Cgroupfs) }

// PodGroup returns the cgroup that kubelet gives a burstable pod of this uid, as CRI has it.
func PodGroup(uid string) string {
	if CgroupDriver() == Systemd {
		return "kubepods-burstable-pod" + strings.ReplaceAll(uid, "-", "_") + ".slice"
	}
	return "/kubepods/burstable/pod" + uid
}

// removePodGroups removes the cgroups of pods, which are empty.
func removePodGroups() error {
	if CgroupDriver() != Systemd {
		return isolation.RemoveCgroup("kubepods")
	}
	if out, err := exec.Command("systemctl", "stop", "kubepods.slice").CombinedOutput(); err != nil {
		return fmt.Errorf("stopping the slice of pods: %w: %s", err, out)
	}
	return nil
}
