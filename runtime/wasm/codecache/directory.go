package codecache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// openDirectory makes the cache's directory if there is none, and returns its
// path without symbolic links. It refuses one that anybody but us, or root,
// could change.
func openDirectory(dir string) (string, error) {
	if !filepath.IsAbs(dir) {
		return "", fmt.Errorf("cache directory %q is not an absolute path", dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("making the cache directory: %w", err)
	}
	// Who may change a link is seen at the directory that holds it, which is not
	// looked at below: so the last name must not be one.
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return "", errors.Join(fmt.Errorf("cache directory %s is not a directory", dir), err)
	}
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", fmt.Errorf("cache directory: %w", err)
	}
	owner, mode, err := stat(dir) // it must be ours alone
	switch {
	case err != nil:
	case owner != os.Geteuid():
		err = fmt.Errorf("belongs to uid %d, not to uid %d", owner, os.Geteuid())
	case mode.Perm()&0o077 != 0:
		err = fmt.Errorf("has mode %v, others may use it; 0700 is wanted", mode.Perm())
	}
	if err != nil {
		return "", fmt.Errorf("cache directory %s %w; code that is loaded from it runs as this user", dir, err)
	}
	// Nobody else may rename what is ours in one of its parents.
	for parent := filepath.Dir(dir); ; parent = filepath.Dir(parent) {
		owner, mode, err := stat(parent)
		switch {
		case err != nil:
		case owner != 0 && owner != os.Geteuid():
			err = fmt.Errorf("belongs to uid %d", owner)
		case mode.Perm()&0o022 != 0 && mode&fs.ModeSticky == 0:
			err = fmt.Errorf("has mode %v, others may write to it", mode.Perm())
		}
		if err != nil {
			return "", fmt.Errorf("cache directory %s: its parent %s %w; code that is loaded from it runs as this user", dir, parent, err)
		}
		if parent == filepath.Dir(parent) {
			return dir, nil
		}
	}
}

func stat(dir string) (owner int, mode fs.FileMode, err error) {
	info, err := os.Lstat(dir)
	if err != nil {
		return 0, 0, err
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, errors.New("has an owner that cannot be found out")
	}
	return int(s.Uid), info.Mode(), nil
}
