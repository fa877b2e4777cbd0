package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/runtime/admin"
	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

func listCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Show the plugins of the running proxy and their states",
		Long: `They are in the order in which calls go to them.
The proxy is asked on the admin socket, or else on the status socket.
If no proxy answers, the plugins are read from the directories, and a line says so.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := adminSettings(cmd, true)
			if err != nil {
				return err
			}
			all, silent, err := listPlugins(cmd.Context(), c)
			if err != nil && len(all.Plugins) == 0 {
				return err
			}
			if format == "json" {
				return errors.Join(encode(cmd.OutOrStdout(), all), err)
			}
			if silent != "" {
				fmt.Fprintf(cmd.OutOrStdout(), "No proxy answers (%s). The files are:\n", printable(silent))
			}
			return errors.Join(printPlugins(cmd.OutOrStdout(), all, time.Now()), err)
		},
	}
	adminFlags(cmd, "plugin-dir", "hook-dir", "status-socket")
	outputFlag(cmd, &format)
	return cmd
}

// listPlugins asks the proxy, or reads the directories if none answers. silent is why. The error is also of directories and
// files that are wrong and are no plugin of the list.
func listPlugins(ctx context.Context, c *config.Config) (all status.Plugins, silent string, err error) {
	all, err = admin.Ask(ctx, config.Path(c.AdminSocket), config.Path(c.StatusSocket), admin.Client.Plugins)
	if !errors.Is(err, admin.ErrNoProxy) {
		return all, "", err
	}
	silent = err.Error()
	found, problems := registry.Read(registry.Dirs{Plugins: c.PluginDir, Hooks: c.HookDir})
	for i := range found {
		p := status.Plugin{ID: found[i].ID, File: found[i].File, State: "not running", Policy: found[i].Policy.String(), DryRun: found[i].DryRun}
		switch {
		case found[i].Disabled:
			p.State = status.Disabled
		case found[i].Problem != nil:
			p.Policy, p.Failure = "", &status.FileFailure{Error: found[i].Problem.Error(), Meanwhile: "no proxy runs"}
		}
		all.Plugins = append(all.Plugins, p)
		problems = slices.DeleteFunc(problems, func(err error) bool { return errors.Is(err, found[i].Problem) })
	}
	return all, silent, errors.Join(problems...)
}

// printPlugins writes a line for each plugin, and notes on what is wrong with it below.
func printPlugins(out io.Writer, all status.Plugins, now time.Time) error {
	if len(all.Plugins) == 0 {
		_, err := fmt.Fprintln(out, "There is no plugin.")
		return err
	}
	t := newTable()
	t.row("PLUGIN", "STATE", "SINCE", "POLICY", "VERSION", "CALLS", "FAILURES", "REFUSALS", "P50", "P99", "HOOKS")
	for i := range all.Plugins {
		p := &all.Plugins[i]
		since, version, policy := "-", "-", p.Policy
		if !p.Since.IsZero() {
			since = span(now.Sub(p.Since))
		}
		if p.Active != nil {
			version = cmp.Or(p.Active.Version, "-")
		}
		if p.DryRun {
			policy += ", dry-run"
		}
		hooks := cmp.Or(strings.Join(p.Hooks, ","), "-")
		if len(p.Hooks) > 3 {
			hooks = fmt.Sprintf("%s,… %d", strings.Join(p.Hooks[:2], ","), len(p.Hooks))
		}
		t.row(printable(p.ID), printable(string(p.State)), since, cmp.Or(printable(policy), "-"), printable(version),
			fmt.Sprint(p.Calls), fmt.Sprint(p.Failures), fmt.Sprint(p.Rejections), quick(p.P50), quick(p.P99), printable(hooks))
		if f := p.Failure; f != nil {
			since := ""
			if !f.Since.IsZero() {
				since = ", since " + f.Since.UTC().Format(time.RFC3339)
			}
			t.note("%s%s; %s", f.Error, since, f.Meanwhile)
		}
		if !p.Probation.IsZero() {
			t.note("on probation until %s: the node goes back to the version before if this one fails", p.Probation.UTC().Format(time.RFC3339))
		}
		if s := p.Shadow; s != nil {
			t.note("%s", shadowNote(p.ID, s))
		}
		if v := p.Pending; v != nil && v.State != "failed" {
			t.note("%s since %s", v.State, span(now.Sub(v.Since)))
		}
		if p.Exempted > 0 {
			t.note("in exempt namespaces it was ignored %d times that it failed or refused", p.Exempted)
		}
		if f := p.LastError; f != nil {
			t.note("last error %s ago in %s: %s", span(now.Sub(f.At)), f.Hook, f.Error)
		}
	}
	return t.print(out)
}

// shadowNote tells of the shadow of a plugin.
func shadowNote(id string, s *status.Shadow) string {
	switch {
	case s.State == "failed":
		return fmt.Sprintf("its shadow is not loaded, since %s: %s; the plugin itself is as it was", s.Since.UTC().Format(time.RFC3339), s.Reason)
	case s.State != "active":
		return "its shadow is " + s.State
	}
	breaker := ""
	if s.Breaker != "" && s.Breaker != "closed" {
		breaker = "; it fails too often, and its circuit breaker is " + s.Breaker
	}
	return fmt.Sprintf("its shadow, version %s: %d calls same, %d different, %d failed, %d refused%s; wasmproxy plugin shadow %s shows them",
		cmp.Or(s.Version, "-"), s.Outcomes["same"], s.Outcomes["different"], s.Outcomes["failed"], s.Outcomes["refused"], breaker, id)
}

// quick is a time of a call in seconds; - if there was none.
func quick(s float64) string {
	switch {
	case s <= 0:
		return "-"
	case s < 1e-3:
		return fmt.Sprintf("%.0fµs", s*1e6)
	case s < 1:
		return fmt.Sprintf("%.1fms", s*1e3)
	}
	return fmt.Sprintf("%.1fs", s)
}
