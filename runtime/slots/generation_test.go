package slots

import (
	"context"
	"errors"
	"path"
	"slices"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/loader"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/reconcile"
)

// closing is a plugin that tells when it is closed.
type closing struct {
	plugin.Plugin
	closed bool
}

func (c *closing) Close(context.Context) error { c.closed = true; return nil }

func (c *closing) Manifest() abi.Manifest { return abi.Manifest{} }

// load has p as what a loader makes of files.
func load(p plugin.Plugin) *loader.Loaded {
	return &loader.Loaded{Plugin: p, RefCounted: loader.NewRefCounted(func() { _ = p.Close(context.Background()) })}
}

// unconnected returns Slots without a container runtime and without cgroups.
func unconnected(t *testing.T) *Slots {
	t.Helper()
	c := new(config.Config)
	r, err := reconcile.Open(t.Context(), c, reconcile.DefaultTiming(), observe.Discard())
	if err != nil {
		t.Fatal(err)
	}
	r.Connect(nil, nil)
	return &Slots{generations: generations{Options: Options{Config: c, Observer: observe.Discard(), Reconciler: r}}}
}

// routing makes a generation of one plugin whose calls all go to intercept, the
// only one that still holds the plugin.
func routing(t *testing.T, p plugin.Plugin, intercept cri.Interceptor) *generation {
	t.Helper()
	have := load(p)
	g := unconnected(t).generations.generation([]loader.Member{{Loaded: have}})
	g.route = func(string) cri.Interceptor { return intercept }
	have.Release()
	return g
}

// A caller that goes away before it has sent its request never asks the
// interceptor: that must not keep plugins for ever.
func TestRouteThatIsNeverTaken(t *testing.T) {
	var c generations
	p := &closing{}
	c.swap(routing(t, p, passing))
	if c.Route("/x/Y") == nil {
		t.Fatal("no route")
	}
	c.swap(nil)
	if !p.closed {
		t.Error("the plugin of a generation that nobody uses was not closed")
	}
}

// A plugin lives until the last call that it serves has ended, and calls that
// come later go to the generation after it, or pass.
func TestGenerationLivesAsLongAsItsCalls(t *testing.T) {
	var c generations
	old, young := &closing{}, &closing{}
	entered, leave := make(chan struct{}), make(chan struct{})
	c.swap(routing(t, old, func(ctx context.Context, call *cri.Call, next cri.Next) (*cri.Frame, error) {
		close(entered)
		<-leave
		return next(ctx, call.Request)
	}))
	routed := c.Route("/x/Y")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = c.Route("/x/Y")(t.Context(), new(cri.Call), answer)
	}()
	<-entered
	c.swap(routing(t, young, passing))
	if _, err := routed(t.Context(), new(cri.Call), answer); err != nil || old.closed {
		t.Errorf("error %v; closed under a call: %v", err, old.closed)
	}
	close(leave)
	<-ended
	if !old.closed || young.closed {
		t.Errorf("closed: old %v, young %v", old.closed, young.closed)
	}
	routed = c.Route("/x/Y")
	c.swap(nil)
	if resp, err := routed(t.Context(), new(cri.Call), answer); resp == nil || err != nil || !young.closed {
		t.Errorf("after the last plugin: %v, %v, closed %v", resp, err, young.closed)
	}
}

func answer(context.Context, *cri.Frame) (*cri.Frame, error) { return &cri.Frame{}, nil }

func passing(ctx context.Context, call *cri.Call, next cri.Next) (*cri.Frame, error) {
	return next(ctx, call.Request)
}

// A call that ends after the first plugin has come is made up for, since the store may have been
// filled before the runtime had done what was asked.
func TestCallThatNoGenerationSaw(t *testing.T) {
	for _, m := range cri.Methods {
		if m.Effect == cri.Nothing {
			continue
		}
		t.Run(path.Base(m.Name), func(t *testing.T) {
			var missed []bool
			c := generations{missed: func(answered bool) { missed = append(missed, answered) }}
			pass := func(ends error, meanwhile func()) {
				_, err := c.Route(m.Name)(t.Context(), new(cri.Call), func(context.Context, *cri.Frame) (*cri.Frame, error) {
					meanwhile()
					return &cri.Frame{}, ends
				})
				if !errors.Is(err, ends) {
					t.Fatalf("error %v, want %v", err, ends)
				}
			}
			if pass(nil, func() {}); missed != nil {
				t.Error("it is missed although nobody is there to miss it")
			}
			if pass(nil, func() { c.swap(routing(t, &closing{}, passing)) }); !slices.Equal(missed, []bool{true}) {
				t.Errorf("missed: %v", missed)
			}
			if pass(nil, func() {}); len(missed) != 1 {
				t.Error("it is missed although the generation saw it")
			}
			c.swap(nil)
			if pass(context.Canceled, func() { c.swap(routing(t, &closing{}, passing)) }); !slices.Equal(missed, []bool{true, false}) {
				t.Errorf("without an answer, missed: %v", missed)
			}
		})
	}
	var c generations
	if c.Route("/runtime.v1.RuntimeService/Version") != nil {
		t.Error("a call that changes nothing does not pass as it comes")
	}
	if c.Reported = true; c.Route("/runtime.v1.RuntimeService/StartContainer") != nil {
		t.Error("a start of which the runtime tells does not pass as it comes")
	}
	if c.missed = func(bool) {}; c.Route("/runtime.v1.RuntimeService/CreateContainer") == nil {
		t.Error("nobody notices that a container was created of which the runtime does not tell")
	}
}
