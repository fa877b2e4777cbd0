package host

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/rogpeppe/go-internal/diff"
	"golang.org/x/sys/unix"
)

// change is of one file. after is nil where the file is removed, before where there is none.
type change struct {
	path          string
	before, after []byte
	mode          fs.FileMode // of a new file
	program       bool        // which is not shown as text
	kubelet       bool
	ours          bool // it has the proxy's endpoint before
}

func (h *Host) show(c change) {
	switch {
	case c.program && c.after == nil:
		h.say("remove %s", c.path)
	case c.program:
		h.say("write %s: the program, %d bytes", c.path, len(c.after))
	default:
		from, to := c.path, c.path
		if c.before == nil {
			from = "/dev/null"
		}
		if c.after == nil {
			to = "/dev/null"
		}
		fmt.Fprintf(h.Out, "%s\n", bytes.TrimSpace(diff.Diff(from, c.before, to, c.after)))
	}
}

// apply carries out changes, each at once.
func (h *Host) apply(changes []change) error {
	for _, c := range changes {
		if err := h.begin("file " + c.path); err != nil {
			return err
		}
		var err error
		if c.after == nil {
			err = h.remove(c.path)
		} else {
			err = h.write(c.path, c.after, c.mode)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// planned returns the change that gives a file this content, and false if it has it.
func (h *Host) planned(path string, after []byte, mode fs.FileMode) (change, bool, error) {
	before, err := h.read(path)
	if err != nil {
		return change{}, false, err
	}
	return change{path: path, before: before, after: after, mode: mode}, before == nil || !bytes.Equal(before, after), nil
}

// missing returns those of the directories, and of the ones above them, that the host does
// not have, from the outer ones.
func (h *Host) missing(dirs ...string) (all []string) {
	for _, dir := range dirs {
		var chain []string
		for ; dir != "/"; dir = filepath.Dir(dir) {
			if _, err := os.Stat(h.under(dir)); err != nil && !slices.Contains(all, dir) {
				chain = append(chain, dir)
			}
		}
		slices.Reverse(chain)
		all = append(all, chain...)
	}
	return all
}

// checkWritable requires that each of these directories can be made and each file be written, before anything is
// changed: /usr and /etc may be read-only.
func (h *Host) checkWritable(dirs []string, changes []change) error {
	for _, c := range changes {
		dirs = append(dirs, filepath.Dir(c.path))
	}
	for _, dir := range append(dirs, unitDir) {
		at := h.under(dir)
		for !exists(at) && at != "/" {
			at = filepath.Dir(at)
		}
		if err := unix.Access(at, unix.W_OK); err != nil {
			return fmt.Errorf("nothing was changed, because a file in %s cannot be written: %w", dir, err)
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
