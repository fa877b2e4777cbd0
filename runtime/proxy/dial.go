package proxy

import (
	"fmt"
	"path/filepath"
	"strings"

	"google.golang.org/grpc"
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
