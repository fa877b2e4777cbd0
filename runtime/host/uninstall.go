package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/lastgood"
	"github.com/wasmproxy/wasmproxy/runtime/probation"
)

// ByHand is the error of an uninstallation that has changed nothing, because kubelet has the proxy's endpoint in a way
// that it cannot take back: the operator has to. The text says how.
type ByHand struct{ error }

// Unwrap returns what keeps it from taking back.
func (b ByHand) Unwrap() error { return b.error }

// removal is a plan.
type removal struct {
	host     *Host
	consent  Consent
	record   *record
	settings *config.Config // of the proxy
	kubelet  []change
	own      []change
	notes    []string // of what is left as it is
	bypass   string   // the file of the proxy that runs; the settings may name another one by now

	restarted int // kubelet's process before its restart; 0 without a restart
}

// Uninstall takes back what Install did. Values of plugins are undone. kubelet's files get back their copies, and the
// service ends when kubelet does not use it any more. It leaves files that were edited since: if one of kubelet's has the
// proxy's endpoint, it changes nothing, shows the difference, and returns a [ByHand]. It waits as Install does.
func (h *Host) Uninstall(ctx context.Context, c Consent) error {
	unlock, err := h.lock(ctx, c)
	if err != nil {
		return err
	}
	defer unlock()
	p := &removal{host: h, consent: c}
	if due, err := p.plan(ctx); !due || err != nil {
		return err
	}

	if h.Root.Live() {
		h.say("turn the bypass on, which undoes the values that plugins have set")
	}
	for _, change := range p.kubelet {
		h.say("%s", change)
	}
	if p.consent.RestartKubelet && h.Root.Live() {
		h.say("run systemctl restart kubelet, if it is active")
	}
	h.say("run systemctl disable%s of the units", h.Root.now())
	if file := p.settings.NodeFeatures; file != "" {
		h.say("remove %s, and with it the node's labels", file)
	}
	for _, change := range p.own {
		h.say("%s", change)
	}
	for _, note := range p.notes {
		h.say("%s", note)
	}
	if yes, err := h.confirm(c); !yes || err != nil {
		return err
	}
	if err := p.takeBack(ctx); err != nil {
		return err
	}
	h.say("wasmproxy is uninstalled")
	return nil
}

// takeBack carries out the plan.
func (p *removal) takeBack(ctx context.Context) error {
	h := p.host
	if h.Root.Live() {
		if err := p.undo(ctx); err != nil {
			return err
		}
	}
	if err := h.apply(p.kubelet); err != nil {
		return err
	}
	if h.Root.Live() {
		if err := p.leaveKubelet(ctx); err != nil {
			return err
		}
	}
	if err := h.systemctl().disable(ctx); err != nil {
		return err
	}
	if err := h.apply(p.own); err != nil {
		return err
	}
	if h.Root.Live() {
		if err := h.systemctl().do(ctx, "daemon-reload"); err != nil {
			return err
		}
	}

	// Then the files that uninstalling and the proxy have made by its settings.
	for _, dir := range []string{p.settings.DataDir, config.Default().DataDir} { // the proxy keeps its last good settings in both
		if dir == "" {
			continue
		}
		if err := errors.Join(lastgood.Remove(h.Root.Under(dir)), probation.Remove(h.Root.Under(dir))); err != nil {
			return err
		}
	}
	for _, file := range []string{p.bypass, p.settings.BypassFile} {
		if err := h.Root.endBypass(file); err != nil {
			return err
		}
	}
	if p.settings.NodeFeatures != "" {
		if err := h.Root.remove(p.settings.NodeFeatures); err != nil {
			return err
		}
	}
	if err := h.begin("record"); err != nil {
		return err
	}
	if err := h.Root.remove(RecordFile); err != nil {
		return err
	}
	for _, dir := range slices.Backward(p.record.Dirs) {
		_ = os.Remove(h.Root.Under(dir)) // unless there is something in it
	}
	return nil
}

