package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/runtime/admin"
	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

// followTime is how long commands that change a plugin's files wait for the proxy: a module of standard Go takes some
// ten seconds to compile.
const followTime = 30 * time.Second

// following waits until the running proxy has plugins as their files say.
type following struct {
	config *config.Config
	within time.Duration
	must   bool // a proxy must run
}

// await waits, and shows the plugins. An error that the proxy does not follow has the code exitNotActive.
func (a following) await(cmd *cobra.Command, ids ...string) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), a.within)
	defer cancel()
	files := a.files()
	var all status.Plugins
	var last error
	for {
		var err error
		all, err = admin.Ask(ctx, config.Path(a.config.AdminSocket), config.Path(a.config.StatusSocket), admin.Client.Plugins)
		if errors.Is(err, admin.ErrNoProxy) && !a.must {
			fmt.Fprintf(cmd.OutOrStdout(), "The files are changed. No proxy answers (%s); one that is started follows them.\n", printable(err.Error()))
			return nil
		}
		all.Plugins = slices.DeleteFunc(all.Plugins, func(p status.Plugin) bool { return !slices.Contains(ids, p.ID) })
		lacks, failed := err, false
		if err == nil {
			lacks, failed = a.lacks(files, all.Plugins, ids)
		}
		if lacks == nil {
			break
		}
		if last != nil && ctx.Err() != nil { // which is all that lacks says then
			lacks = last
		}
		last = lacks
		if !failed {
			select {
			case <-time.After(100 * time.Millisecond):
				continue
			case <-ctx.Done():
				lacks = fmt.Errorf("after %v %w", a.within, lacks)
			}
		}
		return coded{fmt.Errorf("the files are as they should be, but %w; see wasmproxy plugin list", lacks), exitNotActive}
	}

	out := cmd.OutOrStdout()
	for _, id := range ids {
		if _, has := files[id]; !has {
			fmt.Fprintf(out, "%s: the proxy has unloaded it, and undoes the values that it has set\n", printable(id))
		}
	}
	for i := range all.Plugins {
		switch p := &all.Plugins[i]; p.State {
		case status.Bypassed:
			fmt.Fprintf(out, "%s: plugins are bypassed on this node, so the proxy has not loaded it\n", printable(p.ID))
		case status.Disabled:
			fmt.Fprintf(out, "%s: its file on this node disables it, so the proxy has not loaded it\n", printable(p.ID))
		}
	}
	if len(all.Plugins) == 0 {
		return nil
	}
	return printPlugins(out, all, time.Now())
}

// files are the plugins as their files describe them now, by id.
func (a following) files() map[string]registry.Description {
	// What is wrong with a file keeps the proxy from following it.
	all, _ := registry.Read(registry.Dirs{Plugins: a.config.PluginDir, Hooks: a.config.HookDir})
	files := map[string]registry.Description{}
	for _, d := range all {
		files[d.ID] = d
	}
	return files
}

// lacks says which plugin is not yet as its file says; nil if all are. failed: none that lacks anything is on its way.
func (a following) lacks(files map[string]registry.Description, all []status.Plugin, ids []string) (lacks error, failed bool) {
	var reasons []string
	failed = true
	for _, id := range ids {
		var p *status.Plugin
		if i := slices.IndexFunc(all, func(p status.Plugin) bool { return p.ID == id }); i >= 0 {
			p = &all[i]
		}
		d, has := files[id]
		if p != nil && p.State == status.Disabled && !d.Disabled { // an operator may have switched it off meanwhile
			d = a.files()[id]
		}
		reason, final := lack(p, d, has)
		if reason != "" {
			reasons, failed = append(reasons, reason), failed && final
		}
	}
	if len(reasons) == 0 {
		return nil, false
	}
	return errors.New(strings.Join(reasons, "; ")), failed
}

// lack says what a plugin of the proxy, nil if it has none, lacks to be as its file describes it. final: it will not come by
// itself.
func lack(p *status.Plugin, d registry.Description, has bool) (reason string, final bool) {
	switch {
	case p == nil && !has:
		return "", false
	case p == nil:
		return fmt.Sprintf("the proxy does not know %s", d.ID), false
	case !has:
		return fmt.Sprintf("the proxy still has %s, which is %s", p.ID, p.State), false
	case p.State == status.Bypassed, d.Disabled && p.State == status.Disabled, p.State == status.Active && is(p.Active, d):
		return "", false
	case d.Problem != nil:
		return printable(d.Problem.Error()), true
	}
	reason = fmt.Sprintf("%s is %s", p.ID, p.State)
	switch v := p.Pending; {
	case v != nil && is(v, d) && v.State == "failed":
		reason, final = reason+", since its new version could not be loaded: "+v.Reason, true
	case v != nil && is(v, d):
		reason += ", and its new version is " + v.State
	case p.Failure != nil:
		reason += ": " + p.Failure.Error
	case p.State == status.Active:
		reason += " with another module or other settings"
	}
	return printable(reason), final
}

// is reports whether a version is that of a description.
func is(v *status.Version, d registry.Description) bool {
	return v != nil && v.Digest == d.Digest && v.Settings == d.Settings
}
