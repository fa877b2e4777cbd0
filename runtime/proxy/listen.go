package proxy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/regular"
)

const (
	newSuffix  = ".new"
	lockSuffix = ".lock"

	// lockTime is how long other processes may take to begin or end to listen. They
	// need milliseconds, and 2 s if they have to find out whether somebody answers.
	lockTime = 10 * time.Second
)

// Listen returns a listener on a unix socket of this mode at endpoint, "unix://"
// and an absolute path or the path alone. The directory is made, with mode 0755, if
// there is none; one that others may write to is refused unless it is sticky. A socket that nobody listens on is replaced; anything else at the
// path is an error. The path never leads to a socket that does not listen yet.
// Of several processes that listen on one path at once, one succeeds. While another
// process has the path's lock it waits, for ten seconds at most and until ctx is done.
//
// Closing the listener removes the path if it still leads to this socket.
func Listen(ctx context.Context, endpoint string, mode fs.FileMode) (net.Listener, error) {
	path, err := socketPath(endpoint, len(newSuffix))
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	l, err := listen(ctx, path, mode)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", path, err)
	}
	return l, nil
}

func listen(ctx context.Context, path string, mode fs.FileMode) (net.Listener, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if mode := info.Mode(); mode.Perm()&0o002 != 0 && mode&fs.ModeSticky == 0 {
		return nil, fmt.Errorf("directory %s has mode %v: anybody could replace the socket", dir, mode)
	}
	ctx, cancel := context.WithTimeout(ctx, lockTime)
	defer cancel()
	unlock, err := regular.LockFile(ctx, path+lockSuffix)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if _, err := stale(path); err != nil {
		return nil, err
	}

	// The socket is made beside path and renamed, so that path never leads to
	// one with another mode or without a listener.
	draft := path + newSuffix
	left, err := stale(draft)
	if err == nil && left {
		err = os.Remove(draft)
	}
	if err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: draft, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	s := &socket{UnixListener: l, path: path}
	err = os.Chmod(draft, mode)
	if err == nil {
		s.inode, err = os.Lstat(draft)
	}
	if err == nil {
		err = os.Rename(draft, path) // which replaces a stale socket
	}
	if err != nil {
		os.Remove(draft)
		l.Close()
		return nil, err
	}
	return s, nil
}

// stale reports whether there is a socket at path that nobody listens on. If
// there is anything else, that is an error.
func stale(path string) (bool, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return false, fmt.Errorf("%s exists and is not a socket", path)
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		conn.Close()
		return false, errors.New("another process listens there")
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return false, fmt.Errorf("finding out whether another process listens there: %w", err)
	}
	return true, nil
}

// A socket is a listener that owns a path for as long as the path leads to it.
type socket struct {
	*net.UnixListener
	path  string
	inode fs.FileInfo
	once  sync.Once
}

// Addr returns the path that callers use.
func (s *socket) Addr() net.Addr { return &net.UnixAddr{Name: s.path, Net: "unix"} }

// Close stops listening. While this socket is open its inode's number belongs
// to no other file, so the path is looked at before.
func (s *socket) Close() error {
	s.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), lockTime)
		defer cancel()
		unlock, err := regular.LockFile(ctx, s.path+lockSuffix)
		if err != nil {
			return // the directory is gone, and the path with it, or the next process replaces the path
		}
		defer unlock()
		if info, err := os.Lstat(s.path); err == nil && os.SameFile(info, s.inode) {
			os.Remove(s.path)
		}
	})
	return s.UnixListener.Close()
}
