package isolation

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// checkMachine reports all that the machine lacks, at once, and else its cgroup hierarchies.
func checkMachine() (cgroups, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("root is needed: the tests make namespaces, mounts and cgroups")
	}
	hierarchies, err := cgroupHierarchies()
	if err != nil {
		return nil, err
	}
	return hierarchies, errors.Join(hierarchies.check(), checkOverlay())
}

// checkOverlay makes sure that the kernel has the file system of containerd's snapshotter.
func checkOverlay() error {
	if knowsFileSystem("overlay") {
		return nil
	}
	out, err := exec.Command("modprobe", "overlay").CombinedOutput()
	if err != nil || !knowsFileSystem("overlay") {
		return fmt.Errorf("the kernel has no overlay file system (modprobe overlay: %s)", bytes.TrimSpace(out))
	}
	return nil
}

func knowsFileSystem(name string) bool {
	known, err := os.ReadFile("/proc/filesystems")
	return err == nil && bytes.Contains(known, []byte("\t"+name+"\n"))
}
