package host

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/admin"
	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

const (
	kubeletTime = 2 * time.Minute  // for kubelet to connect, or to serve without the proxy, after its restart
	steadyTime  = 10 * time.Second // after which a kubelet without /healthz counts as one that serves
)

// kubeletService is kubelet as systemd runs it, whose restart is awaited.
type kubeletService struct{ host *Host }

// restart restarts kubelet. Its unit may have changed.
func (k kubeletService) restart(ctx context.Context) error {
	k.host.say("restarting kubelet")
	for _, args := range [][]string{{"daemon-reload"}, {"restart", "kubelet"}} {
		if err := k.host.systemctl().do(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// await looks once a second until done, for as long as kubelet may take and systemd has not given kubelet up. The error
// is that of the last look.
func (k kubeletService) await(ctx context.Context, done func() error) error {
	patience := cmp.Or(k.host.patience, kubeletTime)
	for end := time.Now().Add(patience); ; {
		err := done()
		if err == nil || time.Now().After(end) {
			return err
		}
		if unit, _ := k.host.systemctl().show(ctx, kubeletUnit, "ActiveState"); unit["ActiveState"] == "failed" {
			return err // systemd does not start it again
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(time.Second, patience)):
		}
	}
}

// awaitKubelet waits until kubelet is connected to the proxy. If the proxy cannot be asked, kubelet has to serve: it does so
// only when the container runtime of its files has answered.
func (p *installation) awaitKubelet(ctx context.Context) error {
	h, kubelet := p.host, kubeletService{p.host}
	err := kubelet.await(ctx, func() error {
		s, err := askProxy(ctx, p.settings)
		switch {
		case err != nil:
			if not := kubelet.serves(ctx); not != nil {
				return fmt.Errorf("%w (the proxy cannot be asked who is connected: %w)", not, err)
			}
			h.say("kubelet serves; the proxy cannot be asked whether kubelet is connected: %v", err)
		case !h.RunningKubelet(ctx).Calls(s):
			return errors.New("it is not among the peers that wasmproxy status shows")
		}
		return nil
	})
	if err == nil || ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("kubelet has its endpoint in its files, and does not use the proxy at %s: %w; %s. See journalctl -u kubelet. If it runs, see systemctl cat kubelet for another endpoint or configuration (--kubelet-config names that); systemd may also have its former unit until systemctl daemon-reload && systemctl restart kubelet", p.socket, err, kubelet.state(ctx))
}

// leaveKubelet returns when kubelet does not use the proxy any more. A kubelet that was restarted also has to serve.
func (p *removal) leaveKubelet(ctx context.Context) error {
	h := p.host
	if p.consent.RestartKubelet {
		state, err := h.systemctl().show(ctx, kubeletUnit, "ActiveState")
		if err != nil {
			return err
		}
		if active := state["ActiveState"]; active != "" && active != "inactive" {
			running := h.RunningKubelet(ctx)
			k, err := h.readKubelet()
			started := err == nil && len(p.kubelet) == 0 && running.hasRead(h.Root, k)
			if started && p.uses(ctx) == nil { // an earlier run has restarted it, and failed later
				return p.awaitLeft(ctx)
			}
			if running != nil {
				p.restarted = running.ID
			}
			if err := (kubeletService{h}).restart(ctx); err != nil {
				return err
			}
			return p.awaitLeft(ctx)
		}
		h.say("kubelet is not active, so it is not restarted") // or not there any more
		if err := h.systemctl().do(ctx, "daemon-reload"); err != nil {
			return err
		}
	}
	if err := p.uses(ctx); err != nil {
		return fmt.Errorf("kubelet's files have its former endpoint again, and %w, so the service stays: run systemctl daemon-reload && systemctl restart %s, then wasmproxy host uninstall again", err, cmp.Or(h.KubeletUnit(), kubeletUnit))
	}
	return nil
}

// awaitLeft waits until kubelet serves, and does not use the proxy.
func (p *removal) awaitLeft(ctx context.Context) error {
	kubelet := kubeletService{p.host}
	err := kubelet.await(ctx, func() error {
		if err := kubelet.serves(ctx); err != nil {
			return err
		}
		return p.uses(ctx)
	})
	if err == nil || ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("kubelet was restarted with its former endpoint, and %w; %s. wasmproxy is not uninstalled: correct this, and run the command again. It does not restart and wait for a kubelet that was ended by systemctl stop kubelet", err, kubelet.state(ctx))
}

// uses returns nil if kubelet surely does not use the proxy.
func (p *removal) uses(ctx context.Context) error {
	h := p.host
	running := h.RunningKubelet(ctx)
	s, err := askProxy(ctx, p.settings)
	switch {
	case err != nil: // nobody knows who is connected: kubelet has its new endpoint if it has read its files
		if p.restarted > 0 && running != nil && running.ID != p.restarted {
			return nil
		}
		k, fileErr := h.readKubelet()
		if running == nil || fileErr != nil || running.hasRead(h.Root, k) {
			return nil
		}
		return fmt.Errorf("it has not started anew since they changed (the proxy cannot be asked who is connected: %w)", err)
	case running.Calls(s):
		return errors.New("it still uses the proxy until it starts anew")
	case running == nil && h.KubeletUnit() == "" && len(s.Peers) > 0: // kubelet is started in a way that is not known
		who := s.Peers[0]
		return fmt.Errorf("it was not found, and process %d, %q, still uses the proxy", who.PID, who.Program)
	}
	return nil
}

// inUse reports whether kubelet is connected to the proxy.
func (p *installation) inUse(ctx context.Context) bool {
	if !p.host.Root.Live() {
		return false
	}
	s, err := askProxy(ctx, p.settings)
	return err == nil && p.host.RunningKubelet(ctx).Calls(s)
}

func askProxy(ctx context.Context, c *config.Config) (*status.Status, error) {
	return admin.Ask(ctx, config.Path(c.AdminSocket), config.Path(c.StatusSocket), admin.Client.Status)
}

// serves returns why kubelet does not serve. kubelet answers on /healthz only after its runtime has answered it.
func (k kubeletService) serves(ctx context.Context) error {
	of := k.host.reader(nil)
	if file, ok := k.host.RunningKubelet(ctx).Flag("config"); ok {
		of.config = file
	}
	files, err := of.kubelet()
	if err != nil {
		return err
	}
	host, port := files.setting(key{"healthz-bind-address", "healthzBindAddress"}, "127.0.0.1"), files.setting(key{"healthz-port", "healthzPort"}, "10248")
	if port == "0" { // kubelet ends at once without its runtime, so one that stays up seems to serve
		running := k.host.RunningKubelet(ctx)
		if running == nil {
			return errors.New("it does not run")
		}
		if at, err := k.host.Root.proc().started(running.ID); err != nil || time.Since(at) < steadyTime {
			return fmt.Errorf("it has run for less than %v", steadyTime)
		}
		return nil
	}
	at := "http://" + net.JoinHostPort(host, port) + "/healthz"
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return err
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return fmt.Errorf("it does not answer on %s: %w", at, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers %s on %s", resp.Status, at)
	}
	return nil
}

// setting returns what kubelet has of a setting: the flag, or the value of the last configuration with the key.
func (k *kubelet) setting(of key, byDefault string) string {
	if value, ok := lastFlag(k.args, of.flag); ok {
		return value
	}
	if t := k.lastWith(of); t != nil {
		if all, err := t.decode(); err == nil && all[of.field] != nil {
			return fmt.Sprint(all[of.field])
		}
	}
	return byDefault
}

// state is what systemd says of kubelet, and the last lines of its log.
func (k kubeletService) state(ctx context.Context) string {
	p, err := k.host.systemctl().show(ctx, kubeletUnit, "ActiveState", "SubState", "Result", "ExecMainStatus", "NRestarts")
	if err != nil {
		return err.Error()
	}
	state := fmt.Sprintf("%s is %s (%s), result %s, exit status %s, restarted by systemd %s times", kubeletUnit, p["ActiveState"], p["SubState"], p["Result"], p["ExecMainStatus"], p["NRestarts"])
	out, err := exec.CommandContext(ctx, "journalctl", "--unit="+kubeletUnit, "--lines=5", "--no-pager", "--output=cat").Output()
	if lines := strings.TrimSpace(string(bytes.ToValidUTF8(out, nil))); err == nil && lines != "" {
		state += "; its last lines are:\n" + lines + "\n"
	}
	return state
}
