package host

import (
	"bytes"
	"fmt"
	"io/fs"

	"github.com/rogpeppe/go-internal/diff"
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

// String shows the change to people.
func (c change) String() string {
	switch {
	case c.program && c.after == nil:
		return "remove " + c.path
	case c.program:
		return fmt.Sprintf("write %s: the program, %d bytes", c.path, len(c.after))
	}
	from, to := c.path, c.path
	if c.before == nil {
		from = "/dev/null"
	}
	if c.after == nil {
		to = "/dev/null"
	}
	return string(bytes.TrimSpace(diff.Diff(from, c.before, to, c.after)))
}

// apply carries out changes, each at once. A file that was changed since it was read for the plan stays.
func (h *Host) apply(changes []change) error {
	for _, c := range changes {
		if err := h.begin("file " + c.path); err != nil {
			return err
		}
		now, err := h.Root.read(c.path)
		if err != nil {
			return err
		}
		if !bytes.Equal(now, c.before) && !bytes.Equal(now, c.after) {
			return fmt.Errorf("%s was changed after this command had read it, so it was left as it is: run the command again, which makes a new plan", c.path)
		}
		if c.after == nil {
			err = h.Root.remove(c.path)
		} else {
			err = h.Root.write(c.path, c.after, c.mode)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
