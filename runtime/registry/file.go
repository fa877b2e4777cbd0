package registry

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/regular"
)

// Largest files that are read, in bytes.
const (
	maxModule = abi.MaxModule
	maxJSON   = 1 << 20
)

// A trust says whose files are trusted: their writers decide which code runs on
// the node, or which socket gets every pod.
type trust struct {
	writable fs.FileMode // mode bits that must not be set
	owned    bool        // the owner must be root or this process's user
}

var (
	pluginFiles = trust{writable: 0o022, owned: true}
	hookFiles   = trust{writable: 0o002} // as koordlet's users have it, but not open to all
)

// check judges a file or directory by its metadata.
func (t trust) check(info fs.FileInfo) error {
	if bad := info.Mode().Perm() & t.writable; bad != 0 {
		who := "its group"
		if bad&0o002 != 0 {
			who = "everyone"
		}
		return fmt.Errorf("is writable by %s (mode %04o), so its content cannot be trusted: use chmod go-w", who, info.Mode().Perm())
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !t.owned {
		return nil
	}
	if st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("belongs to user %d, not to root or user %d, so its content cannot be trusted: use chown root", st.Uid, os.Geteuid())
	}
	return nil
}

// readAll returns the content of a regular file of at most limit bytes that is trusted.
func (t trust) readAll(path string, limit int64) ([]byte, error) {
	b, err := regular.Read(path, limit, t.check)
	if err != nil {
		return nil, err
	}
	return b, t.checkTarget(path)
}

// checkTarget judges the directory that a symbolic link leads into: who can
// write there can replace the file.
func (t trust) checkTarget(path string) error {
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return regular.Cause(err)
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return regular.Cause(err)
	}
	dir := filepath.Dir(target)
	if info, err = os.Stat(dir); err != nil {
		return regular.Cause(err)
	}
	if err := t.check(info); err != nil {
		return fmt.Errorf("is a link into %s, which %w", plugin.Name(dir), err)
	}
	return t.checkWay(path)
}

// checkWay judges the directories on the way to path, links followed: who can write to
// one can put something else in the place of what is below. Where only owners can do that, as in
// /tmp, others may write.
func (t trust) checkWay(path string) error {
	t.writable &= 0o002 // a group's members are let in on purpose
	_, err := walk(path, func(dir, _ string) error {
		info, err := os.Stat(dir)
		if err == nil {
			of := t
			if info.Mode()&fs.ModeSticky != 0 {
				of.writable = 0
			}
			err = of.check(info)
		}
		if err != nil {
			return fmt.Errorf("lies below %s, which %w", plugin.Name(dir), regular.Cause(err))
		}
		return nil
	})
	return err
}

// fileError is what is wrong with a file or directory.
type fileError struct {
	path string
	err  error
}

func (e *fileError) Error() string { return plugin.Name(e.path) + ": " + e.err.Error() }
func (e *fileError) Unwrap() error { return e.err }

// stateOf tells whether the file of an error was written since.
func stateOf(err error) string {
	var at *fileError
	if !errors.As(err, &at) {
		return ""
	}
	info, err := os.Stat(at.path)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(info.ModTime().UnixNano(), " ", info.Size())
}

// vanished reports whether err came of a file that is no longer in its
// directory. A link that leads nowhere is still there, and is a bad file.
func vanished(path string, err error) bool {
	if !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	_, err = os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}
