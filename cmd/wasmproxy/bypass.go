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

The command makes or removes the file that the running proxy names, and waits until the proxy has
seen that, so that it must run where the proxy's files are. If no proxy answers, it goes by the file
of the settings, and says so.

A settings file that cannot be read does not stop the command: it says so, and goes by the last
good settings, or else by flags, variables and defaults.`

// bypassTime is how long the proxy may take to answer before the command goes by the settings, and then to see the change.
const bypassTime = 5 * time.Second

// bypassUndoTime is how long the command waits until values are undone. What lasts longer is tried again by the proxy.
const bypassUndoTime = time.Second

// bypassPoll is how long the command waits before it asks the proxy again.
const bypassPoll = 50 * time.Millisecond

func bypassCommand() *cobra.Command {
	var reason, format string
	cmd := &cobra.Command{
		Use:   "bypass",
		Short: "Take all plugins out of the way of calls, or load them again",
		Long:  bypassLong,
		Args:  noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return setBypass(cmd, format, nil)
		},
	}
	on := &cobra.Command{
		Use:   "on",
		Short: "Have every call pass as it came, and undo the values of plugins",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return setBypass(cmd, format, func(file string) error { return bypass.Make(file, reason) })
		},
	}
	off := &cobra.Command{
		Use:   "off",
		Short: "Load the plugins again, as at a start",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return setBypass(cmd, format, bypass.Remove)
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

// setBypass changes the file with set, which is nil if that is not wanted, and shows what the bypass is then.
func setBypass(cmd *cobra.Command, format string, set func(file string) error) error {
	c, err := knownSettings(cmd, true)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), bypassTime)
	defer cancel()
	proxy := admin.Client{Socket: config.Path(c.AdminSocket)}
	now, silent := status.Bypass{}, admin.ErrNoProxy
	if c.AdminSocket != "" {
		now, silent = askBypass(ctx, proxy)
	}
	switch {
	case cmd.Context().Err() != nil:
		return fmt.Errorf("the command was interrupted, and has changed nothing: %w", context.Cause(cmd.Context()))
	case silent == nil && set == nil:
		return printBypass(cmd, format, now, nil)
	case silent == nil:
	case errors.Is(silent, admin.ErrNoProxy), ctx.Err() != nil:
		now.File = c.BypassFile
	default: // no permission, or what listens is another program: the error says what to do
		return silent
	}
	if now.File == "" {
		return wrongUsage("there is no bypass file: name one with bypass-file in the proxy's settings or, if no proxy answers, with --bypass-file")
	}
	if set != nil {
		err = set(now.File)
	}
	if err != nil {
		return err
	}
	s, err := bypass.Read(now.File)
	if err != nil {
		return err
	}
	now.On, now.Since, now.Reason = s.On, s.Since, s.Reason
	if silent == nil {
		now.Undone, err = awaitBypass(cmd.Context(), proxy, s.On)
	}
	if err != nil {
		return fmt.Errorf("the command has changed the bypass file %s, but %w", printable(now.File), err)
	}
	return printBypass(cmd, format, now, silent)
}

// askBypass asks what the bypass is. A proxy that crashes breaks off its answer: then the next question tells whether there is one.
func askBypass(ctx context.Context, proxy admin.Client) (status.Bypass, error) {
	now, err := proxy.Bypass(ctx)
	if err == nil || errors.Is(err, admin.ErrNoProxy) || ctx.Err() != nil {
		return now, err
	}
	time.Sleep(bypassPoll)
	return proxy.Bypass(ctx)
}

// awaitBypass waits until the proxy has seen that its file is there, or is not, and for a while until values are undone. A plugin
// may crash the proxy again and again: the next one is asked, which looks at the file when it starts.
func awaitBypass(ctx context.Context, proxy admin.Client, on bool) (undone bool, err error) {
	limit, cancel := context.WithTimeout(ctx, bypassTime)
	defer cancel()
	seen := false
	for begun := time.Now(); ; {
		now, failed := proxy.Bypass(limit)
		switch {
		case failed == nil && now.On == on:
			if !on || now.Undone || time.Since(begun) > bypassUndoTime {
				return now.Undone, nil
			}
			seen = true
		case failed != nil && seen && ctx.Err() == nil: // the proxy has gone, and the file stays
			return false, nil
		case failed == nil:
			says := "not bypassed"
			if now.On {
				says = "bypassed"
			}
			const unseen = "the proxy answers, and still says that plugins are %s: run the command where the proxy's files are, such as with " +
				"chroot /host, or look in its log for \"cannot look for the bypass file\""
			err = fmt.Errorf(unseen, says)
		case err == nil || limit.Err() == nil:
			err = fmt.Errorf("the proxy does not say that it sees the change: %w", failed)
		}
		select {
		case <-time.After(bypassPoll):
		case <-limit.Done():
		}
		if ctx.Err() != nil {
			return false, fmt.Errorf("the command was interrupted before the proxy said that it sees the change: %w", context.Cause(ctx))
		}
		if limit.Err() != nil {
			return false, err
		}
	}
}

// printBypass shows what the bypass is. silent is why the proxy does not tell; nil if it does.
func printBypass(cmd *cobra.Command, format string, now status.Bypass, silent error) error {
	out := cmd.OutOrStdout()
	if format == "json" {
		if err := encode(out, now); err != nil {
			return err
		}
		out = cmd.ErrOrStderr()
	} else {
		fmt.Fprintln(out, bypassText(now, time.Now()))
	}
	switch {
	case silent != nil:
		const byFile = "No proxy answers, so only the file was looked at or changed (%s). A proxy that works sees it within a second, any other when it starts."
		fmt.Fprintf(out, byFile+"\n", printable(silent.Error()))
		if now.On {
			fmt.Fprintln(out, "kubelet still needs a proxy that runs, or the runtime's own endpoint: see Uninstalling in docs/install.md.")
		}
	case now.On && !now.Undone:
		fmt.Fprintln(out, "Values of plugins are left that are not undone yet, or that CRI cannot clear: wasmproxy explain POD shows them.")
	}
	return nil
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
