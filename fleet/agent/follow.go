package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"
	"github.com/wasmproxy/wasmproxy/fleet/plan"
	"github.com/wasmproxy/wasmproxy/fleet/trust"
	"github.com/wasmproxy/wasmproxy/runtime/admin"
	"github.com/wasmproxy/wasmproxy/runtime/delivery"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

func statusClient(socket string) admin.Client {
	return admin.Client{Socket: socket, StatusOnly: true}
}

// follow has the node do what a NodePlugin says, and returns what there is to say of it; nil if the node has nothing of it.
// It adds the revisions that it needs to wanted.
func (a *Agent) follow(
	ctx context.Context, p *v1alpha1.NodePlugin, proxy *status.Status, wanted map[string]bool,
) (*v1alpha1.PluginReport, error) {
	choice := plan.Choose(&p.Status, a.Node)
	stable := v1alpha1.NoRevision
	if s := p.Status.Stable; s != nil { // also while an update has taken its place: a rollback must not need the registry
		stable = s.Revision
		wanted[stable] = true
	}
	r := &v1alpha1.PluginReport{Name: p.Name, Revision: a.state[p.Name].Revision}
	if choice.Next != "" && choice.Next != r.Revision {
		wanted[choice.Next] = true
		jitter := a.FetchJitter
		if a.revisions.has(choice.Next) { // it is only verified
			jitter = 0
		}
		r.Next = a.tryNext(ctx, choice.Next, jitter)
	}
	switch choice.Revision {
	case "":
	case v1alpha1.NoRevision:
		if err := a.remove(ctx, p.Name); err != nil {
			return r, err
		}
		if r.Revision = ""; r.Next == nil {
			return nil, nil
		}
		return r, nil
	default:
		wanted[choice.Revision] = true
		if stable != choice.Revision && stable != v1alpha1.NoRevision { // a node that is new does not have it
			a.fetcher.want(ctx, stable, a.FetchJitter)
		}
		if choice.Shadow != "" {
			wanted[choice.Shadow] = true
			r.Shadow = &v1alpha1.ShadowReport{Revision: choice.Shadow, Phase: v1alpha1.Waiting}
		}
		if err := a.put(ctx, p, choice, r); err != nil {
			return r, err
		}
	}
	is, ours := a.state[p.Name]
	r.Revision = is.Revision
	if ours && r.Phase == "" && proxy != nil {
		r.Phase, r.Message = phase(proxy.Plugins.Plugins, p.Name, is, time.Now())
	}
	if of, there := a.loaded[choice.Shadow]; there && r.Shadow != nil && of.plugin.Digest == is.Shadow {
		if r.Shadow.Phase = ""; proxy != nil {
			judgeShadow(proxy.Plugins.Plugins, p.Name, is.Shadow, r.Shadow)
		}
	}
	if r.Revision == "" && r.Phase == "" && r.Next == nil {
		return nil, nil
	}
	return r, nil
}

// tryNext has an update fetched and tried, and says how far that is.
func (a *Agent) tryNext(ctx context.Context, revision string, jitter time.Duration) *v1alpha1.Next {
	switch done, err := a.fetcher.want(ctx, revision, jitter); {
	case errors.Is(err, errNotSelected):
		return nil
	case done && err == nil:
		return &v1alpha1.Next{Revision: revision, State: v1alpha1.NextFetched}
	case done, errors.Is(err, trust.ErrRefused): // the latter is of a revision on disk, and is tried again
		return &v1alpha1.Next{Revision: revision, State: v1alpha1.NextRefused, Message: cut(err.Error())}
	case err != nil:
		return &v1alpha1.Next{Revision: revision, State: v1alpha1.NextWaiting, Message: cut(err.Error())}
	}
	return nil // it has not begun
}

// put has the plugin directory have a revision, if that is on disk and nobody else has a file there.
func (a *Agent) put(ctx context.Context, p *v1alpha1.NodePlugin, c plan.Choice, r *v1alpha1.PluginReport) error {
	if p.Spec.Disabled && a.revisions.has(c.Revision) { // what is switched off need not be trusted
		return a.putFetched(ctx, p, c, r)
	}
	done, err := a.fetcher.want(ctx, c.Revision, 0)
	if errors.Is(err, errNotSelected) {
		return a.remove(ctx, p.Name)
	}
	if !done || err != nil {
		if r.Next == nil { // else there is an update, whose first step waits for the node to say how far it is
			r.Next = a.tryNext(ctx, c.Revision, 0)
		}
		if is, ours := a.state[p.Name]; ours && p.Spec.Disabled && a.revisions.has(is.Revision) { // what runs is switched off meanwhile
			return a.putFetched(ctx, p, plan.Choice{Revision: is.Revision}, r)
		}
		return nil // the report says so
	}
	return a.putFetched(ctx, p, c, r)
}

