package host

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	securejoin "github.com/cyphar/filepath-securejoin"

	"github.com/wasmproxy/wasmproxy/runtime/regular"
)

// Host is what the proxy is installed on.
type Host struct {
	// Root is the directory of the host's files: "/", or that of an image in which nothing runs.
	Root string
	// KubeletConfig is kubelet's configuration, usually DefaultKubeletConfig.
	KubeletConfig string
	// Backend is the endpoint of the container runtime where no file of kubelet names one, or where another program
	// writes them: then these files stay. It is empty if kubelet's files must name one and may be changed.
	Backend string
	// Program is the file that is installed, usually that of this process.
	Program string
	// Out takes what people read: the plan, and what happens.
	Out io.Writer
	// Unit asks the host's systemd for properties of a unit, as SystemdUnit does. nil: SystemdUnit, unless Root is an image.
	Unit func(ctx context.Context, name string, properties ...string) (map[string]string, error)

	patience time.Duration           // in place of kubeletTime in tests
	step     func(name string) error // called before each step, for tests that end in between
}

// Consent says how far a plan is carried out.
type Consent struct {
	DryRun         bool                 // it is only shown
	RestartKubelet bool                 // which makes kubelet use its new endpoint
	NoRollback     bool                 // an installation stays also if kubelet does not come up with it
	Confirm        func() (bool, error) // asks after the plan was shown; nil: yes
}

// live reports whether the host is this one, on which systemd runs.
func (h *Host) live() bool { return h.Root == "" || filepath.Clean(h.Root) == "/" }

// under returns where a file of the host is. Links in it lead to files of the host.
func (h *Host) under(path string) string {
	if h.live() {
		h.Root = "/"
	}
	at, err := securejoin.SecureJoin(h.Root, path)
	if err != nil {
		return filepath.Join(h.Root, path)
	}
	return at
}

func (h *Host) say(format string, args ...any) { fmt.Fprintf(h.Out, format+"\n", args...) }

func (h *Host) begin(step string) error {
	if h.step == nil {
		return nil
	}
	return h.step(step)
}

// confirm shows that there is something to do, and asks.
func (h *Host) confirm(c Consent) (bool, error) {
	if c.DryRun {
		h.say("\nNothing was changed: this was a dry run.")
		return false, nil
	}
	if c.Confirm == nil {
		return true, nil
	}
	yes, err := c.Confirm()
	if err == nil && !yes {
		h.say("Nothing was changed.")
	}
	return yes, err
}

// read returns a file of the host, and nil if there is none.
func (h *Host) read(path string) ([]byte, error) {
	b, err := os.ReadFile(h.under(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, err
}

// write replaces a file of the host at once. An existing file keeps its owner and mode.
func (h *Host) write(path string, content []byte, mode fs.FileMode) error {
	if err := regular.Rewrite(h.under(path), content, mode); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// remove removes a file of the host, if there is one.
func (h *Host) remove(path string) error {
	if err := os.Remove(h.under(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing %s: %w", path, err)
	}
	return nil
}

func sum(content []byte) string { return fmt.Sprintf("%x", sha256.Sum256(content)) }
