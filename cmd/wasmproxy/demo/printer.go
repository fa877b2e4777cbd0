package demo

import (
	"fmt"
	"io"
	"strings"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/observe/slogsink"
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

// printer prints what happens, in colour if it prints to a terminal.
type printer struct {
	w      io.Writer
	colour bool
}

func (p *printer) paint(code, text string) string {
	if !p.colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (p *printer) title(text string) { fmt.Fprintf(p.w, "\n%s\n", p.paint(bold, text)) }

// line prints one line about who did what.
func (p *printer) line(code, who, format string, args ...any) {
	fmt.Fprintf(p.w, "  %s %s\n", p.paint(code, fmt.Sprintf("%-8s", who)), fmt.Sprintf(format, args...))
}

// event prints what happened to a plugin, and what else an operator is warned of.
func (p *printer) event(e observe.Event) {
	switch e := e.(type) {
	case *observe.PluginLoaded:
		p.loaded("loaded", e)
	case *observe.PluginReplaced:
		p.loaded("replaced", &e.PluginLoaded)
	case *observe.PluginRemoved:
		p.line(yellow, "proxy", "plugin removed: %s", e.Plugin)
	case *observe.FieldChanged:
		p.line(yellow, "plugin", "%s sets %s = %s", e.Plugin, e.Field, p.paint(bold, e.Value))
	case *observe.PluginLog:
		p.line(yellow, "plugin", "%s says %s: %s", e.Plugin, strings.ToUpper(e.Level.String()), e.Text)
	case *observe.Conflict:
		p.line(yellow, "proxy", "conflict: plugin %s wants another value for %s than plugin %s, which came first and stays", e.Plugin, e.Field, e.First)
	case *observe.PluginFailed:
		p.line(yellow, "proxy", "plugin %s failed and was ignored (its policy): %s", e.Plugin, e.Err)
	case *observe.HostCallRefused:
		p.line(yellow, "proxy", "refused plugin %s: %s %s: %s", e.Plugin, e.Function, e.Target, e.Err)
	default:
		if slogsink.Warns(e) {
			p.line(yellow, "proxy", "%s", slogsink.Line(e, "stack"))
		}
	}
}

func (p *printer) loaded(how string, e *observe.PluginLoaded) {
	p.line(yellow, "proxy", "plugin %s: %s %s, hooks %s, in %s", how, e.Name, e.Version, e.Hooks, e.Took)
}
