package daemon

import (
	"context"
	"net"
	"sync"
)

// sockets are the listeners for operators. While another process takes the place of this one they
// are closed, since only one of the two can have them.
type sockets struct {
	mu     sync.Mutex
	open   map[net.Listener]bool
	paused chan struct{} // closed when the sockets may be made again; nil: they may
}

// add notes a listener, and closes it if the sockets are paused.
func (s *sockets) add(l net.Listener) (remove func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paused != nil {
		l.Close()
		return func() {}
	}
	if s.open == nil {
		s.open = map[net.Listener]bool{}
	}
	s.open[l] = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, l)
	}
}

// pause closes all listeners. Requests under way go on.
func (s *sockets) pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused = make(chan struct{})
	for l := range s.open {
		l.Close()
	}
}

// resume has the sockets made again.
func (s *sockets) resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.paused)
	s.paused = nil
}

// await returns when the sockets are not paused, or ctx is done.
func (s *sockets) await(ctx context.Context) {
	s.mu.Lock()
	resumed := s.paused
	s.mu.Unlock()
	if resumed == nil {
		return
	}
	select {
	case <-resumed:
	case <-ctx.Done():
	}
}
