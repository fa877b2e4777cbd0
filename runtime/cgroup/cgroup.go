// Package cgroup reads and writes the files of a container's or a pod's cgroup, on cgroup
// v1 and v2.
//
// A file goes by its cgroup v2 name everywhere ("cpu.max.burst" in
// microseconds, also where the kernel calls it cpu/cpu.cfs_burst_us), so that a
// plugin is written once. Only the files of one table can be named, and a value
// is parsed before the kernel sees it. No path leaves the cgroup root: a group is
// opened beneath it without following links, and may not be the root group or hold "..".
//
// The package also suspends such values while the container runtime updates resources:
// the kernel refuses new shares for an idle group, and a quota below the burst.
// See [FS.SuspendForUpdate], and RATIONALE.md for what was measured.
//
// Of a unit of systemd, package systemd has systemd keep what was written.
//
// It is not a cgroup driver: it makes, moves and removes no group, and remembers no wanted value beyond an update in
// flight. It knows neither CRI nor plugins.
package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/wasmproxy/wasmproxy/runtime/cgroup/systemd"
)

// FS gives access to the cgroups beneath one root. Its methods may be called
// from several goroutines at once.
type FS struct {
	path    string
	version int
	dirs    map[string]*os.File // directories that hold groups, by v1 controller; v2 has one: see whole

	mounted bool             // and not plain files
	shown   string           // the group that the mount has at its top, as in mountinfo
	systemd *systemd.Manager // nil without one

	buffers sync.Pool // of *[maxRead]byte

	mu     sync.Mutex
	groups map[string]*inUse // those in use right now, by clean path
}

// Open returns the cgroups beneath root, commonly /sys/fs/cgroup. The mode is
// auto, v1 or v2. With auto the file systems mounted there decide: cgroup2 at
// root itself is v2, a v1 controller in a directory of root is v1, and so is the
// hybrid layout. A mode of v1 or v2 also takes a tree of plain files, but not a
// mounted hierarchy of the other version. The caller closes the FS.
func Open(root, mode string) (*FS, error) {
	f := &FS{path: root, dirs: map[string]*os.File{}, groups: map[string]*inUse{}}
	mounted, err := detect(root)
	want, known := map[string]int{"auto": mounted, "v1": 1, "v2": 2}[mode]
	switch f.version, f.mounted = want, mounted != 0; {
	case err != nil:
	case !known:
		err = fmt.Errorf("cgroup mode %q is not auto, v1 or v2", mode)
	case want == 0:
		err = errors.New("no cgroup file system is mounted there; name the mode, v1 or v2, to use plain files")
	case mounted != 0 && mounted != want:
		err = fmt.Errorf("cgroup mode is %s, but cgroup v%d is mounted there", mode, mounted)
	default:
		err = f.openDirs()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open cgroup root %s: %w", root, err), f.Close())
	}
	return f, nil
}

// Version returns the cgroup version in use, 1 or 2; 0 if f is nil, on a node without a cgroup
// file system. It is the ABI's node field cgroup_version.
func (f *FS) Version() int {
	if f == nil {
		return 0
	}
	return f.version
}

// Close releases the directories that the FS holds open. Nobody uses the FS any more.
func (f *FS) Close() error {
	var errs []error
	for _, dir := range f.dirs {
		errs = append(errs, dir.Close())
	}
	return errors.Join(errs...)
}

// controllers are the v1 controllers of the files in the tables of package rules.
var controllers = []string{"cpu", "cpuacct", "cpuset", "memory", "blkio", "pids", "hugetlb", "rdma", "misc"}

// whole is the directory of v2.
const whole = "."

// openDirs opens a directory for each of controllers, or the one of v2. A v1 controller that is not
// mounted is left out; its files are then unsupported. systemd makes directories also for controllers
// that it cannot mount.
func (f *FS) openDirs() error {
	root, err := os.OpenRoot(f.path)
	if err != nil {
		return err
	}
	defer root.Close()
	names, magic := controllers, int64(unix.CGROUP_SUPER_MAGIC)
	if f.version == 2 {
		names, magic = []string{whole}, unix.CGROUP2_SUPER_MAGIC
	}
	f.shown = shownBy(filepath.Join(f.path, names[0]))
	for _, name := range names {
		if found, err := fsMagic(filepath.Join(f.path, name)); err == nil && f.mounted && found != magic {
			continue
		}
		// On many nodes cpu is a link to cpu,cpuacct beside it: os.Root follows it.
		dir, err := root.OpenFile(name, unix.O_DIRECTORY, 0)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		f.dirs[name] = dir
	}
	return nil
}

// detect returns the version mounted at root, or 0 if there is none. The cgroup
// library's own test looks at /sys/fs/cgroup only.
func detect(root string) (int, error) {
	magic, err := fsMagic(root)
	if err != nil {
		return 0, err
	}
	if magic == unix.CGROUP2_SUPER_MAGIC {
		return 2, nil
	}
	for _, name := range controllers {
		if magic, err := fsMagic(filepath.Join(root, name)); err == nil && magic == unix.CGROUP_SUPER_MAGIC {
			return 1, nil
		}
	}
	return 0, nil
}

func fsMagic(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, fmt.Errorf("statfs: %w", err)
	}
	return int64(st.Type), nil // the field's type differs between architectures
}
