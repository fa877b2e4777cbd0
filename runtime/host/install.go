package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/wasmproxy/wasmproxy/deploy/systemd"
	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/dialect"
)

// SettingsFile is the file of settings that the service unit names.
const SettingsFile = "/etc/wasmproxy/wasmproxy.yaml"

// Files of the installation. A package for a distribution has the program and the units
// itself; then they are not written.
const (
	programFile   = "/usr/local/bin/wasmproxy"
	unitDir       = "/etc/systemd/system"
	packagedDir   = "/usr/lib/systemd/system"
	listenDropIn  = unitDir + "/" + systemd.SocketName + ".d/listen.conf"
	runtimeDropIn = unitDir + "/" + systemd.ServiceName + ".d/runtime.conf"
	recordDir     = "/var/lib/wasmproxy"
	logDir        = "/var/log/wasmproxy" // LogsDirectory= of the unit
	proxyListen   = "unix:///run/wasmproxy/wasmproxy.sock"
	hookServerDir = "/etc/runtime/hookserver.d"
)

// installation is a plan.
type installation struct {
	host    *Host
	consent Consent
	record  *record
	dirs    []string // to be made
	own     []change // files of the proxy
	kubelet []change
	program string // that the units run
	socket  string // the endpoint of the proxy

	settings *config.Config // of the proxy
	bypass   string         // the file of an unfinished uninstallation; empty if there is none
	advice   string         // on what the operator has to do where kubelet's files stay as they are; empty if they do not
	used     bool           // kubelet has the endpoint, and is connected
	part     bool           // kubelet is in another program, which has a unit of its own
	read     bool           // kubelet has started with the endpoint in its files: another start changes nothing
}

// restarts reports whether kubelet has to start anew to take its endpoint, and this command can restart it and is to.
func (p *installation) restarts() bool {
	has := p.used || p.read // the endpoint
	if has || p.part || p.advice != "" {
		return false
	}
	return p.consent.RestartKubelet && p.host.Root.Live()
}

// Install puts the proxy on the host. It changes kubelet's endpoint when the proxy serves. It waits while another run
// installs or uninstalls on the host.
func (h *Host) Install(ctx context.Context, c Consent) error {
	unlock, err := h.lock(ctx, c)
	if err != nil {
		return err
	}
	defer unlock()
	p := &installation{host: h, consent: c}
	if err := p.plan(ctx); err != nil {
		return err
	}
	if p.restarts() {
		if err := p.checkRestart(); err != nil {
			return err
		}
	}

	for _, dir := range p.dirs {
		h.say("make directory %s", dir)
	}
	for _, change := range slices.Concat(p.own, p.kubelet) {
		h.say("%s", change)
	}
	h.say("run systemctl enable%s %s %s", h.Root.now(), systemd.SocketName, systemd.ServiceName)
	if h.Root.Live() && p.replacesProgram() {
		h.say("run wasmproxy validate of the new program before, and systemctl restart %s at the end", systemd.ServiceName)
	}
	if p.bypass != "" {
		h.say("remove %s: the bypass of an unfinished wasmproxy host uninstall", p.bypass)
	}
	if p.advice != "" {
		h.say("leave kubelet's files: %s", p.advice)
	} else if p.restarts() {
		orElse := ", and take all of this back if it does not connect to the proxy"
		if c.NoRollback {
			orElse = ""
		}
		h.say("run systemctl restart kubelet%s", orElse)
	}
	if yes, err := h.confirm(c); !yes || err != nil {
		return err
	}
	if err := p.carryOut(ctx); err != nil {
		return err
	}
	h.say("wasmproxy is installed; wasmproxy host uninstall takes it back")
	return nil
}

// carryOut carries out the plan. All changes are recorded before the first one.
func (p *installation) carryOut(ctx context.Context) error {
	h := p.host
	if err := p.checkProgram(ctx); err != nil {
		return err
	}
	if err := h.begin("directories"); err != nil {
		return err
	}
	for _, dir := range p.dirs {
		mode := fs.FileMode(0o755)
		if dir == recordDir {
			mode = 0o700
		}
		err := os.MkdirAll(h.Root.Under(dir), mode)
		if err == nil {
			err = os.Chmod(h.Root.Under(dir), mode) // root's umask may be 0077
		}
		if err != nil {
			return fmt.Errorf("making directory %s: %w", dir, err)
		}
	}
	p.record.note(p.dirs, slices.Concat(p.own, p.kubelet))
	if err := h.begin("record"); err != nil {
		return err
	}
	text, err := json.MarshalIndent(p.record, "", "  ")
	if err != nil {
		return err
	}
	if err := h.Root.write(RecordFile, append(text, '\n'), 0o600); err != nil {
		return err
	}

	if err := h.apply(p.own); err != nil {
		return err
	}
	if err := p.start(ctx); err != nil {
		return err
	}
	if err := h.Root.endBypass(p.bypass); err != nil {
		return err
	}
	if err := h.apply(p.kubelet); err != nil {
		return err
	}
	if err := p.useEndpoint(ctx); err != nil {
		return err
	}
	return p.renew(ctx)
}

