package proxy

import (
	"fmt"

	"google.golang.org/grpc"
)

// Dial returns a connection to the CRI server at endpoint, "unix://" and an
// absolute path or the path alone. It does not wait for the server: until there
// is one, calls fail at once with Unavailable, while the connection is tried
// again and again. The connection carries frames and generated clients alike.
func Dial(endpoint string) (*grpc.ClientConn, error) {
	path, err := socketPath(endpoint, 0)
	if err != nil {
		return nil, fmt.Errorf("dialling backend: %w", err)
	}
	conn, err := grpc.NewClient("unix://"+path, dialOptions()...)
	if err != nil {
		return nil, fmt.Errorf("dialling backend %s: %w", path, err)
	}
	conn.Connect()
	return conn, nil
}
