// Package bypass has the file that takes all plugins out of the way of calls: as long as it
// exists, the proxy passes every call as it came. The running proxy looks at the file, and so does
// the next one. The text of the file is the reason, for people.
package bypass

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/regular"
)

// maxReason is how much of the file's text is shown, in bytes.
const maxReason = 256

// State is what the file says at one moment.
type State struct {
	On     bool
	Since  time.Time // when the file was written; zero if On is false
	Reason string    // the file's text, as one printable line; empty if it has none, or is no regular file
}

// Read looks at the file. That it exists is enough, whatever it is. The error says why that is not
// known.
func Read(path string) (State, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, nil
	}
	if err != nil {
		return State{}, fmt.Errorf("looking for the bypass file %s: %w", plugin.Name(path), regular.Cause(err))
	}
	s := State{On: true, Since: info.ModTime()}
	if text, err := regular.Read(path, 1<<20, nil); err == nil {
		s.Reason = plugin.Printable(text, maxReason)
	}
	return s, nil
}

// Make makes the file, with the reason as its text. An existing file stays as it is if there is no
// reason. Where its text cannot be written, as on a full disk, it is made without.
func Make(path, reason string) error {
	if err := makeFile(path, reason); err != nil {
		return fmt.Errorf("making the bypass file %s: %w; make its directory writable, or choose another file with bypass-file", plugin.Name(path), regular.Cause(err))
	}
	return nil
}

func makeFile(path, reason string) error {
	if _, err := os.Lstat(path); err == nil && reason == "" {
		return nil
	}
	if reason != "" {
		reason += "\n"
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	temporary := path + ".new"
	written := os.WriteFile(temporary, []byte(reason), 0o644)
	if err := os.Rename(temporary, path); err != nil {
		_ = os.Remove(temporary)
		return cmp.Or(written, err)
	}
	return nil // where no text can be written, as on a full disk, the bypass counts more than its reason
}

// Remove removes the file. It is no error if there is none.
func Remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the bypass file %s: %w; remove it by hand", plugin.Name(path), regular.Cause(err))
	}
	return nil
}
