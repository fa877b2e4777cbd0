package isolation

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// hidden are the directories in which the parts of a node keep their state,
// some at paths that no option moves. Inside, each is a directory of the
// workspace, so every part runs with its ordinary paths.
var hidden = []string{"/run", "/var/lib", "/var/log"}

// enterMounts gives the mount namespace its own view. It ends shared, as a
// node's is: volumes and sandboxes propagate from one process to the next.
func enterMounts(w Workspace) error {
	for _, d := range hidden {
		if strings.HasPrefix(w.Dir, d+"/") {
			return fmt.Errorf("the cache lies in %s, which the node inside has for itself: set WASMPROXY_CACHE to another directory", d)
		}
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making the mounts private: %w", err)
	}
	for _, step := range []func(Workspace) error{mountProc, mountCgroups, silenceResolver, hideDirectories} {
		if err := step(w); err != nil {
			return err
		}
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("making the mounts shared: %w", err)
	}
	return nil
}

func mountProc(Workspace) error {
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mounting /proc for the pid namespace: %w", err)
	}
	return nil
}

// mountCgroups replaces the machine's cgroup mounts by mounts of the same
// hierarchies, whose root in this cgroup namespace is the run's cgroup.
func mountCgroups(Workspace) error {
	hierarchies, err := cgroupHierarchies()
	if err != nil {
		return err
	}
	if err := unix.Unmount(cgroupMount, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmounting %s: %w", cgroupMount, err)
	}
	if err := unix.Mount("cgroup", cgroupMount, "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mounting %s: %w", cgroupMount, err)
	}
	for _, h := range hierarchies {
		if err := os.MkdirAll(h.Mountpoint, 0o755); err != nil {
			return err
		}
		if err := unix.Mount("cgroup", h.Mountpoint, h.FSType, 0, cgroupOptions(h)); err != nil {
			return fmt.Errorf("mounting %s: %w", h.Mountpoint, err)
		}
	}
	return nil
}

// cgroupOptions picks from a hierarchy's options those that say which it is.
func cgroupOptions(h *mountinfo.Info) string {
	if h.FSType == "cgroup2" {
		return ""
	}
	var options []string
	for option := range strings.SplitSeq(h.VFSOptions, ",") {
		switch {
		case option == "rw", option == "xattr", strings.HasPrefix(option, "release_agent="):
		default:
			options = append(options, option)
		}
	}
	return strings.Join(options, ",")
}

// silenceResolver makes every look-up of a name fail at once: there is no
// network inside, and kubelet waits 10 s per look-up for a server that is not there.
func silenceResolver(w Workspace) error {
	file := w.Path("resolv.conf")
	if err := os.WriteFile(file, []byte("nameserver 127.0.0.1\n"), 0o644); err != nil {
		return err
	}
	target, err := filepath.EvalSymlinks("/etc/resolv.conf")
	if err != nil {
		return fmt.Errorf("finding the resolver's configuration: %w", err)
	}
	if err := unix.Mount(file, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mounting over %s: %w", target, err)
	}
	return nil
}

func hideDirectories(w Workspace) error {
	for _, d := range hidden {
		own := w.Path("hidden", d)
		if err := os.MkdirAll(own, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(own, d, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mounting the run's own %s: %w", d, err)
		}
	}
	return nil
}
