package codecache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/wasmproxy/wasmproxy/runtime/regular"
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
	info, err := os.Stat(dir)
	if err == nil {
		err = regular.Own(info, 0o077)
	}
	if err != nil {
		return "", fmt.Errorf("cache directory %s %w; code that is loaded from it runs as this user", dir, err)
	}
	// Nobody else may rename what is ours in one of its parents.
	for parent := filepath.Dir(dir); ; parent = filepath.Dir(parent) {
		info, err := os.Stat(parent)
		if err != nil {
			return "", err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		switch {
		case !ok || st.Uid != 0 && int(st.Uid) != os.Geteuid():
			err = errors.New("belongs to another user")
		case info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0:
			err = fmt.Errorf("has mode %v, others may write to it", info.Mode().Perm())
		}
		if err != nil {
			return "", fmt.Errorf("cache directory %s: its parent %s %w; code that is loaded from it runs as this user", dir, parent, err)
		}
		if parent == filepath.Dir(parent) {
			return dir, nil
		}
	}
}
