package simulate

import (
	"errors"
	"strings"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/observe/slogsink"
)

// lines are those that a plugin has logged.
func lines(events []observe.Event) (all []string) {
	for _, line := range observe.All[*observe.PluginLog](events) {
		all = append(all, line.Level.String()+": "+line.Text)
	}
	return all
}

// take adds to the result what the events of a call of the plugin tell.
func (res *Result) take(plugin string, events []observe.Event) {
	res.Lines = append(res.Lines, lines(events)...)
	for _, e := range events {
		switch e := e.(type) {
		case *observe.PluginLog, *observe.PluginFailed: // of a failure, the call tells
		case *observe.HookCalled:
			if e.Plugin != plugin {
				continue
			}
			res.Called = true
			if e.Err != nil && !errors.As(e.Err, &res.Rejection) {
				res.Err = e.Err
			}
			res.Fuel, res.HostCalls, res.Took = res.Fuel+e.Fuel, res.HostCalls+e.HostCalls, res.Took+e.Duration
		case *observe.HostCallRefused:
			res.Refused = append(res.Refused, strings.TrimSpace(e.Function+" "+e.Target)+": "+e.Err)
		default:
			if slogsink.Warns(e) {
				res.Remarks = append(res.Remarks, slogsink.Line(e, "plugin", "hook", "namespace", "pod", "pod_id", "container", "container_id", "stack"))
			}
		}
	}
}
