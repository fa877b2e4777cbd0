package simulate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/recording"
	"github.com/wasmproxy/wasmproxy/sdk/fixture"
)

// Outcome is what came of a call of a recording that was played to another plugin.
type Outcome string

// The outcomes.
const (
	Same      Outcome = "same"      // it wants what the recorded plugin wanted
	Different Outcome = "different" // it wants something else
	Failed    Outcome = "failed"    // it failed, and the recorded plugin did not
	Unknown   Outcome = "unknown"   // it asked what the recording does not answer, so that nobody knows what it would do on the node
)

// Played is what came of a call.
type Played struct {
	Title   string           `json:"call"`
	Line    int              `json:"line"` // of the recording
	Outcome Outcome          `json:"outcome"`
	Changes []plugin.Changed `json:"changes,omitempty"` // what differs, by target
	Unknown []string         `json:"unknown,omitempty"` // questions that have no answer
	Error   string           `json:"error,omitempty"`   // why the plugin failed
	Fuel    int64            `json:"fuel"`
	WasFuel int64            `json:"was_fuel"`
	Took    time.Duration    `json:"took_ns"`
	WasTook time.Duration    `json:"was_took_ns"`
}

// ReplayOptions are what a plugin is played a recording with.
type ReplayOptions struct {
	Config string            // JSON, in place of the recording's; "" for that
	Grant  abi.CapabilitySet // beside the recording's
	Load   Loader
}

// Replay is a plugin that calls of a recording are played to. It is for one goroutine. The caller closes it.
type Replay struct {
	header *recording.Header
	plugin plugin.Plugin
	member plugin.Member
	now    *answers // of the call that is played
}

// OpenReplay loads the plugin as the recorded one was. The error is of type *LoadError if it is the plugin's.
func OpenReplay(header *recording.Header, o ReplayOptions) (*Replay, error) {
	p := &Replay{header: header}
	events := &observe.Recorder{}
	load := LoadOptions{
		Config: o.Config, Granted: header.Granted() | o.Grant, Observer: events, KV: plugin.NewKV(), Metrics: plugin.NewMetrics(),
	}
	for _, info := range abi.Features {
		if slices.Contains(header.Features, info.Name) {
			load.Features = append(load.Features, info.Feature)
		}
	}
	if o.Config == "" {
		load.Config = string(header.Config)
	}
	var err error
	if p.plugin, err = o.Load(load); err != nil {
		return nil, &LoadError{err, lines(events.Take())}
	}
	watched, ok := p.plugin.(plugin.Watched)
	if !ok {
		return nil, errors.Join(errors.New("only a plugin that is a WebAssembly module can be played a recording"), p.plugin.Close(context.Background()))
	}
	_, _ = watched.Watch(p) // nobody else does: the plugin was loaded for this
	rights := plugin.RightsOf(p.plugin.Manifest(), load.Granted, "")
	p.member = plugin.Member{ID: header.Plugin, Plugin: p.plugin, Capabilities: rights.Has(), Rights: rights}
	return p, nil
}

// Close closes the plugin.
func (p *Replay) Close(ctx context.Context) error { return p.plugin.Close(ctx) }

// Notes are for people: what the replay cannot tell.
func (p *Replay) Notes() (all []string) {
	manifest := p.plugin.Manifest()
	for _, was := range p.header.Hooks {
		i := slices.IndexFunc(manifest.Hooks, func(is abi.ManifestHook) bool { return is.Hook == was.Hook })
		if i >= 0 && !reflect.DeepEqual(manifest.Hooks[i], was) {
			all = append(all, fmt.Sprintf("the match of hook %s has changed: the plugin is played all recorded calls, also those that its match may leave out", was.Hook))
		}
	}
	for _, is := range manifest.Hooks {
		if len(p.header.Hooks) > 0 && !slices.ContainsFunc(p.header.Hooks, func(was abi.ManifestHook) bool { return is.Hook == was.Hook }) {
			all = append(all, fmt.Sprintf("hook %s is new: the recording has no call of it", is.Hook))
		}
	}
	return all
}

// Begin implements plugin.Watcher.
func (p *Replay) Begin(plugin.Event, *plugin.Adjustment) plugin.CallWatcher { return p.now }

// Closed implements plugin.Watcher.
func (p *Replay) Closed() {}

