package host

import (
	"context"
	"fmt"
	"io"
	"time"
)

// Host is what the proxy is installed on.
type Host struct {
	// Root is the directory of the host's files: "/", or that of an image in which nothing runs.
	Root Root
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