// useEndpoint has kubelet take its new endpoint, if that was asked for and is needed. After an error of kubelet's restart it
// takes everything back: the node would be without a kubelet.
func (p *installation) useEndpoint(ctx context.Context) error {
	h := p.host
	switch {
	case p.advice != "":
		h.say("kubelet's files stay as they are: %s", p.advice)
		return nil
	case p.used:
		h.say("kubelet uses the proxy already, so it is not restarted")
		return nil
	case !p.consent.RestartKubelet || !h.Root.Live():
		h.say("kubelet takes its new endpoint when it starts the next time: systemctl daemon-reload && systemctl restart kubelet")
		return nil
	case p.part:
		h.say("kubelet is a part of %s, which is not restarted by this command: kubelet takes its new endpoint when you do", h.KubeletUnit())
		return nil
	case p.read:
		h.say("kubelet has started with the endpoint in its files, so it is not restarted")
		return p.awaitKubelet(ctx)
	}

	ctx = context.WithoutCancel(ctx) // a terminal that is closed must not leave the node without kubelet; all waits are bounded
	failed := kubeletService{h}.restart(ctx)
	if failed == nil {
		failed = p.awaitKubelet(ctx)
	}
	if failed == nil || p.consent.NoRollback {
		return failed
	}
	h.say("kubelet does not use the proxy, so everything is taken back")
	back := &removal{host: h, consent: Consent{RestartKubelet: true}}
	due, err := back.plan(ctx)
	if due && err == nil {
		for _, note := range back.notes {
			h.say("%s", note)
		}
		err = back.takeBack(ctx)
	}
	if err != nil {
		return fmt.Errorf("%w. Taking everything back failed, too: %w. Correct this, then run wasmproxy host uninstall --restart-kubelet", failed, err)
	}
	digest, err := programDigest(h.Program)
	if err == nil {
		err = os.WriteFile(h.Root.Under(failureFile), []byte(digest+"\n"+failed.Error()+"\n"), 0o600)
	}
	noted := fmt.Errorf("%s keeps this program from trying again until the next boot", failureFile)
	if err != nil {
		noted = fmt.Errorf("noting this in %s failed, too, so the next run tries again: %w", failureFile, err)
	}
	return fmt.Errorf("%w. Everything was taken back: --no-rollback would keep the installation. %w", failed, noted)
}

func (p *installation) plan(ctx context.Context) error {
	h := p.host
	switch runs := h.Root.systemdRuns(); {
	case runs && !h.Root.Live():
		return errRuns(h.Root)
	case !runs && h.Root.Live():
		return errors.New("nothing was changed: systemd does not run here, which is to start the proxy; if this is an image, run the command outside it, with --root")
	}
	r, err := loadRecord(h.Root)
	if err != nil {
		return err
	}
	k, err := h.readKubelet()
	if errors.Is(err, errNoEndpoint) && h.Backend != "" { // an image that has no kubelet yet
		k, err = &kubelet{}, nil
	}
	if err == nil {
		err = k.useBackend(h.Backend, r)
	}
	if err != nil {
		return err
	}
	running := h.RunningKubelet(ctx)
	_, flagged := running.Flag(runtimeKey.flag) // which wins over the configuration that runs, and the one that would be changed
	if file, ok := running.Flag("config"); ok && !flagged && k.manager == nil {
		if h.Root.Under(file) != h.Root.Under(k.config) {
			return fmt.Errorf("kubelet runs with --config %s, and this command would change %s: give --kubelet-config %s, or restart kubelet if its unit was changed since it started", file, k.config, file)
		}
	}
	unit := h.KubeletUnit()
	p.record, p.part = r, unit != "" && unit != kubeletUnit
	flag, elsewhere := running.elsewhere(h.Root, k)
	if elsewhere {
		k.runtime = flag
	} else if r != nil { // another program or the operator may have written kubelet's files since the first installation
		if !r.ours(k.runtime) {
			r.Runtime = k.runtime
			if k.images == "" {
				r.Images = ""
			}
		}
		if k.images != "" && !r.ours(k.images) {
			r.Images = k.images
		}
	}
	if err := p.planProxy(k, running); err != nil {
		return err
	}
	if !elsewhere { // otherwise the flag has the proxy's endpoint, and wins
		if err := p.pointKubelet(k); err != nil {
			return err
		}
	}
	if len(p.kubelet) == 0 {
		p.used, p.read = p.inUse(ctx), running.hasRead(h.Root, k)
	}
	return h.Root.checkWritable(p.dirs, slices.Concat(p.own, p.kubelet))
}

