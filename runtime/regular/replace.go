package regular

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Replace replaces a file, or makes it, at once: whoever reads it finds the old content or the new one. The new one is on
// the disk when this returns.
func Replace(path string, content []byte, mode fs.FileMode) error {
	return replace(path, content, func(f *os.File) error { return f.Chmod(mode) })
}

// Rewrite is Replace for a file that keeps its owner and mode. A new file gets mode.
func Rewrite(path string, content []byte, mode fs.FileMode) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Replace(path, content, mode)
	}
	if err != nil {
		return err
	}
	return replace(path, content, func(f *os.File) error {
		var owned error
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			owned = f.Chown(int(st.Uid), int(st.Gid))
		}
		return errors.Join(owned, f.Chmod(info.Mode().Perm()))
	})
}

// replace makes the file beside its place, under a name that nobody reads plugins or settings from.
func replace(path string, content []byte, prepare func(*os.File) error) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".wasmproxy-*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, prepare(f), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return SyncDir(dir)
}

// SyncDir puts on the disk which files a directory has.
func SyncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
