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

// restartKubelet restarts kubelet. Its unit may have changed.
func (h *Host) restartKubelet(ctx context.Context) error {
	h.say("restarting kubelet")
	for _, args := range [][]string{{"daemon-reload"}, {"restart", "kubelet"}} {
		if err := h.systemctl(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// await looks once a second until done, for as long as kubelet may take and systemd has not given kubelet up. The error
// is that of the last look.
func (h *Host) await(ctx context.Context, done func() error) error {
	patience := kubeletTime
	if h.patience > 0 {
		patience = h.patience
	}
	for end := time.Now().Add(patience); ; {
		err := done()
		if err == nil || time.Now().After(end) || h.hasFailed(ctx) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(time.Second, patience)):
		}
	}
}

// hasFailed reports whether systemd does not start kubelet again.
func (h *Host) hasFailed(ctx context.Context) bool {
	p, _ := h.unit(ctx, kubeletUnit, "ActiveState")
	return p["ActiveState"] == "failed"
}

// awaitKubelet waits until kubelet is connected to the proxy. If the proxy cannot be asked, kubelet has to serve: it does so
// only when the container runtime of its files has answered.
func (h *Host) awaitKubelet(ctx context.Context, p *installation) error {
	err := h.await(ctx, func() error {
		s, err := askProxy(ctx, p.settings)
		switch {
		case err != nil:
			if not := h.serves(ctx); not != nil {
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
	return fmt.Errorf("kubelet has its endpoint in its files, and does not use the proxy at %s: %w; %s. See journalctl -u kubelet. If it runs, see systemctl cat kubelet for another endpoint or configuration (--kubelet-config names that); systemd may also have its former unit until systemctl daemon-reload && systemctl restart kubelet", p.socket, err, h.kubeletState(ctx))
}

// rollBack takes everything back after an error of kubelet's restart: the node would be without a kubelet.
func (h *Host) rollBack(ctx context.Context, failed error, c Consent) error {
	if failed == nil || c.NoRollback || ctx.Err() != nil {
		return failed
	}
	h.say("kubelet does not use the proxy, so everything is taken back")
	p, err := h.planRemoval(ctx)
	if err == nil && p != nil {
		for _, note := range p.notes {
			h.say("%s", note)
		}
		err = h.takeBack(ctx, p, true)
	}
	if err != nil {
		return fmt.Errorf("%w. Taking everything back failed, too: %w. Correct this, then run wasmproxy host uninstall --restart-kubelet", failed, err)
	}
	return fmt.Errorf("%w. Everything was taken back: --no-rollback would keep the installation. %w", failed, h.noteFailure(failed))
}

// leaveKubelet returns when kubelet does not use the proxy any more. A kubelet that was restarted also has to serve.
func (h *Host) leaveKubelet(ctx context.Context, p *removal, restart bool) error {
	if restart {
		state, err := h.unit(ctx, kubeletUnit, "ActiveState")
		if err != nil {
			return err
		}
		if active := state["ActiveState"]; active != "" && active != "inactive" {
			if h.hasLeft(ctx, p) { // an earlier run has restarted it, and failed later
				return h.awaitLeft(ctx, p)
			}
			if running := h.RunningKubelet(ctx); running != nil {
				p.restarted = running.ID
			}
			if err := h.restartKubelet(ctx); err != nil {
				return err
			}
			return h.awaitLeft(ctx, p)
		}
		h.say("kubelet is not active, so it is not restarted") // or not there any more
		if err := h.systemctl(ctx, "daemon-reload"); err != nil {
			return err
		}
	}
	if err := h.uses(ctx, p); err != nil {
		return fmt.Errorf("kubelet's files have its former endpoint again, and %w, so the service stays: run systemctl daemon-reload && systemctl restart %s, then wasmproxy host uninstall again", err, cmp.Or(h.KubeletUnit(), kubeletUnit))
	}
	return nil
}

// hasLeft reports whether kubelet has started with its former endpoint already.
func (h *Host) hasLeft(ctx context.Context, p *removal) bool {
	k, err := h.readKubelet()
	if err != nil || len(p.kubelet) > 0 || !h.hasRead(h.RunningKubelet(ctx), k) {
		return false
	}
	return h.uses(ctx, p) == nil
}

// awaitLeft waits until kubelet serves, and does not use the proxy.
func (h *Host) awaitLeft(ctx context.Context, p *removal) error {
	err := h.await(ctx, func() error {
		if err := h.serves(ctx); err != nil {
			return err
		}
		return h.uses(ctx, p)
	})
	if err == nil || ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("kubelet was restarted with its former endpoint, and %w; %s. wasmproxy is not uninstalled: correct this, and run the command again. It does not restart and wait for a kubelet that was ended by systemctl stop kubelet", err, h.kubeletState(ctx))
}

// uses returns nil if kubelet surely does not use the proxy.
func (h *Host) uses(ctx context.Context, p *removal) error {
	running := h.RunningKubelet(ctx)
	s, err := askProxy(ctx, p.settings)
	switch {
	case err != nil: // nobody knows who is connected: kubelet has its new endpoint if it has read its files
		if p.restarted > 0 && running != nil && running.ID != p.restarted {
			return nil
		}
		k, fileErr := h.readKubelet()
		if running == nil || fileErr != nil || h.hasRead(running, k) {
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

// inUse reports whether a restart of kubelet would change nothing: its files stay, and it is connected.
func (h *Host) inUse(ctx context.Context, p *installation) bool {
	if len(p.kubelet) > 0 || !h.live() {
		return false
	}
	s, err := askProxy(ctx, p.settings)
	return err == nil && h.RunningKubelet(ctx).Calls(s)
}

// askProxy asks the proxy that runs for its status, on the first of its sockets that answers.
func askProxy(ctx context.Context, c *config.Config) (*status.Status, error) {
	err := errors.New("admin-socket and status-socket are empty")
	if c.AdminSocket != "" {
		var s *status.Status
		if s, err = (admin.Client{Socket: config.Path(c.AdminSocket)}).Status(ctx); err == nil {
			return s, nil
		}
	}
	if c.StatusSocket != "" {
		s, other := admin.Client{Socket: config.Path(c.StatusSocket), StatusOnly: true}.Status(ctx)
		if other == nil {
			return s, nil
		}
		err = cmp.Or(err, other)
	}
	return nil, err
}

// serves returns why kubelet does not serve. kubelet answers on /healthz only after its runtime has answered it.
func (h *Host) serves(ctx context.Context) error {
	of := *h
	if file, ok := h.RunningKubelet(ctx).Flag("config"); ok {
		of.KubeletConfig = file
	}
	k, err := of.readKubelet()
	if err != nil {
		return err
	}
	host, port := k.setting(key{"healthz-bind-address", "healthzBindAddress"}, "127.0.0.1"), k.setting(key{"healthz-port", "healthzPort"}, "10248")
	if port == "0" {
		return h.isSteady(ctx)
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

// isSteady returns why kubelet, which has no /healthz, does not seem to serve: it ends at once without its runtime.
func (h *Host) isSteady(ctx context.Context) error {
	running := h.RunningKubelet(ctx)
	if running == nil {
		return errors.New("it does not run")
	}
	if at, err := h.proc().started(running.ID); err != nil || time.Since(at) < steadyTime {
		return fmt.Errorf("it has run for less than %v", steadyTime)
	}
	return nil
}

// setting returns what kubelet has of a setting: the flag, or the value of the last configuration with the key.
func (k *kubelet) setting(of key, byDefault string) string {
	if value, ok := k.flag(of.flag); ok {
		return value
	}
	for _, t := range k.texts {
		if !t.yaml || t.path == instanceConfig {
			continue
		}
		if all, err := t.decode(); err == nil && all[of.field] != nil {
			byDefault = fmt.Sprint(all[of.field])
		}
	}
	return byDefault
}

// kubeletState is what systemd says of kubelet, and the last lines of its log.
func (h *Host) kubeletState(ctx context.Context) string {
	p, err := h.unit(ctx, kubeletUnit, "ActiveState", "SubState", "Result", "ExecMainStatus", "NRestarts")
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
