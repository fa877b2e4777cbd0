package host

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	securejoin "github.com/cyphar/filepath-securejoin"
	"golang.org/x/sys/unix"

	"github.com/wasmproxy/wasmproxy/runtime/regular"
	"github.com/wasmproxy/wasmproxy/runtime/unitfile"
)

// Root is the directory of a host's files: "/" or "" for this host, on which systemd runs, or that of an image in which
// nothing runs. Methods take paths as the host has them. Links in these lead to files of the host.
type Root string

// Live reports whether it is this host.
func (r Root) Live() bool { return r == "" || filepath.Clean(string(r)) == "/" }

// Under returns where a file of the host is.
func (r Root) Under(path string) string {
	if r.Live() {
		r = "/"
	}
	at, err := securejoin.SecureJoin(string(r), path)
	if err != nil {
		return filepath.Join(string(r), path)
	}
	return at
}

func (r Root) has(path string) bool {
	_, err := os.Stat(r.Under(path))
	return err == nil
}

// hasUnit reports whether systemd finds a unit.
func (r Root) hasUnit(name string) bool { return len(unitfile.Find(r.Under, name)) > 0 }

// read returns a file of the host, and nil if there is none.
func (r Root) read(path string) ([]byte, error) {
	b, err := os.ReadFile(r.Under(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, err
}

// write replaces a file of the host at once. An existing file keeps its owner and mode.
func (r Root) write(path string, content []byte, mode fs.FileMode) error {
	if err := regular.Rewrite(r.Under(path), content, mode); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// remove removes a file of the host, if there is one.
func (r Root) remove(path string) error {
	if err := os.Remove(r.Under(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing %s: %w", path, err)
	}
	return nil
}

// checkWritable requires that each of these directories can be made and each file be written, before anything is
// changed: /usr and /etc may be read-only.
func (r Root) checkWritable(dirs []string, changes []change) error {
	for _, c := range changes {
		dirs = append(dirs, filepath.Dir(c.path))
	}
	for _, dir := range append(dirs, unitDir) {
		there := dir
		for !r.has(there) && there != "/" {
			there = filepath.Dir(there)
		}
		if err := unix.Access(r.Under(there), unix.W_OK); err != nil {
			return fmt.Errorf("nothing was changed, because a file in %s cannot be written: %w", dir, err)
		}
	}
	return nil
}

func sum(content []byte) string { return fmt.Sprintf("%x", sha256.Sum256(content)) }