// Play plays a call of the recording. The error is that of ctx.
func (p *Replay) Play(ctx context.Context, c *recording.Call) (Played, error) {
	res := Played{Title: c.Title(), Line: c.Line, WasFuel: c.Fuel, WasTook: c.Took}
	was := want{changes: map[string]string{}, failed: c.Error != "", reject: c.Reject}
	p.now = &answers{
		call: c, env: p.header.Env, has: p.member.Capabilities, recorded: map[string][]*recording.Asked{}, conflict: map[string]bool{},
		values: plugin.NewKV().Begin(), wrote: map[string]bool{}, is: want{changes: map[string]string{}},
	}
	for i := range c.Asked {
		asked := &c.Asked[i]
		was.add(&asked.Question, p.header.Env, c.Handles)
		p.now.recorded[asked.Key()] = append(p.now.recorded[asked.Key()], asked)
		if recording.Writes(&asked.Question) && asked.Question.Errno == abi.Conflict {
			target, _ := askedChange(&asked.Question, p.header.Env, c.Handles)
			p.now.conflict[target] = true
		}
	}
	if manifest := p.plugin.Manifest(); manifest.HookSet().Has(c.Hook) {
		ev := playedEvent{call: c}
		adj := p.member.NewAdjustment(ev, p.header.Node.CgroupVersion)
		start := time.Now()
		err := p.plugin.Call(ctx, nil, ev, adj)
		res.Took = time.Since(start)
		if ctx.Err() != nil {
			return res, ctx.Err()
		}
		res.Fuel, _ = adj.Used()
		if p.now.is.failed = err != nil && !errors.As(err, &p.now.is.reject); p.now.is.failed {
			res.Error = plugin.Printable(err.Error(), maxPlayedError)
		}
	}

	before, after := was.rows(), p.now.is.rows()
	if was.failed && !p.now.is.failed {
		before[outcomeRow] += ": " + plugin.Printable(c.Error, maxPlayedError)
	}
	redactor := plugin.NewRedactor(p.now.own...)
	for target, value := range maps.Clone(after) { // the recording hides what the plugin had given to a variable
		if _, hidden := before[redactor.Text(target)]; hidden {
			delete(after, target)
			target = redactor.Text(target)
		}
		if strings.Contains(before[target], plugin.Redacted) {
			value = redactor.Text(value)
		}
		after[target] = value
	}
	res.Changes, res.Unknown = difference(before, after), p.now.unknown
	switch {
	case len(res.Unknown) > 0:
		res.Outcome = Unknown
	case p.now.is.failed && !was.failed:
		res.Outcome = Failed
	case len(res.Changes) > 0:
		res.Outcome = Different
	default:
		res.Outcome = Same
	}
	return res, nil
}

const maxPlayedError = 4 << 10 // bytes

// difference lists the targets that have another value after than before, sorted.
func difference(before, after map[string]string) (all []plugin.Changed) {
	targets := maps.Clone(before)
	maps.Copy(targets, after)
	for _, target := range slices.Sorted(maps.Keys(targets)) {
		earlier, had := before[target]
		now, has := after[target]
		if had == has && earlier == now {
			continue
		}
		row := plugin.Changed{Target: target}
		if had {
			row.Was = &earlier
		}
		if has {
			row.Is = &now
		}
		all = append(all, row)
	}
	return all
}

// want is what a plugin wants in a call.
type want struct {
	changes map[string]string
	failed  bool
	reject  *plugin.Rejection
}

// outcomeRow is the target of a row that tells that a call did not go on with changes.
const outcomeRow = "outcome"

// rows are what counts of it, by target: the changes of a call that fails or is refused do not.
func (w *want) rows() map[string]string {
	switch {
	case w.failed:
		return map[string]string{outcomeRow: "failed"}
	case w.reject != nil:
		return map[string]string{outcomeRow: fmt.Sprintf("refused with code %d: %s", w.reject.Code, w.reject.Reason)}
	}
	return w.changes
}

// add notes a change that was accepted.
func (w *want) add(q *plugin.Question, env bool, handles map[string]string) {
	if recording.Writes(q) && q.Errno == abi.OK {
		target, value := askedChange(q, env, handles)
		if _, set := w.changes[target]; set && value == fixture.Withdrawn {
			delete(w.changes, target) // what was set in this call is as if it had not been
			return
		}
		w.changes[target] = value
	}
}
