package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/runtime/admin"
	"github.com/wasmproxy/wasmproxy/runtime/bypass"
	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

const bypassLong = `  wasmproxy bypass       shows whether plugins are bypassed
  wasmproxy bypass on    within a second every call passes as it came, also with policy Fail
  wasmproxy bypass off   plugins are loaded again, as at a start

The values that plugins have set in cgroup files and resources are undone first. The bypass lasts
over restarts of the proxy and the node until it is switched off: it is on as long as the file of
the setting bypass-file exists, whose text is the reason.

The command asks the running proxy, which makes or removes the file. If no proxy answers, or the
proxy may not change the file, the command does so itself.

A settings file that cannot be read does not stop the command: it says so, and goes by the last
good settings, or else by flags, variables and defaults.`

// bypassTime is how long the proxy may take to answer before the command goes by the file.
const bypassTime = 5 * time.Second

func bypassCommand() *cobra.Command {
	var reason, format string
	cmd := &cobra.Command{
		Use:   "bypass",
		Short: "Take all plugins out of the way of calls, or load them again",
		Long:  bypassLong,
		Args:  noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return setBypass(cmd, format, admin.Client.Bypass, func(string) error { return nil })
		},
	}
	on := &cobra.Command{
		Use:   "on",
		Short: "Have every call pass as it came, and undo the values of plugins",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ask := func(c admin.Client, ctx context.Context) (status.Bypass, error) {
				return c.SetBypass(ctx, true, reason)
			}
			return setBypass(cmd, format, ask, func(file string) error { return bypass.Make(file, reason) })
		},
	}
	off := &cobra.Command{
		Use:   "off",
		Short: "Load the plugins again, as at a start",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ask := func(c admin.Client, ctx context.Context) (status.Bypass, error) { return c.SetBypass(ctx, false, "") }
			return setBypass(cmd, format, ask, bypass.Remove)
		},
	}
	for _, c := range []*cobra.Command{cmd, on, off} {
		adminFlags(c, "bypass-file")
		outputFlag(c, &format)
	}
	on.Flags().StringVar(&reason, "reason", "", "text for the log and for wasmproxy status")
	cmd.AddCommand(on, off)
	return cmd
}

// setBypass asks the proxy, or does it itself, and shows what the bypass is then.
func setBypass(
	cmd *cobra.Command, format string,
	ask func(admin.Client, context.Context) (status.Bypass, error), self func(file string) error,
) error {
	c, err := knownSettings(cmd, true)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), bypassTime)
	defer cancel()
	client := admin.Client{Socket: config.Path(c.AdminSocket)}
	now, err := status.Bypass{}, admin.ErrNoProxy
	if c.AdminSocket != "" {
		now, err = ask(client, ctx)
	}
	silent := ""
	switch {
	case err == nil:
	case errors.Is(err, admin.ErrNoProxy) || ctx.Err() != nil:
		silent = err.Error()
		now, err = bypassByFile(c.BypassFile, self)
	default:
		now, err = bypassForProxy(ctx, client, self, err)
	}
	if err != nil {
		return err
	}
	if format == "json" {
		return encode(cmd.OutOrStdout(), now)
	}
	out := cmd.OutOrStdout()
	fmt.Fprintln(out, bypassText(now, time.Now()))
	switch {
	case silent != "": // which is why the proxy does not tell
		fmt.Fprintf(out, "No proxy answers, so only the file was looked at or changed (%s). A proxy that works sees it within a second, any other when it starts.\n", printable(silent))
		if now.On {
			fmt.Fprintln(out, "kubelet still needs a proxy that runs, or the runtime's own endpoint: see Uninstalling in docs/install.md.")
		}
	case now.On && !now.Undone:
		fmt.Fprintln(out, "Values of plugins are left that are not undone yet, or that CRI cannot clear: wasmproxy explain POD shows them.")
	}
	return nil
}

// bypassByFile is the bypass without a proxy that answers.
func bypassByFile(file string, set func(file string) error) (now status.Bypass, err error) {
	if file == "" {
		return now, wrongUsage("bypass-file is empty: name the proxy's bypass file with --bypass-file")
	}
	if err := set(file); err != nil {
		return now, err
	}
	s, err := bypass.Read(file)
	return status.Bypass{On: s.On, File: file, Since: s.Since, Reason: s.Reason}, err
}

// bypassForProxy changes the file of a proxy that could not do so itself, for example because its
// unit lets it write nowhere else, and waits until the proxy has seen the change.
func bypassForProxy(ctx context.Context, proxy admin.Client, set func(file string) error, refused error) (status.Bypass, error) {
	now, err := proxy.Bypass(ctx)
	if err != nil || now.File == "" {
		return now, refused
	}
	want, err := bypassByFile(now.File, set)
	if err != nil {
		return now, err
	}
	for {
		if now, err = proxy.Bypass(ctx); err != nil {
			return now, fmt.Errorf("the command has changed the bypass file %s, since the proxy could not (%w), but the proxy does not say that it sees the change: %w", printable(want.File), refused, err)
		}
		if now.On == want.On {
			return now, nil
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// bypassText is a line that says whether plugins are bypassed.
func bypassText(b status.Bypass, now time.Time) string {
	if !b.On {
		return "plugins are not bypassed"
	}
	text := fmt.Sprintf("plugins are BYPASSED since %s (%s) by %s", b.Since.UTC().Format(time.RFC3339), span(now.Sub(b.Since)), printable(b.File))
	if b.Reason != "" {
		text += ": " + printable(b.Reason)
	}
	return text
}

// span is a time for people, with its two largest units.
func span(d time.Duration) string {
	d = max(d, 0)
	switch days := d / (24 * time.Hour); {
	case days > 0:
		return fmt.Sprintf("%dd%dh", days, d/time.Hour%24)
	case d >= time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d/time.Minute%60)
	case d >= time.Minute:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d/time.Second%60)
	}
	return fmt.Sprintf("%ds", d/time.Second)
}
