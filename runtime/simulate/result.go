package simulate

import (
	"context"
	"errors"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/observe/slogsink"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// Result is what came of an event.
type Result struct {
	Title    string
	Hook     abi.Hook
	Manifest abi.Manifest
	Rights   plugin.Rights
	Called   bool // false: its match does not select this pod or container

	Err       error             // why the plugin failed; nil if it did not
	Rejection *plugin.Rejection // its refusal; nil if it did not refuse
	Answer    error             // what kubelet is answered, nil for the backend's answer
	Policy    plugin.FailurePolicy

	Request, Sent proto.Message // as it came, and as the backend got it; nil in hooks apart from calls, or if it got nothing

	Updates  []*runtimeapi.UpdateContainerResourcesRequest // of other containers
	Writes   []Write
	Lines    []string          // that the plugin logged, as "warn: text"
	Refused  []string          // host functions that answered an error
	Remarks  []string          // of the proxy
	Metrics  map[string]int64  // of a histogram the sum
	Dropped  int64             // values of metrics that had no place
	KV       map[string]string // before the event and after
	KVBefore map[string]string

	Fuel, HostCalls int64
	Took            time.Duration

	redactor *plugin.Redactor // nil: secrets are shown
}

// Run lets the event happen once and gathers what came of it. The error is not the
// plugin's.
func (s *Simulator) Run(ctx context.Context) (Result, error) {
	res := Result{
		Title: s.event.Title(), Hook: s.event.Hook, Policy: s.policy, Manifest: s.plugin.Manifest(), Rights: s.member.Rights,
		KVBefore: s.loaded.KV.All(), Remarks: s.event.Notes,
	}
	res.Lines = lines(s.events.Take()) // of the load
	res.Answer = s.Call(ctx)
	if err := ctx.Err(); err != nil {
		return res, err
	}
	m := s.event.Call.Method
	makes := m != nil && m.Effect == cri.Makes && m.Object == abi.Container
	if makes && s.sent != nil { // it runs then, so that the cgroup files are written which wait for that
		c := newCall(&runtimeapi.StartContainerRequest{ContainerId: cri.ContainerID(s.event.Call.Response)})
		frame, err := cri.NewFrame(c.Request)
		if err != nil {
			return res, err
		}
		err = s.send(ctx, c.Method.Name, frame, func(context.Context, *cri.Frame) (*cri.Frame, error) { return cri.NewFrame(c.Response) })
		if err != nil {
			return res, err
		}
	}
	if s.earlier != nil && s.earlier.err != nil {
		return res, s.earlier.err
	}
	res.take(s.member.ID, s.events.Take())
	if s.tree != nil {
		after, err := s.tree.Files()
		if err != nil {
			return res, err
		}
		res.Writes = Writes(s.tree.before, after)
	}
	res.Metrics = map[string]int64{}
	for _, series := range s.loaded.Metrics.All() {
		res.Metrics[series.Name] = series.Value
	}
	res.Updates, res.Dropped, res.KV = s.backend.updates, s.loaded.Metrics.Dropped(), s.loaded.KV.All()
	if s.event.Call.Request != nil {
		res.Request = proto.Clone(s.event.Call.Request)
	}
	if s.sent != nil {
		res.Sent = s.event.Call.Method.NewRequest()
		if err := s.sent.Decode(res.Sent); err != nil {
			return res, err
		}
	}
	if s.shown {
		return res, nil
	}
	earlier := make([]proto.Message, 0, len(s.event.Before))
	for _, c := range s.event.Before {
		earlier = append(earlier, c.Request)
	}
	return res.Redact(earlier...), nil
}

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
