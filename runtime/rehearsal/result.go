package rehearsal

import (
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// Result is what came of an event.
type Result struct {
	Title    string
	Hook     abi.Hook
	Manifest abi.Manifest
	Lacking  abi.CapabilitySet // declared and not granted
	Asked    bool              // false: its match does not want this pod or container

	Err       error             // why the plugin failed; nil if it did not
	Rejection *plugin.Rejection // its refusal; nil if it did not refuse
	Answer    error             // what kubelet is answered, nil for the backend's answer
	Policy    plugin.FailurePolicy

	Request, Sent proto.Message                                 // as it came, and as the backend got it: nil in hooks apart from calls, or if it got nothing
	Updates       []*runtimeapi.UpdateContainerResourcesRequest // of other containers
	Writes        []Write
	Lines         []Line
	Refused       []string // host functions that answered an error
	Remarks       []string // of the proxy
	Metrics       []plugin.Series
	KV            map[string]string // before the event and after
	KVBefore      map[string]string

	Fuel, HostCalls int64
	Took            time.Duration

	veil *plugin.Veil // nil: secrets are shown
}

// Play lets the event happen once and gathers what came of it. The error is not the
// plugin's.
func (r *Rig) Play(ctx context.Context) (Result, error) {
	res := Result{Title: r.event.Title(), Hook: r.event.Hook, Policy: r.policy, Manifest: r.plugin.Manifest(), KVBefore: r.kept.KV.All(), Remarks: r.event.Notes}
	declared, _ := res.Manifest.Declared()
	res.Lacking = declared &^ r.kept.Granted
	r.heard.begin()
	res.Answer = r.Call(ctx)
	if err := errors.Join(ctx.Err(), r.start(ctx)); err != nil {
		return res, err
	}
	r.judge(&res)
	var err error
	if res.Writes, err = r.tree.writes(); err != nil {
		return res, err
	}
	res.Updates, res.Metrics, res.KV = r.backend.updates, r.kept.Metrics.All(), r.kept.KV.All()
	res.Lines, res.Refused = r.heard.lines, r.heard.refused
	res.Remarks = append(res.Remarks, r.heard.remarks...)
	res.Fuel, res.HostCalls, res.Took = r.heard.fuel, r.heard.calls, r.heard.took
	if err := r.messages(&res); err != nil || r.shown {
		return res, err
	}
	earlier := make([]proto.Message, 0, len(r.event.Before))
	for _, c := range r.event.Before {
		earlier = append(earlier, c.Request)
	}
	return res.Hide(earlier...), nil
}

// judge tells what the plugin answered.
func (r *Rig) judge(res *Result) {
	for _, o := range r.outcomes.all {
		res.Asked = true
		if o.Err != nil && !errors.As(o.Err, &res.Rejection) {
			res.Err = o.Err
		}
	}
}

func (r *Rig) messages(res *Result) error {
	if r.event.Call.Request == nil {
		return nil
	}
	res.Request = proto.Clone(r.event.Call.Request)
	if r.sent == nil {
		return nil
	}
	res.Sent = r.event.Call.Method.NewRequest()
	return r.sent.Decode(res.Sent)
}