// useBackend takes the runtime that the operator names for that of kubelet: where kubelet has no configuration yet,
// where another program gives it one, and where it has the proxy's socket already.
func (k *kubelet) useBackend(backend string, r *record) error {
	switch {
	case backend == "":
		return nil
	case SameEndpoint(k.runtime, listenFor(k.runtime)):
		k.runtime = backend
	case !k.named && (k.manager != nil || k.home() == (text{})):
		k.runtime = backend
	case !SameEndpoint(k.runtime, backend) && (r == nil || !r.ours(k.runtime)):
		byDefault := ""
		if !k.named {
			byDefault = " by default"
		}
		return fmt.Errorf("kubelet's endpoint is %s%s, and --backend is %s: leave --backend out, or give kubelet this endpoint first", k.runtime, byDefault, backend)
	}
	return nil
}

// planProxy plans all but the changes of kubelet's files.
func (p *installation) planProxy(k *kubelet, running *Running) (err error) {
	if p.settings, err = p.planSettings(k); err != nil {
		return err
	}
	p.socket = p.settings.Listen // which may have changed since the first installation
	if p.record.Listen != "" && !SameEndpoint(p.record.Listen, p.socket) {
		p.record.Former = append(p.record.Former, p.record.Listen)
	}
	p.record.Listen = p.socket
	flag, ok := running.Flag(runtimeKey.flag)
	if ok && k.manager == nil && !p.record.ours(flag) { // a manager gives kubelet flags of its own
		// The kubelet that runs has to have its endpoint from the files that were read: else it would be in vain to change them.
		known := func(_, value string) bool { return SameEndpoint(value, flag) || p.record.ours(value) }
		if !k.anyFlag(known) {
			return fmt.Errorf("%w: if kubelet's files were changed since it started, restart it. Else install the proxy by hand first, then change the flag to the proxy's socket, restart kubelet, and run the command again", errFlag(flag))
		}
	}
	if own, err := p.host.Root.ownBypass(p.settings.BypassFile); err != nil {
		return err
	} else if own {
		p.bypass = p.settings.BypassFile
	}
	if err := p.planUnits(); err != nil {
		return err
	}

	dirs := []string{recordDir, p.settings.PluginDir}
	for _, c := range p.own {
		dirs = append(dirs, filepath.Dir(c.path))
	}
	for _, dir := range dirs {
		var missing []string // from the inner one
		for ; dir != "/"; dir = filepath.Dir(dir) {
			if !p.host.Root.has(dir) && !slices.Contains(p.dirs, dir) {
				missing = append(missing, dir)
			}
		}
		slices.Reverse(missing)
		p.dirs = append(p.dirs, missing...)
	}
	return nil
}

// planSettings returns those that the proxy will have, and plans their file if there is none: the proxy has to call the
// runtime that kubelet calls. It begins a record if there is none.
func (p *installation) planSettings(k *kubelet) (*config.Config, error) {
	if p.host.Root.has(SettingsFile) {
		c, err := config.With(map[string]string{config.FileFlag: p.host.Root.Under(SettingsFile)}, config.NoVariables)
		if err != nil {
			return nil, err
		}
		if c.Mode == config.ModeDocker {
			return nil, fmt.Errorf("mode in %s is docker, and this command changes kubelet's CRI endpoint only: start %s, and set --docker-endpoint of kubelet yourself", SettingsFile, systemd.ServiceName)
		}
		runtime := k.runtime
		if SameEndpoint(runtime, c.Listen) || p.record != nil && p.record.ours(runtime) { // installed before, or by hand
			runtime = c.Backend
		}
		if !SameEndpoint(runtime, c.Backend) {
			whose := "kubelet's endpoint"
			if runtime == p.host.Backend { // which was taken for kubelet's
				whose = "--backend"
			}
			return nil, fmt.Errorf("%s is %s, and backend in %s is %s: set backend to the runtime that kubelet is to have", whose, runtime, SettingsFile, c.Backend)
		}
		if p.record == nil {
			p.record = &record{Version: recordVersion, Runtime: runtime, Images: c.ImageEndpoint}
		}
		return c, nil
	}

	if p.record == nil {
		p.record = &record{Version: recordVersion, Runtime: k.runtime, Images: k.images}
	}
	listen := listenFor(p.record.Runtime)
	if SameEndpoint(p.record.Runtime, listen) {
		return nil, fmt.Errorf("kubelet's endpoint is the proxy's already, %s, and there is no %s: write it with the runtime's socket as backend", listen, SettingsFile)
	}
	text := fmt.Sprintf("# Written by wasmproxy host install. The manual page wasmproxy-serve has all settings.\nlisten: %s\nbackend: %s\n", listen, p.record.Runtime)
	if p.record.Images != "" {
		text += "image-endpoint: " + p.record.Images + "\n"
	}
	if !p.host.Root.has(hookServerDir) {
		text += "hook-dir: \"\" # no hook server is registered on this host\n"
	}
	p.own = append(p.own, change{path: SettingsFile, after: []byte(text), mode: 0o644})
	return config.With(map[string]string{"listen": listen, "backend": p.record.Runtime, "image-endpoint": p.record.Images}, config.NoVariables)
}

// listenFor returns the proxy's endpoint in front of a runtime.
func listenFor(runtime string) string {
	if end := dialect.KnownBy(runtime).SocketEnd; end != "" {
		return "unix:///run/wasmproxy/" + end
	}
	return proxyListen
}
