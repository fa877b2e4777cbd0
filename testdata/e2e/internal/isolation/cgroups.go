package isolation

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/moby/sys/mountinfo"
)

// cgroupMount is where the machine has its cgroup hierarchies, and where the
// node inside finds the part of them that is its own.
const cgroupMount = "/sys/fs/cgroup"

// cgroupName is the cgroup of a run, in every hierarchy.
func cgroupName(run string) string { return "wpe2e-" + run }

// cgroups are the mounts of the cgroup hierarchies, version 1 and 2. A machine with version 2 alone has one.
type cgroups []*mountinfo.Info

func cgroupHierarchies() (cgroups, error) {
	mounts, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) {
		return !strings.HasPrefix(m.Mountpoint+"/", cgroupMount+"/") || !strings.HasPrefix(m.FSType, "cgroup"), false
	})
	if err != nil {
		return nil, fmt.Errorf("listing the cgroup mounts: %w", err)
	}
	return mounts, nil
}

// check reports controllers and files that the tests read and this kernel lacks.
func (c cgroups) check() error {
	var errs []error
	for _, need := range []string{
		"cpu/cpu.cfs_quota_us", "cpuset/cpuset.cpus", "cpuacct", "memory/memory.limit_in_bytes",
		"devices", "freezer", "pids", "cpu/cpu.cfs_burst_us", "cpu/cpu.idle",
	} {
		if _, err := os.Stat(filepath.Join(cgroupMount, need)); err != nil {
			errs = append(errs, fmt.Errorf("the tests need cgroup version 1 with this file: %w", err))
		}
	}
	return errors.Join(errs...)
}

// dir is a run's cgroup in one hierarchy, seen from outside.
func dir(hierarchy *mountinfo.Info, run string) string {
	return filepath.Join(hierarchy.Mountpoint, cgroupName(run))
}

func (c cgroups) create(run string) error {
	for _, h := range c {
		if err := os.Mkdir(dir(h, run), 0o755); err != nil {
			return fmt.Errorf("making the run's cgroup: %w", err)
		}
	}
	return c.inheritCpuset(run)
}

// inheritCpuset copies the root's CPUs and memory nodes: a new cpuset of
// version 1 has none, and no process can join it.
func (c cgroups) inheritCpuset(run string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(cgroupMount, "cpuset", file))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(cgroupMount, "cpuset", cgroupName(run), file), value, 0); err != nil {
			return err
		}
	}
	return nil
}

// join moves the calling process into the run's cgroups.
func (c cgroups) join(run string) error {
	for _, h := range c {
		if err := os.WriteFile(filepath.Join(dir(h, run), "cgroup.procs"), []byte("0"), 0); err != nil {
			return fmt.Errorf("joining the run's cgroup: %w", err)
		}
	}
	return nil
}

// remove removes the run's cgroups with all below them. Their processes are
// gone or going: the kernel frees a cgroup a moment after its last one.
func (c cgroups) remove(run string) error {
	var errs []error
	for _, h := range c {
		errs = append(errs, removeTree(dir(h, run)))
	}
	return errors.Join(errs...)
}

// RemoveCgroup removes a cgroup of the node inside, with all below it, from every hierarchy.
func RemoveCgroup(path string) error {
	hierarchies, err := cgroupHierarchies()
	if err != nil {
		return err
	}
	var errs []error
	for _, h := range hierarchies {
		errs = append(errs, removeTree(filepath.Join(h.Mountpoint, path)))
	}
	return errors.Join(errs...)
}

func removeTree(root string) error {
	var dirs []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("listing cgroups to remove: %w", err)
	}
	for _, d := range slices.Backward(dirs) { // children come after their parents
		if err := removeSoon(d); err != nil {
			return fmt.Errorf("removing a cgroup: %w", err)
		}
	}
	return nil
}

func removeSoon(cgroup string) error {
	deadline := time.Now().Add(time.Minute)
	for {
		err := os.Remove(cgroup)
		switch {
		case err == nil, errors.Is(err, fs.ErrNotExist):
			return nil
		case !errors.Is(err, syscall.EBUSY) || time.Now().After(deadline):
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}
