package service

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/coreos/go-systemd/v22/activation"
	"golang.org/x/sys/unix"
)

// SocketName is the name of the descriptor for calls: FileDescriptorName= of the socket unit,
// which is the unit's own name unless it has that key.
const SocketName = "wasmproxy.socket"

// Sockets are those that systemd has passed to this process.
type Sockets struct{ files []*os.File }

// Passed takes the sockets that systemd has passed. It takes them out of the environment, so it is called once. The caller
// closes them.
func Passed() *Sockets { return &Sockets{activation.Files(true)} }

// Close closes the sockets, but no Listener of them.
func (s *Sockets) Close() {
	for _, f := range s.files {
		f.Close()
	}
}

// Listener returns the listener on path that systemd has passed to this process, and nil if
// it has passed none. The socket's file is systemd's: closing the listener leaves it, and
// callers that connect afterwards wait for the next process. A socket with another name or
// path is an error, since kubelet would wait on one that nobody serves.
func (s *Sockets) Listener(path string) (net.Listener, error) {
	if s == nil || len(s.files) == 0 {
		return nil, nil
	}
	switch files := s.files; {
	case len(files) > 1:
		return nil, fmt.Errorf("taking the socket from systemd: it passed %d sockets, the proxy takes one: leave one ListenStream= in %s", len(files), SocketName)
	case files[0].Name() != SocketName:
		return nil, fmt.Errorf("taking the socket from systemd: its name is %q, the proxy takes %q: set FileDescriptorName=%[2]s in the socket unit", files[0].Name(), SocketName)
	}
	l, err := listener(s.files[0], path)
	if err != nil {
		return nil, fmt.Errorf("taking the socket %s from systemd: %w", SocketName, err)
	}
	return l, nil
}

func listener(f *os.File, path string) (net.Listener, error) {
	if accepts, err := unix.GetsockoptInt(int(f.Fd()), unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err != nil || accepts == 0 {
		return nil, errors.New("it does not listen for connections: set ListenStream= and Accept=no in the unit")
	}
	l, err := net.FileListener(f)
	if err != nil {
		return nil, err
	}
	own, ok := l.Addr().(*net.UnixAddr)
	if ok && filepath.Clean(own.Name) != filepath.Clean(path) { // /var/run is a link on most nodes
		one, err := os.Stat(own.Name)
		other, failed := os.Stat(path)
		ok = errors.Join(err, failed) == nil && os.SameFile(one, other)
	}
	if !ok {
		l.Close()
		return nil, fmt.Errorf("it listens on %s, and the setting listen is %s: set ListenStream= of the unit, or listen, to the same path", l.Addr(), path)
	}
	return l, nil
}
