package sdktest

import (
	"encoding/binary"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/sdk/fixture"
	"github.com/wasmproxy/wasmproxy/sdk/internal/native"
)

// Plugin is the plugin that the package under test has registered with package sdk. What
// it keeps and counts lives as long as the Plugin does.
type Plugin struct {
	config  string
	log     func(slog.Level, string)
	kv      map[string]string
	metrics map[string]int64
	held    map[string]bool
}

// Native returns the plugin that the package under test has registered with
// package sdk, with this configuration. What it logs goes to log, which may be
// nil. A configuration that the plugin refuses fails the test. Package variables are not
// reset, see [Run].
func Native(t testing.TB, config string, log *slog.Logger) *Plugin {
	t.Helper()
	p, err := load(fixture.Case{Config: config}, func(level slog.Level, text string) {
		if log != nil {
			log.Log(t.Context(), level, text)
		}
	})
	if err != nil {
		t.Fatalf("sdktest: %v", err)
	}
	return p
}

// Configure tells what the plugin under test says to a configuration.
func Configure(config string) error {
	_, err := load(fixture.Case{Config: config}, func(slog.Level, string) {})
	return err
}

// load configures the plugin under test, on the node of a case.
func load(c fixture.Case, log func(slog.Level, string)) (*Plugin, error) {
	if native.Guest.Hook == nil {
		return nil, errors.New("no package of this test imports sdk")
	}
	p := &Plugin{c.Config, log, maps.Clone(c.KV), map[string]int64{}, map[string]bool{}}
	call := p.call(fixture.Case{Cgroup: c.Cgroup, CgroupFiles: c.CgroupFiles, Node: c.Node, Grant: c.Grant})
	call.Objects = nil // there is no event yet
	_, err := p.run(call, native.Guest.Configure)
	return p, err
}

// call returns the call that a case describes.
func (p *Plugin) call(c fixture.Case) *native.Call {
	whole := c.Complete()
	objects := map[abi.Object]*native.Object{} // the event's own, and all pods and containers by handles
	add := func(kind abi.Object, fields fixture.Fields, own bool, pod *native.Object) *native.Object {
		o := &native.Object{Kind: kind, Own: own, Pod: pod, Fields: map[abi.Field]any{}}
		for _, info := range abi.Fields {
			if info.Object == kind {
				o.Fields[info.Field] = fields.Value(info)
			}
		}
		if own {
			objects[kind] = o
		}
		if kind == abi.Pod || kind == abi.Container {
			objects[abi.FirstHandle+abi.Object(len(objects))] = o
		}
		return o
	}
	add(abi.Event, whole.Event, true, nil)
	add(abi.Node, whole.Node, true, nil)
	if whole.Pod != nil {
		pod := add(abi.Pod, whole.Pod, true, nil)
		if whole.Container != nil {
			add(abi.Container, whole.Container, true, pod)
		}
		for _, fields := range whole.Siblings {
			add(abi.Container, fields, false, pod)
		}
	}
	for _, other := range whole.Store {
		pod := add(abi.Pod, other.Fields, false, nil)
		for _, fields := range other.Containers {
			add(abi.Container, fields, false, pod)
		}
	}

	declared, _ := native.Guest.Declared()
	kv := map[string]string{}
	maps.Copy(kv, p.kv)
	seed := binary.BigEndian.AppendUint64(make([]byte, 24), uint64(c.Time))
	return &native.Call{
		Hook: c.Hook, Time: c.Time, Has: declared & (abi.DefaultGrant() | c.Grant), Objects: objects, Files: c.CgroupFiles,
		Cgroup: c.CgroupVersion(), Request: c.Request, Config: p.config, Log: p.log, JSON: fixture.Text,
		Random: rand.NewChaCha8([32]byte(seed)), KV: kv, Metrics: p.metrics, Earlier: c.Earlier, Changes: Changes{}, Held: p.held, Holds: maps.Clone(p.held),
	}
}

// running is held while a plugin runs: package sdk serves one call at a time, as a guest does.
var running sync.Mutex

// run calls the plugin, and keeps what it keeps if it succeeds.
func (p *Plugin) run(call *native.Call, f func() int32) (Changes, error) {
	running.Lock()
	defer running.Unlock()
	native.Current = call
	defer func() { native.Current = nil }()
	switch result := f(); {
	case result < 0:
		return nil, errors.New(call.Failure)
	case result == abi.Reject:
		return nil, call.Rejection
	}
	p.kv, p.held = call.KV, call.Holds
	return call.Changes, nil
}
