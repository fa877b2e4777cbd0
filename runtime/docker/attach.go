package docker

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// goneInterval is how often an attached caller is looked at. The end of its input is not its own.
const goneInterval = 500 * time.Millisecond

// attach serves ContainerAttach and ExecStart. For these dockerd takes over the connection, whatever
// headers of an upgrade the request has: behind the head of its answer, 101 or 200, come the streams of
// the process. ReverseProxy knows the first of these answers alone, and only if it was asked for by both
// headers. So the request goes over a connection of its own, and the answer decides.
func (c *call) attach() {
	start := time.Now()
	defer func() { c.backend = time.Since(start) }()
	ctx := c.r.Context()
	docker, err := c.opts.Client.dial(ctx)
	if err != nil {
		refuseError(c.w, c.opts.Client.unreachable(ctx, err))
		return
	}
	defer context.AfterFunc(ctx, func() { docker.Close() })()

	taken, done := make(chan net.Conn, 1), make(chan struct{})
	defer func() {
		close(taken)
		docker.Close()
		<-done // the caller's connection is net/http's again, or closed
	}()
	request := c.r.Clone(ctx) // with all headers, also those of a connection
	request.URL.Scheme, request.URL.Host = "http", "docker"
	if _, ok := request.Header["User-Agent"]; !ok {
		request.Header.Set("User-Agent", "") // none is made up
	}
	if request.Body = io.NopCloser(c.r.Body); c.r.ContentLength == 0 {
		request.Body = nil
	}
	go func() {
		defer close(done)
		_ = request.Write(docker) // whether dockerd has it is seen by the answer
		caller := <-taken
		if caller == nil {
			return
		}
		_, _ = io.Copy(docker, caller)
		if half, ok := docker.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
		// What dockerd does not take any more is read all the same: to close a connection with unread input could make its
		// other end lose output.
		_, _ = io.Copy(io.Discard, caller)
	}()

	res, head, err := readHead(docker, c.r)
	if err != nil {
		refuseError(c.w, c.opts.Client.unreachable(ctx, err))
		return
	}
	unbounded := res.ContentLength < 0 && len(res.TransferEncoding) == 0 // an answer of dockerd's HTTP server has a length or chunks
	if res.StatusCode != http.StatusSwitchingProtocols && !unbounded {
		c.answer(io.MultiReader(head, docker))
		return
	}
	caller, _, err := c.w.Hijack()
	if err != nil {
		return // the caller is gone
	}
	c.w.code = res.StatusCode
	context.AfterFunc(ctx, func() { caller.Close() }) // at the latest when the request has ended
	taken <- caller
	_, _ = io.Copy(caller, io.MultiReader(head, docker))
	_ = caller.(*upgraded).CloseWrite()
}

// readHead reads the head of dockerd's answer, and what has come behind it. Informational ones before
// it are left out. all is what was read, from the head on.
func readHead(docker io.Reader, r *http.Request) (res *http.Response, all *bytes.Buffer, err error) {
	all = new(bytes.Buffer)
	from := bufio.NewReader(io.TeeReader(io.LimitReader(docker, maxHead), all))
	for {
		begin := all.Len() - from.Buffered()
		res, err = http.ReadResponse(from, r)
		switch {
		case err != nil && all.Len() >= maxHead:
			return nil, nil, fmt.Errorf("%w: the limit of its head is %d bytes", errTooLarge, maxHead)
		case err != nil:
			return nil, nil, err
		case res.StatusCode >= http.StatusOK, res.StatusCode == http.StatusSwitchingProtocols:
			all.Next(begin)
			return res, all, nil
		}
	}
}

// answer gives the caller an answer of dockerd's HTTP server, such as an error.
func (c *call) answer(from io.Reader) {
	res, err := http.ReadResponse(bufio.NewReader(from), c.r)
	if err != nil { // its head could be read a moment ago
		refuseError(c.w, c.opts.Client.unreachable(c.r.Context(), err))
		return
	}
	maps.Copy(c.w.Header(), res.Header)
	c.w.Header().Del("Connection")
	c.w.WriteHeader(res.StatusCode)
	_, err = io.Copy(c.w, res.Body)
	if err = errors.Join(err, http.NewResponseController(c.w).Flush()); err != nil {
		panic(http.ErrAbortHandler) // the answer broke off, and so must the caller's
	}
}

// connKey is the key of a caller's connection in the context of its requests.
type connKey struct{}

// endWith calls end when the caller has closed its connection, until ctx is done. To close the
// side that it sends on is to end the input alone: the answer still comes.
func endWith(ctx context.Context, end context.CancelFunc) {
	conn, _ := ctx.Value(connKey{}).(syscall.Conn)
	if conn == nil {
		return // not a socket
	}
	tick := time.NewTicker(goneInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if isGone(conn) {
				end()
				return
			}
		}
	}
}

// isGone reports whether the other end has closed a connection as a whole.
func isGone(conn syscall.Conn) (gone bool) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return true
	}
	err = raw.Control(func(fd uintptr) {
		poll := []unix.PollFd{{Fd: int32(fd)}}
		_, _ = unix.Poll(poll, 0) // interrupted: the next look tells
		gone = poll[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0
	})
	return gone || err != nil
}