// plan reports whether there is something to take back.
func (p *removal) plan(ctx context.Context) (due bool, err error) {
	root := p.host.Root
	if root.systemdRuns() && !root.Live() {
		return false, errRuns(root)
	}
	if p.record, err = loadRecord(root); err != nil {
		return false, err
	}
	flags := map[string]string{}
	if root.has(SettingsFile) {
		flags[config.FileFlag] = root.Under(SettingsFile)
	}
	if p.record == nil {
		c, err := config.With(flags, config.NoVariables)
		var k *kubelet
		if err == nil {
			k, err = p.host.readKubelet()
		}
		why := "kubelet's endpoint is the proxy's"
		switch {
		case err != nil:
			why = err.Error()
		case !SameEndpoint(k.runtime, c.Listen) && !SameEndpoint(k.images, c.Listen):
			p.host.say("wasmproxy is not installed on this host, and kubelet's endpoint is another: there is nothing to do")
			return false, nil
		}
		return false, ByHand{fmt.Errorf("there is no record of an installation, %s, and %s: change kubelet's endpoint by hand", RecordFile, why)}
	}

	wrong := error(nil)
	if p.settings, wrong = config.With(flags, config.NoVariables); wrong != nil { // the proxy must go all the same
		p.settings = config.Default()
		p.notes = append(p.notes, fmt.Sprintf("use the default admin-socket and bypass-file, because the settings are wrong: %v", wrong))
	}
	if err := p.planKubelet(ctx); err != nil {
		return false, err
	}
	former, now := p.record.Runtime, p.settings.Backend // of the pods
	known := len(flags) > 0 && wrong == nil && p.settings.Mode != config.ModeDocker
	if known && len(p.kubelet) > 0 && !SameEndpoint(former, now) {
		return false, ByHand{fmt.Errorf("kubelet's endpoint before the installation was %s, and backend in %s is %s: give kubelet the endpoint of the runtime that it is to have, by hand in %s, restart kubelet, and run the command again", former, SettingsFile, now, paths(p.kubelet))}
	}

	for _, f := range slices.Backward(p.record.Files) {
		if f.Kubelet {
			continue
		}
		now, err := root.read(f.Path)
		if err != nil {
			return false, err
		}
		switch {
		case now == nil:
		case sum(now) != f.After:
			p.notes = append(p.notes, "leave "+f.Path+": it was changed since the installation")
		case f.Existed && len(f.Before) == 0:
			p.notes = append(p.notes, "leave "+f.Path+": it was there before the installation")
		case f.Existed:
			p.own = append(p.own, change{path: f.Path, before: now, after: f.Before})
		default:
			p.own = append(p.own, change{path: f.Path, before: now, program: f.Path == programFile})
		}
	}
	return true, nil
}

// planKubelet plans the copies for the files of kubelet that are as the installation left them. No other one may have the
// proxy's endpoint: kubeadm may have copied it since into one that the installation did not change.
func (p *removal) planKubelet(ctx context.Context) error {
	h := p.host
	k, err := h.readKubelet()
	if err != nil && !errors.Is(err, errNoEndpoint) {
		return err
	}
	if k != nil {
		if flag, ok := h.RunningKubelet(ctx).elsewhere(h.Root, k); ok && p.record.ours(flag) {
			return ByHand{fmt.Errorf("%w: give the flag %s by hand, restart kubelet, and run the command again", errFlag(flag), p.record.Runtime)}
		}
	}
	back := map[string]string{}
	for _, f := range p.record.Files {
		now, err := h.Root.read(f.Path)
		if err != nil {
			return err
		}
		if f.Kubelet && now != nil && sum(now) == f.After {
			back[f.Path] = string(f.Before)
			former := []byte(back[f.Path]) // not nil if it was empty
			p.kubelet = append(p.kubelet, change{path: f.Path, before: now, after: former, kubelet: true})
		}
	}
	switch {
	case k == nil:
		return nil
	case k.manager != nil: // kubelet's files are not this command's
		flag, _ := h.RunningKubelet(ctx).Flag(runtimeKey.flag)
		if !p.record.ours(k.runtime) && !p.record.ours(flag) {
			return nil
		}
		return ByHand{fmt.Errorf("kubelet has the proxy's endpoint %s from %s, which would write it again: first %s; then run the command again", p.record.Listen, k.manager.name, k.manager.tell(p.record.Runtime))}
	}
	if k, err = h.reader(back).kubelet(); err != nil {
		return err
	}
	var left []change // to be changed by hand
	images := cmp.Or(p.record.Images, p.record.Runtime)
	for _, t := range k.texts {
		after := t.set(runtimeKey, p.record.Runtime, p.record.ours).set(imageKey, images, p.record.ours)
		if after != t {
			c := change{path: t.path, before: []byte(t.content), after: []byte(after.content)}
			h.say("%s", c)
			left = append(left, c)
		}
	}
	if len(left) == 0 && !p.record.ours(k.runtime) && !p.record.ours(k.images) {
		return nil
	}
	return ByHand{fmt.Errorf("kubelet's endpoint is the proxy's in %s, which is not as the installation left it, so nothing was changed: make the change that is shown by hand, restart kubelet, and run the command again", cmp.Or(paths(left), "its files"))}
}

func paths(changes []change) string {
	var all []string
	for _, c := range changes {
		all = append(all, c.path)
	}
	return strings.Join(all, " and ")
}
