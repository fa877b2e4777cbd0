package proxy

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
)

// Dial returns a connection to the CRI server at endpoint, "unix://" and an
// absolute path or the path alone. It does not wait for the server: until there
// is one, calls fail at once with Unavailable, while the connection is tried
// again and again. The connection carries frames and generated clients alike.
func Dial(endpoint string) (*grpc.ClientConn, error) {
	path := strings.TrimPrefix(endpoint, "unix://")
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("backend %q is not unix:// and an absolute path", endpoint)
	}
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("backend %q: the path has %d bytes, a unix socket's at most %d", endpoint, len(path), maxSocketPath)
	}
	conn, err := grpc.NewClient("unix://"+path, dialOptions()...)
	if err != nil {
		return nil, fmt.Errorf("dialling backend %q: %w", endpoint, err)
	}
	conn.Connect()
	return conn, nil
}

func dialOptions() []grpc.DialOption {
	// Base and maximum delay, and the time for one attempt, are kubelet's
	// (cri-client, pkg/remote_runtime.go).
	redial := grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: 5 * time.Second}
	redial.Backoff.BaseDelay = 100 * time.Millisecond
	redial.Backoff.MaxDelay = 3 * time.Second
	return []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"),
		grpc.WithConnectParams(redial),
		grpc.WithIdleTimeout(0), // so that a backend's restart is noticed without a call
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		grpc.WithNoProxy(),
		grpc.WithDefaultCallOptions(
			frames,
			grpc.MaxCallRecvMsgSize(maxMessage),
			grpc.MaxCallSendMsgSize(maxMessage),
		),
	}
}
