package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wasmproxy/wasmproxy/deploy/systemd"
)

// checkProgram has a program that is to replace another one read the settings and load the plugins. One that
// cannot would not start again after its next restart.
func (p *installation) checkProgram(ctx context.Context) error {
	settings := !slices.ContainsFunc(p.own, func(c change) bool { return c.path == SettingsFile })
	if !p.replacesProgram() || !settings || !p.host.Root.Live() {
		return nil
	}
	return validate(ctx, p.host.Program, "nothing was changed")
}

// validate has a program read the settings and load the plugins. otherwise is what holds if it cannot.
func validate(ctx context.Context, program, otherwise string) error {
	out, err := exec.CommandContext(ctx, program, "validate", "--config", SettingsFile).CombinedOutput()
	if err != nil {
		return fmt.Errorf("checking the new program, wasmproxy validate --config %s: %w; %s: correct this first:\n%s", SettingsFile, err, otherwise, bytes.TrimSpace(out))
	}
	return nil
}

func (p *installation) replacesProgram() bool {
	return slices.ContainsFunc(p.own, func(c change) bool { return c.program && c.before != nil && c.after != nil })
}

// renew restarts the service if it runs another file than the program of the host. What runs decides, and not what this
// command has written: an earlier one may have ended before it came here. Other files that have changed count with the next
// restart.
func (p *installation) renew(ctx context.Context) error {
	h := p.host
	if h.Root.Live() {
		running, same, err := runs(ctx, p.program)
		switch {
		case err != nil:
			return fmt.Errorf("finding the program that %s runs: %w; see systemctl status %s, then run the command again", systemd.ServiceName, err, systemd.ServiceName)
		case !same && running == p.program:
			if !p.replacesProgram() { // a package or an earlier run has put it there, maybe before the settings changed
				if err := validate(ctx, p.program, "the service goes on with the former one"); err != nil {
					return err
				}
			}
			if err := h.systemctl().do(ctx, "restart", systemd.ServiceName); err != nil {
				return fmt.Errorf("restarting the service with the new program: %w; kubelet cannot start pods until it serves: see journalctl -u wasmproxy, and correct that or call the program from before with host install", err)
			}
			h.say("the service has the new program")
			return nil
		case !same: // whoever starts that path may do so again
			h.say("the service runs %s until it restarts: systemctl restart %s", running, systemd.ServiceName)
			return nil
		}
	}
	if slices.ContainsFunc(p.own, func(c change) bool { return c.before != nil && !(c.program && h.Root.Live()) }) {
		h.say("the service has the former files until it restarts: systemctl restart %s", systemd.ServiceName)
	}
	return nil
}

// runs returns the path of the program that the service runs, and whether it is that file of the host.
// The path is as given where it leads to the same place.
func runs(ctx context.Context, program string) (path string, same bool, err error) {
	unit, err := SystemdUnit(ctx, systemd.ServiceName, "MainPID")
	if err != nil {
		return "", false, err
	}
	exe := "/proc/" + unit["MainPID"] + "/exe"
	running, err := os.Stat(exe)
	if err != nil {
		return "", false, err
	}
	wanted, err := os.Stat(program)
	if errors.Is(err, fs.ErrNotExist) { // a package has it elsewhere, and restarts the service itself
		return program, true, nil
	}
	if err != nil {
		return "", false, err
	}
	if path, err = os.Readlink(exe); err != nil {
		return "", false, err
	}
	path = strings.TrimSuffix(path, " (deleted)")
	if real, err := filepath.EvalSymlinks(program); err == nil && path == real {
		path = program
	}
	return path, os.SameFile(running, wanted), nil
}
