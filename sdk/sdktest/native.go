package sdktest

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/fixture"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/sdk/internal/native"
)

// Native returns the plugin that the package under test has registered with
// package sdk, with this configuration. What it logs goes to log, which may be
// nil. A configuration that the plugin refuses fails the test. What it keeps and
// counts lives as long as what Native returned. Package variables are not reset, see [Run].
func Native(t testing.TB, config string, log *slog.Logger) plugin.Plugin {
	t.Helper()
	p, err := load(options(config, log))
	if err != nil {
		t.Fatalf("sdktest: %v", err)
	}
	return p
}

// Configure tells what the plugin under test says to a configuration.
func Configure(config string) error {
	_, err := load(options(config, nil))
	return err
}

func options(config string, log *slog.Logger) fixture.Options {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return fixture.Options{Config: config, Granted: abi.DefaultGrant(), Log: log, KV: plugin.NewKV(), Metrics: plugin.NewMetrics(),
		Features: fixture.Features(0)}
}

// load returns the plugin under test, configured.
func load(o fixture.Options) (plugin.Plugin, error) {
	if native.Guest.Hook == nil {
		return nil, errors.New("no package of this test imports sdk")
	}
	g := &guest{Options: o}
	ev, err := (&fixture.Case{}).NewEvent() // there is none yet
	if err != nil {
		return nil, err
	}
	h := g.host(ev, nil)
	var text []byte
	h.run(func() int32 { text = native.Guest.Manifest(); return 0 })
	if g.manifest, err = plugin.ParseManifest(text); err != nil {
		return nil, err
	}
	h = g.host(ev, plugin.NewAdjustmentOf(ev, nil, g.has()))
	if err := h.verdict(h.run(native.Guest.Configure)); err != nil {
		return nil, err
	}
	return g, nil
}

// guest is the plugin under test.
type guest struct {
	fixture.Options
	manifest abi.Manifest
}

// in returns the same plugin as the case would have it loaded.
func (g *guest) in(c *fixture.Case) *guest {
	other := *g
	other.Granted, other.Features = c.Grant, c.Features()
	return &other
}

func (g *guest) has() abi.CapabilitySet {
	return (&fixture.Case{Grant: g.Granted}).Has(g.manifest)
}

func (g *guest) host(ev plugin.Event, adj *plugin.Adjustment) *host {
	return &host{guest: g, Event: ev, adj: adj, has: g.has(), draft: g.KV.Begin()}
}

func (g *guest) Manifest() abi.Manifest { return g.manifest }

func (g *guest) Close(context.Context) error { return nil }

func (g *guest) Call(_ context.Context, _ *plugin.Budget, ev plugin.Event, adj *plugin.Adjustment) error {
	h := g.host(ev, adj)
	err := h.verdict(h.run(func() int32 { return native.Guest.Hook(ev.Hook()) }))
	if err != nil {
		return err
	}
	return h.draft.Commit()
}
