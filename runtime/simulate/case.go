package simulate

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/sdk/fixture"
)

// RunCase takes a fixture's case through the proxy, on a node that has cgroup files only
// if the case says so. The error is the case's own; that of the plugin is in the answer.
func RunCase(ctx context.Context, c fixture.Case, load Loader) (a fixture.Answer, err error) {
	event, err := FromFixture(c, 0)
	if err != nil {
		return a, err
	}
	s, err := Open(ctx, event, Options{ID: "10-fixture", Beside: "the case", ShowSecrets: true, Load: load})
	if failed := new(LoadError); errors.As(err, &failed) {
		return fixture.Answer{Err: failed.Err, Log: failed.Lines}, nil
	}
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	res, err := s.Run(ctx)
	if err != nil {
		return a, err
	}
	a = fixture.Answer{Err: res.Err, Log: res.Lines, KV: res.KV, Metrics: res.Metrics, Fuel: res.Fuel}
	if !res.Called {
		a.Err = errors.New("not called: the plugin's match does not select this pod or container")
	}
	if r := res.Rejection; r != nil {
		a.Reject = &fixture.Rejection{Code: r.Code, Reason: r.Reason}
	}
	if res.Dropped > 0 {
		a.Metrics["(dropped)"] = res.Dropped
	}
	if a.Err == nil && a.Reject == nil {
		a.Changes = s.player.changes
	}
	return a, nil
}

// player plays an event to its plugin: with what a fixture says and no call can. It keeps what the plugin asks for.
type player struct {
	plugin.Plugin
	event   *Event
	quiet   bool            // nothing is kept
	changes fixture.Changes // of the last call
}

func (p *player) Call(ctx context.Context, budget *plugin.Budget, ev plugin.Event, adj *plugin.Adjustment) error {
	if !p.event.Time.IsZero() {
		ev = overlaid{ev, p.event}
	}
	err := p.Plugin.Call(ctx, budget, ev, adj)
	if p.quiet {
		return err
	}
	p.changes = fixture.Changes{}
	for _, change := range adj.Changes() {
		target := change.Target()
		if change.Object >= abi.FirstHandle { // which the id stands for
			id, _ := ev.Text(change.Object, map[abi.Object]abi.Field{abi.Pod: abi.PodID, abi.Container: abi.ContainerID}[change.Of])
			kind := change.Of.String()
			target = strings.Replace(target, "other "+kind, kind+"("+id+")", 1)
		}
		p.changes[target] = changeText(change)
	}
	return err
}

// overlaid has the time, the request and the cgroup files of its event in the place of those of the call.
type overlaid struct {
	plugin.Event
	by *Event
}

func (e overlaid) Time() time.Time { return e.by.Time }

func (e overlaid) Int64(o abi.Object, f abi.Field) (int64, abi.Errno) {
	if o == abi.Event && f == abi.EventTime {
		return e.by.Time.UnixNano(), abi.OK
	}
	return e.Event.Int64(o, f)
}

// ReadFiles implements plugin.Event. A v1 node has several files in the place of one of v2, so
// the case's own content replaces the answer of a file that the node has.
func (e overlaid) ReadFiles(ctx context.Context, o abi.Object, files []string, each func(string, abi.Errno)) {
	n := 0
	e.Event.ReadFiles(ctx, o, files, func(content string, errno abi.Errno) {
		each(e.file(o, files[n], content, errno))
		n++
	})
}

func (e overlaid) file(o abi.Object, file, content string, errno abi.Errno) (string, abi.Errno) {
	name := abi.PodID
	if pod, ok := o.OfQOSClass(); ok {
		o, name = pod, abi.PodQoS
	}
	if given, ok := e.by.Files[o.String()][file]; ok && o == abi.Node && e.by.Node.CgroupVersion == 1 {
		return given, abi.OK
	}
	if failed := errno != abi.OK && errno != abi.NotFound; failed || e.by.Node.CgroupVersion != 1 {
		return content, errno
	}
	for id, files := range e.by.Files {
		given, ok := files[file]
		if own, _ := e.Event.Text(o, name); ok && own == id { // PodID is ContainerID, too
			return given, abi.OK
		}
	}
	return content, errno
}

func (e overlaid) Raw(has abi.CapabilitySet) ([]byte, abi.Errno) {
	if e.by.Raw != nil {
		return e.by.Raw, abi.OK
	}
	return e.Event.Raw(has)
}
