package demo

import (
	"fmt"
	"io"
	"log/slog"
	"strings"

	"google.golang.org/protobuf/proto"

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

// record prints what the proxy logged about plugins.
func (n *narrator) record(r record) {
	a := r.attrs
	switch r.msg {
	case "plugin loaded":
		n.line(yellow, "proxy", "plugin loaded: %s %s, hooks %s, in %s", a["name"], a["version"], a["hooks"], a["took"])
	case "plugin removed":
		n.line(yellow, "proxy", "plugin removed: %s", a["plugin"])
	case "plugin changed field":
		n.line(yellow, "plugin", "%s sets %s = %s", a["plugin"], a["field"], n.paint(bold, a["value"]))
	case "plugin log":
		n.line(yellow, "plugin", "%s says %s: %s", a["plugin"], r.level, a["text"])
	case "plugins conflict":
		n.line(yellow, "proxy", "conflict: plugin %s wants another value for %s than plugin %s, which came first and stays", a["plugin"], a["field"], a["first"])
	case "plugin failed and was ignored":
		n.line(yellow, "proxy", "plugin %s failed and was ignored (its policy): %s", a["plugin"], a["err"])
	case "host function refused":
		n.line(yellow, "proxy", "refused plugin %s: %s %s: %s", a["plugin"], a["function"], a["target"], a["err"])
	default:
		n.warning(r)
	}
}

// warning prints what else the proxy minds, such as a file that is no plugin.
func (n *narrator) warning(r record) {
	switch reason := r.attrs["err"]; {
	case r.level < slog.LevelWarn:
	case reason == "":
		n.line(yellow, "proxy", "%s", r.msg)
	default:
		n.line(yellow, "proxy", "%s: %s", r.msg, reason)
	}
}

// files prints which cgroup files changed.
func (n *narrator) files(before, after map[string]string) {
	for _, w := range simulate.Writes(before, after) {
		n.line(cyan, "cgroup", "%s: %s → %s", w.Path, w.Before, n.paint(bold, w.After))
	}
}
