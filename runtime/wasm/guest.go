package wasm

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/tetratelabs/wazero/api"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/wasm/fuel"
)

// guest is one instance of a plugin's module. It serves one call at a time.
type guest struct {
	of       *guests
	instance api.Module
	hook     api.Function // kept, because a look-up costs more than a call
	fuel     api.MutableGlobal
	frames   api.MutableGlobal // what is left of its stack
	clock    clock
	memory   *memory
	globals  []api.MutableGlobal
	image    *image // nil until it is ready for events

	// broken means that it cannot be reset: wazero panicked in it, or ran out of
	// stack, of which the function then holds many megabytes.
	broken  bool
	trapped bool // in its last call, so that what it keeps in memory may be anything
	mu      sync.Mutex
	dirty   bool // it served a call since it was last reset; guarded by mu

	call  call        // the one that runs, or the last
	frame frame       // of that call
	ctx   callContext // of that call
	stack [1]uint64   // the one argument, then the one result, of what is called
}

// enter calls an export; c is the host's side of it. After an error the guest
// is not to be used again.
func (g *guest) enter(ctx context.Context, c *call, f api.Function, argument uint64) (result uint64, err error) {
	defer c.finish(ctx)
	defer recovered(&err)
	defer c.report(ctx)
	c.meter.begin()
	g.stack[0] = argument
	g.memory.denied = nil
	g.broken, g.trapped = true, true
	err = f.CallWithStack(g.during(ctx, c), g.stack[:])
	m := &c.meter
	if err == nil && m.owed != 0 { // of which it may have paid nothing yet
		if used := m.used(); used > m.fuel {
			err = &stop{m.spent(&fuel.Error{Limit: m.fuel, Used: used})}
		}
	}
	if !m.seen.IsZero() && m.seen.Sub(m.start) > slowCall { // as far as anybody looked at the clock
		seen := m.seen // a copy: the meter serves the next call
		g.of.lastSlow.Store(&seen)
	}
	g.broken = err != nil && (m.overflowed() || strings.Contains(err.Error(), "wasm error: stack overflow"))
	if g.trapped = err != nil; !g.trapped {
		return g.stack[0], nil
	}
	err = c.explain(ctx, err)
	// It did not get the memory it wanted, or may not have got it: wazero does not say when it refuses
	// what is over the guest's own limit.
	limit := g.memory.limit
	switch {
	case g.memory.denied != nil:
		return 0, fmt.Errorf("%w; it asked for memory: %w", err, g.memory.denied)
	case strings.Contains(err.Error(), "out of bounds memory access") && g.stackEnded():
		return 0, fmt.Errorf("%w; its first global, where Rust, C and TinyGo keep the stack pointer, points outside its memory: "+
			"it seems to have used up its stack, by a recursion without end or by large variables", err)
	case g.memory.size > limit/8*7:
		return 0, fmt.Errorf("%w; its memory has %.4g MiB, its limit is %.4g MiB: raise %s",
			err, mib(g.memory.size), mib(limit), g.of.memoryKey())
	}
	return 0, err
}

// during returns the context of a call, by which host functions find it.
func (g *guest) during(ctx context.Context, c *call) context.Context {
	g.frame.call = c
	g.ctx = callContext{ctx, &g.frame}
	return &g.ctx
}

// stackEnded reports whether the pointer of the stack that compilers keep in memory has left
// it. They place the stack first, so that one that is used up goes below address 0.
func (g *guest) stackEnded() bool {
	return len(g.globals) > 0 && g.globals[0].Type() == api.ValueTypeI32 && uint32(g.globals[0].Get()) > g.instance.Memory().Size()
}

// memoryKey is the key that gives instances more memory: the JSON's, or the manifest's if that
// is as low.
func (p *guests) memoryKey() string {
	if limit := p.manifest.Limits.Memory; limit > 0 && pagesOf(limit) == p.limit {
		return "limits.memory in its manifest"
	}
	return "limits.memory"
}

// recovered turns a panic of wazero itself into an error.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("the wasm engine panicked: %s", plugin.Printable(fmt.Sprint(r), maxReason))
	}
}

// initialize runs what must run before any other export, the module's start function and its
// initializer, and returns the version of the ABI that the guest was built for.
func (g *guest) initialize(ctx context.Context) (version uint32, err error) {
	for _, export := range []string{fuel.Start, abi.ExportInitialize, abi.ExportABI} {
		result, err := g.before(ctx, export)
		if err != nil {
			return 0, err
		}
		version = uint32(result)
	}
	return version, checkVersion(version)
}

// before calls an export before the first event. One that is not there returns 0.
func (g *guest) before(ctx context.Context, export string) (uint64, error) {
	f := g.instance.ExportedFunction(export)
	if f == nil {
		return 0, nil
	}
	if export == fuel.Start {
		export = "start function"
	}
	result, err := g.enter(ctx, g.newCall(ctx, export, nil, nil, nil), f, 0)
	return result, wrap(export, err)
}

// manifest calls wp_manifest and returns the JSON.
func (g *guest) manifest(ctx context.Context) ([]byte, error) {
	where, err := g.before(ctx, abi.ExportManifest)
	if err != nil {
		return nil, err
	}
	ptr, length := uint32(where>>32), uint32(where)
	if length > abi.MaxManifest {
		return nil, fmt.Errorf("%s: the manifest has %d bytes, the limit is %d", abi.ExportManifest, length, abi.MaxManifest)
	}
	view, ok := g.instance.Memory().Read(ptr, length)
	if !ok {
		return nil, fmt.Errorf("%s: %d bytes at %#x are outside its memory", abi.ExportManifest, length, ptr)
	}
	return append([]byte(nil), view...), nil
}

// learn takes the manifest from the plugin's first instance. The others are asked, too, so
// that all begin alike, but what they say does not count.
func (p *guests) learn(ctx context.Context, g *guest) error {
	b, err := g.manifest(ctx)
	if err != nil || p.effectiveLimits.manifest.Name != "" {
		return err
	}
	m, err := parseManifest(b)
	if err != nil {
		return err
	}
	if p.effectiveLimits, err = p.options.negotiate(&m); err != nil {
		return err
	}
	if err := g.memory.cap(int64(p.limit) << 16); err != nil {
		return fmt.Errorf("%w: raise %s", err, p.memoryKey())
	}
	return nil
}

func wrap(export string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", export, err)
}

// close ends the instance. The function goes with it: after a stack overflow
// it holds a stack of many megabytes.
func (g *guest) close() {
	_ = g.instance.Close(context.Background()) // holds neither files nor host modules, so nothing can fail
	p := g.of
	if i := g.image; i != nil {
		p.mu.Lock()
		// An image that no instance is reset to is not kept: a guest that begins differently each
		// time would fill the budget of all.
		if i.users--; i.users == 0 {
			p.memory.give(i.bytes())
			p.images = slices.DeleteFunc(p.images, func(kept *image) bool { return kept == i })
		}
		p.mu.Unlock()
	}
	g.memory.Free()
	p.instances.Add(-1)
	g.hook, g.globals = nil, nil
}