func (a *Agent) putFetched(ctx context.Context, p *v1alpha1.NodePlugin, c plan.Choice, r *v1alpha1.PluginReport) error {
	has, err := a.load(c.Revision)
	if err != nil {
		return err
	}
	if selects, err := plan.Selects(has.spec.NodeSelector, a.node.Labels); err != nil || !selects {
		return errors.Join(err, a.remove(ctx, p.Name))
	}
	if taken := a.taken(p.Name); taken != "" {
		r.Phase, r.Message = v1alpha1.Blocked, cut(taken)
		return nil
	}
	if _, ours := a.state[p.Name]; !ours && !a.report.names(p.Name) { // a removal waits for the nodes that have said so
		r.Next = &v1alpha1.Next{Revision: c.Revision, State: v1alpha1.NextFetched}
		return nil
	}
	of := delivery.Delivery{Owner: owner(p.Name), Plugins: []delivery.Plugin{has.plugin}, Probation: c.Probation, MaxRefused: c.MaxRefused}
	shadow := ""
	switch {
	case p.Spec.Disabled: // nothing is there to be judged
		of.Probation, of.Plugins[0].Text = 0, has.disabled
	case c.Shadow != "":
		if of.Plugins[0].Text, shadow, err = a.beside(ctx, has.plugin.Text, c.Shadow, r); err != nil {
			return err
		}
	}
	settings := sha256Hex(of.Plugins[0].Text)
	done, err := a.directory.Plan(of)
	if err == nil && len(done.Write)+len(done.Judge) > 0 {
		done, err = a.deliver(ctx, c.Revision, of)
	}
	if err != nil {
		return err
	}
	if len(done.Kept) > 0 {
		r.Phase, r.Message = v1alpha1.Edited, "the file was edited on the node, and stays until there is another revision"
	}
	was := a.state[p.Name]
	if len(done.Write) == 0 && was.Revision == c.Revision && was.Settings == settings {
		return nil
	}
	err = a.save(p.Name, delivered{Revision: c.Revision, Settings: settings, Disabled: p.Spec.Disabled, Shadow: shadow, Time: time.Now()})
	if was.Shadow != "" && was.Shadow != shadow {
		err = errors.Join(err, a.dropModule(was.Shadow))
	}
	return err
}

// deliver puts a revision into its place, with its module.
func (a *Agent) deliver(ctx context.Context, revision string, of delivery.Delivery) (*delivery.Plan, error) {
	module, err := a.revisions.module(revision)
	if err != nil {
		delete(a.loaded, revision) // it has changed on the disk
		return nil, err
	}
	of.Plugins[0].Module = module
	done, err := a.directory.Deliver(ctx, of, func(string, string) error { return nil }) // it was tried when it was fetched
	if err == nil && len(done.Write) > 0 {
		a.Log.InfoContext(ctx, "plugin delivered", "plugin", of.Plugins[0].ID, "revision", revision)
	}
	return done, err
}

// load is what is needed of a revision again and again. Its module is read when it is to be written.
func (a *Agent) load(revision string) (loaded, error) {
	if has, there := a.loaded[revision]; there {
		return has, nil
	}
	has, err := a.revisions.load(revision)
	if err != nil {
		a.fetcher.forget(revision) // it is to be fetched again
		if errors.Is(err, fs.ErrNotExist) || !errors.As(err, new(syscall.Errno)) {
			err = errors.Join(err, os.RemoveAll(a.revisions.path(revision)))
		}
		return has, err
	}
	a.loaded[revision] = has
	return has, nil
}

// taken says whose the plugin is on this node; "" if it is the fleet's, or nobody's.
func (a *Agent) taken(id string) string {
	has, err := a.directory.Owner(id)
	switch {
	case err != nil:
		return err.Error()
	case has == owner(id):
		return ""
	case has != "":
		return fmt.Sprintf("the plugin belongs to the owner %q", has)
	}
	for _, ext := range []string{".json", ".wasm"} {
		path := filepath.Join(a.PluginDir, id+ext)
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return path + " is there, and no delivery has brought it"
		}
	}
	return ""
}

// remove removes what the fleet has delivered of a plugin, and no file of others.
func (a *Agent) remove(ctx context.Context, id string) error {
	has, err := a.directory.Owner(id)
	if err != nil {
		return err
	}
	if has == owner(id) {
		nothing := delivery.Delivery{Owner: owner(id), MayEmpty: true}
		if _, err := a.directory.Deliver(ctx, nothing, nil); err != nil {
			return err
		}
		a.Log.InfoContext(ctx, "plugin removed", "plugin", id)
	}
	was, there := a.state[id]
	if !there {
		return nil
	}
	err = a.save(id, delivered{})
	if was.Shadow != "" {
		err = errors.Join(err, a.dropModule(was.Shadow))
	}
	return err
}

// save keeps what a plugin is now, without a revision that there is none.
func (a *Agent) save(id string, is delivered) error {
	state := maps.Clone(a.state)
	if state[id] = is; is.Revision == "" {
		delete(state, id)
	}
	if err := saveState(a.revisions.dir, state); err != nil {
		return err
	}
	a.state = state
	return nil
}

// cut makes a message fit into a report.
func cut(message string) string {
	const most = 500
	if len(message) > most {
		message = strings.ToValidUTF8(message[:most], "") + "..."
	}
	return message
}
