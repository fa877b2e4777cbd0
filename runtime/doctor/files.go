package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/wasmproxy/wasmproxy/runtime/cgroup"
	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
)

// cgroupVersion is that of the cgroup root, 0 without one.
func (n *node) cgroupVersion() (int, error) {
	if n.config.CgroupRoot == "" {
		return 0, nil
	}
	c, err := cgroup.Open(n.under(n.config.CgroupRoot), n.config.CgroupMode)
	if err != nil {
		return 0, err
	}
	return c.Version(), c.Close()
}

func findCgroupRoot(_ context.Context, n *node) ([]found, error) {
	if n.config.CgroupRoot == "" {
		return nil, errors.New("cgroup-root is empty: no cgroup file is written")
	}
	if _, err := n.cgroupVersion(); err != nil {
		return []found{{fmt.Sprintf("cgroup-root %s, cgroup-mode %s", n.config.CgroupRoot, n.config.CgroupMode), err.Error()}}, nil
	}
	return nil, nil
}

// open finds that others than the owner, who is root, may do what the forbidden bits allow.
func (n *node) open(path string, forbidden fs.FileMode) []found {
	info, err := os.Stat(n.under(path))
	if errors.Is(err, fs.ErrNotExist) { // which other checks tell, or nothing is wrong
		return nil
	}
	if err != nil {
		return []found{{path, err.Error()}}
	}
	var all []found
	if mode := info.Mode().Perm(); mode&forbidden != 0 {
		all = append(all, found{path, fmt.Sprintf("its mode is %04o: others may use it; none of the bits %04o may be set", mode, forbidden)})
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && owner.Uid != 0 && int(owner.Uid) != os.Geteuid() {
		all = append(all, found{path, fmt.Sprintf("it belongs to user %d", owner.Uid)})
	}
	return all
}

func findSocketPermissions(_ context.Context, n *node) ([]found, error) {
	all := n.open(config.Path(n.config.Listen), 0o007)
	if n.config.AdminSocket != "" {
		all = append(all, n.open(config.Path(n.config.AdminSocket), 0o077)...)
	}
	if n.config.StatusSocket != "" {
		all = append(all, n.open(config.Path(n.config.StatusSocket), 0o007)...)
	}
	return all, nil
}

func findTrustedFiles(_ context.Context, n *node) (all []found, err error) {
	if file := n.SettingsFile; file != "" {
		if err := registry.CheckTrust(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			all = append(all, found{file, err.Error()})
		}
	}
	for _, of := range []struct {
		path  string
		check func(path string) error
	}{{n.config.PluginDir, registry.CheckTrust}, {n.config.HookDir, registry.CheckHookTrust}} {
		if of.path == "" {
			continue
		}
		if err := of.check(n.under(of.path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			all = append(all, found{of.path, err.Error()})
		}
	}
	return all, nil
}

func findPrivateDirectories(_ context.Context, n *node) (all []found, err error) {
	for _, dir := range []string{n.config.StateDir, n.config.DataDir, n.config.CacheDir} {
		if dir != "" {
			all = append(all, n.open(dir, 0o077)...)
		}
	}
	return all, nil
}

// Space that state and cache need at least: a compiled plugin of the largest size has some 10 MiB.
const (
	leastBytes = 32 << 20
	leastFiles = 1000
)

func findDiskSpace(_ context.Context, n *node) (all []found, err error) {
	for _, of := range []struct{ key, dir string }{
		{"state-dir", n.config.StateDir}, {"data-dir", n.config.DataDir}, {"cache-dir", n.config.CacheDir},
	} {
		if of.dir == "" {
			continue
		}
		var s unix.Statfs_t
		dir := n.under(of.dir)
		err := unix.Statfs(dir, &s)
		for errors.Is(err, unix.ENOENT) && dir != "/" { // it will be made there
			dir = filepath.Dir(dir)
			err = unix.Statfs(dir, &s)
		}
		if err != nil {
			return all, fmt.Errorf("%s %s: %w", of.key, of.dir, err)
		}
		if free := s.Bavail * uint64(s.Bsize); free < leastBytes {
			all = append(all, found{of.key + " " + of.dir, fmt.Sprintf("its file system has %d KiB left", free>>10)})
		}
		if s.Files > 0 && s.Ffree < leastFiles {
			all = append(all, found{of.key + " " + of.dir, fmt.Sprintf("its file system has room for %d files", s.Ffree)})
		}
		if s.Flags&unix.ST_RDONLY != 0 {
			all = append(all, found{of.key + " " + of.dir, "its file system is mounted read-only"})
		}
	}
	return all, nil
}
