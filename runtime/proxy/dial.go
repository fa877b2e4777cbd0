package proxy

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
)

// Dial returns a connection to the CRI server at endpoint, "unix://" and an
// absolute path or the path alone. It does not wait for the server: until there
// is one, calls fail at once with Unavailable, while the connection is tried
// again and again, with pauses if connections end soon after they were made. The
// connection carries frames and generated clients alike.
func Dial(endpoint string) (*grpc.ClientConn, error) {
	path, err := socketPath(endpoint, 0)
	if err != nil {
		return nil, fmt.Errorf("dialling backend: %w", err)
	}
	d := &dialer{path: path}
	// kubelet's delays, and its time for one attempt (cri-client, pkg/remote_runtime.go)
	redial := grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: 5 * time.Second}
	redial.Backoff.BaseDelay = 100 * time.Millisecond
	redial.Backoff.MaxDelay = 3 * time.Second
	conn, err := grpc.NewClient("unix://"+path,
		grpc.WithContextDialer(d.dial),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"),
		grpc.WithConnectParams(redial),
		grpc.WithIdleTimeout(0), // so that a backend's restart is noticed without a call
		grpc.WithStatsHandler(arrivals{}),
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		grpc.WithNoProxy(),
		grpc.WithStaticStreamWindowSize(window),
		grpc.WithStaticConnWindowSize(window),
		grpc.WithDefaultCallOptions(
			frames,
			grpc.MaxCallRecvMsgSize(maxMessage),
			grpc.MaxCallSendMsgSize(maxMessage),
		),
	)
	if err != nil {
		return nil, fmt.Errorf("dialling backend %s: %w", path, err)
	}
	conn.Connect()
	return conn, nil
}

// Answers waits until the CRI server at endpoint accepts a connection and begins to speak
// HTTP/2 on it. It makes no call.
func Answers(ctx context.Context, endpoint string) error {
	conn, err := Dial(endpoint)
	if err != nil {
		return err
	}
	defer conn.Close()
	for state := conn.GetState(); state != connectivity.Ready; state = conn.GetState() {
		if !conn.WaitForStateChange(ctx, state) {
			return fmt.Errorf("waiting for %s to accept a connection (it is %v): %w", endpoint, state, ctx.Err())
		}
	}
	return nil
}

// gRPC's back-off is for connections that do not come up. One that came up and ended
// is made again at once, by every call that waits for it.
const (
	steadyTime = 10 * time.Second // a connection that was there for as long is steady
	shortLives = 3                // so many shorter ones may follow each other at once
	firstPause = 100 * time.Millisecond
	lastPause  = 3 * time.Second
)

// dialer connects to a socket. After connections that ended soon it refuses to, for
// a pause that doubles with each; gRPC then lets calls fail and tries again.
type dialer struct {
	path string

	mu    sync.Mutex
	short int       // connections that ended soon, in a row
	next  time.Time // no connection is made before
}

func (d *dialer) dial(ctx context.Context, _ string) (net.Conn, error) {
	d.mu.Lock()
	short, wait := d.short, time.Until(d.next)
	d.mu.Unlock()
	if wait > 0 {
		return nil, fmt.Errorf("%s: the last %d connections ended soon after they were accepted; the next is made in %v", d.path, short, wait)
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", d.path)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	return &dialed{Conn: conn, ended: sync.OnceFunc(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if time.Since(start) >= steadyTime {
			d.short = 0
			return
		}
		if d.short++; d.short >= shortLives {
			d.next = time.Now().Add(min(firstPause<<min(d.short-shortLives, 10), lastPause))
		}
	})}, nil
}

// dialed is a connection whose end is noted.
type dialed struct {
	net.Conn
	ended func()
}

func (d *dialed) Close() error {
	d.ended()
	return d.Conn.Close()
}
