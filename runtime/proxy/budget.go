package proxy

import (
	"context"
	"net"
	"sync"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
)

// How much memory answers may take, in bytes. One that may not take it yet
// waits where it is, until there is room or its call ends. What these numbers gave
// is in RATIONALE.md.
const (
	// maxStreams is how many calls one connection may have at a time. More wait
	// at the caller.
	maxStreams = 512

	// maxAnswer is what an answer is counted as before its size is known.
	maxAnswer        = 16 << 20
	answersTotal     = 128 << 20
	answersPerCaller = 64 << 20

	// small answers are not counted, so that none of them ever waits.
	small = 64 << 10
)

// share is what one caller's connection may take of the bytes that all callers' answers may.
type share struct {
	total, own *semaphore.Weighted

	mu     sync.Mutex
	taken  int64 // guarded by mu
	closed bool  // guarded by mu
}

// take waits until there is room for n bytes, or ctx is done.
func (s *share) take(ctx context.Context, n int64) error {
	if err := s.own.Acquire(ctx, n); err != nil {
		return err
	}
	if err := s.total.Acquire(ctx, n); err != nil {
		s.own.Release(n)
		return err
	}
	s.took(n)
	return nil
}

// try takes n bytes if there is room for them now.
func (s *share) try(n int64) bool {
	if !s.own.TryAcquire(n) {
		return false
	}
	if !s.total.TryAcquire(n) {
		s.own.Release(n)
		return false
	}
	s.took(n)
	return true
}

func (s *share) took(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken += n; s.closed {
		s.giveAll()
	}
}

// give gives back n bytes. After close there is nothing left to give back.
func (s *share) give(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.taken -= n
	s.own.Release(n)
	s.total.Release(n)
}

// close gives everything back: gRPC frees no answers of a connection that is gone.
func (s *share) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.giveAll()
}

func (s *share) giveAll() {
	s.total.Release(s.taken)
	s.taken = 0
}

// caller is what the calls on one connection to the proxy share.
type caller struct {
	answers *share
}

// AuthType is part of credentials.AuthInfo, by which a call finds its caller.
func (*caller) AuthType() string { return "insecure" }

// callerOf returns the caller of an incoming call.
func callerOf(ctx context.Context) *caller {
	p, _ := peer.FromContext(ctx) // every incoming call has one
	return p.AuthInfo.(*caller)
}

// callers makes a caller for each connection, and has no other credentials.
type callers struct {
	credentials.TransportCredentials
	answers  *semaphore.Weighted // the bytes of all
	arriving sync.WaitGroup      // connections that were accepted and have had no ServerHandshake yet
}

func (c *callers) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	defer c.arriving.Done()
	answers := &share{total: c.answers, own: semaphore.NewWeighted(answersPerCaller)}
	return &closing{conn, answers}, &caller{answers}, nil
}

// Clone is part of credentials.TransportCredentials.
func (c *callers) Clone() credentials.TransportCredentials { return c }

// closing is a connection whose share ends with it.
type closing struct {
	net.Conn
	answers *share
}

func (c *closing) Close() error {
	c.answers.close()
	return c.Conn.Close()
}
