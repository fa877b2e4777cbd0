package proxy

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
)

// maxSocketPath is in bytes: sun_path without its NUL.
const maxSocketPath = len(syscall.RawSockaddrUnix{}.Path) - 1

// socketPath returns the path in endpoint, "unix://" and an absolute path or
// the path alone, short enough that a suffix of room bytes still makes a socket's path.
func socketPath(endpoint string, room int) (string, error) {
	path := strings.TrimPrefix(endpoint, "unix://")
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("%q is neither an absolute path nor unix:// and one", endpoint)
	}
	if n, most := len(path), maxSocketPath-room; n > most {
		return "", fmt.Errorf("path %s has %d bytes, at most %d are possible", path, n, most)
	}
	return path, nil
}
