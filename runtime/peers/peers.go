// Package peers notes which processes are connected to a socket, as the kernel tells them: a process cannot give itself
// out for another one. Nothing is refused by that; the mode of the socket decides who may connect.
package peers

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wasmproxy/wasmproxy/runtime/status"
)

// Set is those of one socket. The zero value is ready. It is safe for use by several goroutines.
type Set struct {
	mu   sync.Mutex
	open map[*conn]status.Peer // guarded by mu
}

// Listen returns a listener that notes the connections of l, a Unix socket.
func (s *Set) Listen(l net.Listener) net.Listener { return &listener{l, s} }

// Connections returns how many connections are open.
func (s *Set) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// All returns the processes by their PIDs. The name of a program is any text, as it has it in /proc/PID/comm, and empty if
// it ended at once. The user is the one that it had when it connected.
func (s *Set) All() []status.Peer {
	s.mu.Lock()
	defer s.mu.Unlock()
	type process struct {
		pid int
		uid uint32
	}
	of := map[process]status.Peer{}
	for _, p := range s.open {
		key := process{p.PID, p.UID}
		if other, has := of[key]; has {
			if p.Since.After(other.Since) {
				p.Program, p.Since = other.Program, other.Since
			}
			p.Connections = other.Connections + 1
		}
		of[key] = p
	}
	all := make([]status.Peer, 0, len(of))
	for _, p := range of {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b status.Peer) int { return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(a.UID, b.UID)) })
	return all
}

type listener struct {
	net.Listener
	set *Set
}

func (l *listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	unixConn, ok := accepted.(*net.UnixConn)
	if !ok {
		accepted.Close()
		return nil, fmt.Errorf("accepting a connection at %s: it is a %T, and not of a Unix socket", l.Addr(), accepted)
	}
	c, p := &conn{UnixConn: unixConn, set: l.set}, status.Peer{Since: time.Now(), Connections: 1}
	var of *unix.Ucred
	if raw, err := unixConn.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { of, _ = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	}
	if of != nil { // what the kernel does not tell stays empty: the connection is served all the same
		p.PID, p.UID = int(of.Pid), of.Uid
	}
	if p.PID > 0 {
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p.PID))
		p.Program = strings.TrimSuffix(string(name), "\n")
	}
	l.set.mu.Lock()
	defer l.set.mu.Unlock()
	if l.set.open == nil {
		l.set.open = map[*conn]status.Peer{}
	}
	l.set.open[c] = p
	return c, nil
}

// conn is a connection whose end is noted.
type conn struct {
	*net.UnixConn
	set *Set
}

func (c *conn) Close() error {
	c.set.mu.Lock()
	delete(c.set.open, c)
	c.set.mu.Unlock()
	return c.UnixConn.Close()
}
