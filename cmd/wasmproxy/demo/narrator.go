package demo

import (
	"fmt"
	"io"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/observe/slogsink"
	"github.com/wasmproxy/wasmproxy/runtime/simulate"
)

// Colours of a terminal, SGR codes of ECMA-48.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

// narrator prints what happens, in colour if it prints to a terminal.
type narrator struct {
	w      io.Writer
	colour bool
}

func (n *narrator) paint(code, text string) string {
	if !n.colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (n *narrator) title(text string) { fmt.Fprintf(n.w, "\n%s\n", n.paint(bold, text)) }

// line prints one line about who did what.
func (n *narrator) line(code, who, format string, args ...any) {
	fmt.Fprintf(n.w, "  %s %s\n", n.paint(code, fmt.Sprintf("%-8s", who)), fmt.Sprintf(format, args...))
}

// request prints the fields of a request, one per line. The pod's config, which
// comes again with each of its containers, was printed with the pod.
func (n *narrator) request(m proto.Message) {
	for _, f := range simulate.Fields(m) {
		if !strings.HasPrefix(f.Path, "sandbox_config.") {
			fmt.Fprintf(n.w, "           %s\n", n.paint(dim, f.Path+" = "+f.Redacted().After))
		}
	}
}

// difference prints which fields of a request differ from what was asked.
func (n *narrator) difference(asked, received proto.Message) (differ bool) {
	all := simulate.Diff(asked, received)
	for _, f := range all {
		f = f.Redacted()
		switch {
		case !f.HasNow:
			n.line(green, "runtime", "got no %s, not %s", f.Path, f.Before)
		case !f.HadBefore:
			n.line(green, "runtime", "got %s = %s", f.Path, n.paint(bold, f.After))
		default:
			n.line(green, "runtime", "got %s = %s, not %s", f.Path, n.paint(bold, f.After), f.Before)
		}
	}
	if len(all) == 0 {
		n.line(green, "runtime", "got the request as kubelet sent it")
	}
	return len(all) > 0
}

// event prints what happened to a plugin, and what else an operator is warned of.
func (n *narrator) event(e observe.Event) {
	switch e := e.(type) {
	case *observe.PluginLoaded:
		n.loaded("loaded", e)
	case *observe.PluginReplaced:
		n.loaded("replaced", &e.PluginLoaded)
	case *observe.PluginRemoved:
		n.line(yellow, "proxy", "plugin removed: %s", e.Plugin)
	case *observe.FieldChanged:
		n.line(yellow, "plugin", "%s sets %s = %s", e.Plugin, e.Field, n.paint(bold, e.Value))
	case *observe.PluginLog:
		n.line(yellow, "plugin", "%s says %s: %s", e.Plugin, strings.ToUpper(e.Level.String()), e.Text)
	case *observe.Conflict:
		n.line(yellow, "proxy", "conflict: plugin %s wants another value for %s than plugin %s, which came first and stays", e.Plugin, e.Field, e.First)
	case *observe.PluginFailed:
		n.line(yellow, "proxy", "plugin %s failed and was ignored (its policy): %s", e.Plugin, e.Err)
	case *observe.HostCallRefused:
		n.line(yellow, "proxy", "refused plugin %s: %s %s: %s", e.Plugin, e.Function, e.Target, e.Err)
	default:
		if slogsink.Warns(e) {
			n.line(yellow, "proxy", "%s", slogsink.Line(e, "stack"))
		}
	}
}

func (n *narrator) loaded(how string, e *observe.PluginLoaded) {
	n.line(yellow, "proxy", "plugin %s: %s %s, hooks %s, in %s", how, e.Name, e.Version, e.Hooks, e.Took)
}

// files prints which cgroup files changed.
func (n *narrator) files(before, after map[string]string) {
	for _, w := range simulate.Writes(before, after) {
		n.line(cyan, "cgroup", "%s: %s → %s", w.Path, w.Before, n.paint(bold, w.After))
	}
}
