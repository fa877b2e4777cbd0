package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/runtime/admin"
	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

const statusLong = `Problems come first, then the node, then each plugin:

  STATE     what calls meet: active; refusing, since it is not loaded and has policy Fail; inactive,
            since it is not loaded; bypassed; or disabled by its file
  CALLS     hooks that called it since the proxy was started, or the plugin was installed
  FAILURES  of them, with those that its open breaker did not let through
  REFUSALS  of them: the plugin refused the call
  P50, P99  estimates of the time of a call

The line peers has the processes that are connected to the proxy, as the kernel tells them: kubelet,
and whoever else calls it, such as crictl.

The sockets are found as serve finds them: by --admin-socket, WASMPROXY_ADMIN_SOCKET or the file
of --config. The admin socket belongs to the proxy's user, usually root. If it cannot be reached,
the command asks on the status socket, which the proxy's group can use, too.`

func statusCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the state of the running proxy and its plugins",
		Long:  statusLong,
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := adminSettings(cmd, true)
			if err != nil {
				return err
			}
			if c.AdminSocket == "" && c.StatusSocket == "" {
				return wrongUsage("admin-socket and status-socket are empty: name one of the proxy's sockets with --admin-socket or --status-socket")
			}
			s, err := admin.Ask(cmd.Context(), config.Path(c.AdminSocket), config.Path(c.StatusSocket), admin.Client.Status)
			if err != nil {
				return err
			}
			if format == "json" {
				return encode(cmd.OutOrStdout(), s)
			}
			return printStatus(cmd.OutOrStdout(), s)
		},
	}
	adminFlags(cmd, "status-socket")
	outputFlag(cmd, &format)
	return cmd
}

func printStatus(out io.Writer, s *status.Status) error {
	ready := "ready"
	if len(s.NotReady) > 0 {
		ready = "NOT READY"
	}
	fmt.Fprintf(out, "wasmproxy %s, up %s, %s\n", printable(s.Version), span(s.Now.Sub(s.Started)), ready)
	for _, p := range problems(s) {
		fmt.Fprintf(out, "  ! %s\n", printable(p))
	}
	fmt.Fprintln(out)
	store, groups, saved := "not needed without plugins", "none: no cgroup file is written", "not saved"
	if s.Store.State != "" {
		store = fmt.Sprintf("%s: %s, %s", s.Store.State, number(s.Store.Pods, "pod"), number(s.Store.Containers, "container"))
	}
	if c := s.Cgroup; c.Root != "" {
		groups = fmt.Sprintf("v%d at %s, driver %s", c.Version, printable(c.Root), cmp.Or(printable(c.Driver), "unknown"))
	}
	if s.Values.StateDir != "" {
		saved = "saved in " + printable(s.Values.StateDir)
	}
	t := newTable()
	t.row("listen", fmt.Sprintf("%s, %s, %s answered", printable(s.Listen), number(s.Connections, "connection"), number(int(s.Calls), "call")))
	t.row("peers", peersText(s.Peers, s.Now))
	connected := "connected"
	if !s.Backend.Connected {
		connected = "NOT CONNECTED"
	}
	name := strings.TrimSpace(s.Backend.Name + " " + s.Backend.Version)
	t.row("runtime", printable(fmt.Sprintf("%s at %s, %s", cmp.Or(name, "unknown"), s.Backend.Endpoint, connected)))
	var handlers []string
	for _, h := range s.Backend.Handlers { // the default is one of them by its name
		var features []string
		if h.RecursiveReadOnlyMounts {
			features = append(features, "recursive read-only mounts")
		}
		if h.UserNamespaces {
			features = append(features, "user namespaces")
		}
		text := cmp.Or(printable(h.Name), "default")
		if len(features) > 0 {
			text += " (" + strings.Join(features, ", ") + ")"
		}
		handlers = append(handlers, text)
	}
	if len(handlers) > 0 {
		t.row("handlers", strings.Join(handlers, ", "))
	}
	t.row("store", store)
	t.row("cgroup", groups)
	t.row("values", fmt.Sprintf("plugins want %d, of %s, %s", s.Values.Wanted, number(s.Values.Objects, "pod or container"), saved))
	t.row("guests", fmt.Sprintf("%.1f MiB of %d MiB memory", float64(s.Guests.Memory)/(1<<20), s.Guests.Limit>>20))
	if err := t.print(out); err != nil {
		return err
	}
	fmt.Fprintln(out)
	return printPlugins(out, s.Plugins, s.Now)
}

// problems are what an operator should look at first.
func problems(s *status.Status) (all []string) {
	if s.Bypass.On {
		all = append(all, bypassText(s.Bypass, s.Now))
	}
	all = append(all, s.NotReady...)
	if s.Settings.Changed {
		all = append(all, fmt.Sprintf("the settings file %s has other settings than the active ones: check it with  wasmproxy validate, then  systemctl restart wasmproxy", s.Settings.File))
	}
	if !s.Backend.Connected {
		all = append(all, "there is no connection to the container runtime at "+s.Backend.Endpoint)
	}
	if !s.Values.Saved {
		all = append(all, "a file in state-dir or data-dir cannot be written, so a restart loses what is not in it: the log says why")
	}
	for i, uid := range slices.Sorted(maps.Keys(s.Values.Ignored)) {
		if i == maxIgnored {
			all = append(all, fmt.Sprintf("records in state-dir of %d more pods were ignored", len(s.Values.Ignored)-i))
			break
		}
		pod := "the pod with UID " + uid
		if uid == "" {
			pod = "a pod that is not known"
		}
		all = append(all, fmt.Sprintf("a record in state-dir of %s was ignored: %s; owners are unknown of values that the pod had before",
			pod, s.Values.Ignored[uid]))
	}
	for i := range s.Plugins.Plugins {
		p := &s.Plugins.Plugins[i]
		breaker := fmt.Sprintf("plugin %s: its breaker is %s", p.ID, p.Breaker)
		switch {
		case p.Breaker == "half-open":
			all = append(all, breaker+": a call tries it now")
		case p.Breaker == "open" && p.BreakerUntil.After(s.Now):
			all = append(all, breaker+" until "+p.BreakerUntil.UTC().Format(time.RFC3339))
		case p.Breaker == "open":
			all = append(all, breaker+": its next call tries it")
		}
	}
	return all
}

// maxIgnored is how many pods are listed whose records were ignored: a version may read none of a later one's.
const maxIgnored = 3

// maxPeers is how many processes are listed that are connected: a node has one or two.
const maxPeers = 4

func peersText(peers []status.Peer, now time.Time) string {
	var all []string
	for i, p := range peers {
		if i == maxPeers {
			all = append(all, fmt.Sprintf("%d more", len(peers)-i))
			break
		}
		who := fmt.Sprintf("%s (PID %d", cmp.Or(printable(p.Program), "unknown"), p.PID)
		if p.UID != 0 {
			who += fmt.Sprintf(", user %d", p.UID)
		}
		all = append(all, fmt.Sprintf("%s) with %s for %s", who, number(p.Connections, "connection"), span(now.Sub(p.Since))))
	}
	return cmp.Or(strings.Join(all, ", "), "none: kubelet does not use the proxy")
}

// number says how many things there are.
func number(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	if first, second, two := strings.Cut(thing, " or "); two {
		return fmt.Sprintf("%d %ss or %ss", n, first, second)
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
