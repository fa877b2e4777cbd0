package wasm

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/wasmproxy/wasmproxy/runtime/wasm/fuel"
)

// Profile is where hooks use fuel, by the functions of a guest and of the host. Guests whose module was loaded with its Context note it;
// they take many times as long. It is safe for concurrent use.
type Profile struct {
	mu   sync.Mutex
	used map[string]*Sample // by stack
}

// Sample is what one stack of functions has used.
type Sample struct {
	Stack []string // from the function that used it to the export
	Calls int64    // how often the function was called there
	Fuel  int64    // that it used itself
}

// NewProfile returns a profile of nothing.
func NewProfile() *Profile { return &Profile{used: map[string]*Sample{}} }

// Context has modules that are loaded with it be watched. Their code must not come from a directory: such code was compiled without.
func (p *Profile) Context(ctx context.Context) context.Context {
	return experimental.WithFunctionListenerFactory(ctx, p)
}

// Samples returns what hooks have used, sorted by stack.
func (p *Profile) Samples() (all []Sample) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.used {
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b Sample) int { return slices.Compare(a.Stack, b.Stack) })
	return all
}

// NewFunctionListener implements [experimental.FunctionListenerFactory]. The function that gives a guest more fuel is not watched: it is the host's own.
func (p *Profile) NewFunctionListener(f api.FunctionDefinition) experimental.FunctionListener {
	if f.ModuleName() == fuel.Module {
		return nil
	}
	name := f.DebugName()
	if number, anonymous := strings.CutPrefix(name, ".$"); anonymous {
		name = "function " + number
	}
	name = strings.TrimPrefix(name, ".")
	if f.GoFunction() != nil { // it is the host's
		name = f.ModuleName() + "." + f.Name()
	}
	return &profiled{of: p, name: name}
}

// profiled is one function of a profile, which wazero calls as its listener.
type profiled struct {
	of   *Profile
	name string
}

// running are the functions that a guest is in.
type running struct {
	stack []string // from the export on
	fuel  int64    // that the call had used when the last of them was noted
}

func (f *profiled) Before(ctx context.Context, _ api.Module, _ api.FunctionDefinition, _ []uint64, _ experimental.StackIterator) {
	c := hookOf(ctx)
	if c == nil {
		return
	}
	if c.profile == nil {
		c.profile = &running{fuel: c.meter.used()}
	}
	f.of.note(c, 0)
	c.profile.stack = append(c.profile.stack, f.name)
	f.of.note(c, 1)
}

func (f *profiled) After(ctx context.Context, _ api.Module, _ api.FunctionDefinition, _ []uint64) {
	if c := hookOf(ctx); c != nil && c.profile != nil {
		f.of.note(c, 0)
		c.profile.stack = c.profile.stack[:len(c.profile.stack)-1]
	}
}

func (f *profiled) Abort(ctx context.Context, m api.Module, d api.FunctionDefinition, _ error) {
	f.After(ctx, m, d, nil)
}

// hookOf returns the call of a hook, nil for other calls of a guest.
func hookOf(ctx context.Context) *call {
	f, _ := frameOf(ctx)
	if f.event.Hook() == 0 {
		return nil
	}
	return f.call
}

// note adds what was used since the last note to the stack as it is.
func (p *Profile) note(c *call, calls int64) {
	r := c.profile
	used := c.meter.used()
	spent := used - r.fuel
	r.fuel = used
	if len(r.stack) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	key := strings.Join(r.stack, "\n")
	s := p.used[key]
	if s == nil {
		s = &Sample{Stack: slices.Clone(r.stack)}
		slices.Reverse(s.Stack)
		p.used[key] = s
	}
	s.Calls += calls
	s.Fuel += spent
}
