package wasm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/wasm/codecache"
)

// DefaultGuestMemory is 256 MiB: that of 50 instances of standard Go, or of
// hundreds of TinyGo or Rust.
const DefaultGuestMemory = 256 << 20

// Options are what an Engine needs.
type Options struct {
	Observer observe.Observer // none if nil

	// Interpret runs guests without compiling them: some fifty times slower,
	// and beyond the reach of a fault in the compiler.
	Interpret bool

	// CacheDir is a directory for compiled code, ours alone. What it lacks is
	// compiled there by a process of its own: the program at Compiler, by default
	// the running one, started with CompilerCommand, which calls RunCompiler.
	// Empty: modules are compiled in this process.
	CacheDir, Compiler string

	// GuestMemory is how many bytes all guests together may have;
	// DefaultGuestMemory if 0.
	GuestMemory int64

	// Running is how many guests may serve a hook at a time, over all plugins, of
	// which one plugin's may be all but one; if 0 as many as there are processors for Go, and two if there is one.
	Running int

	// NoTimeLimit lets guests run for as long as they like. It is there for the
	// test that shows what the limit is for; no program sets it.
	NoTimeLimit bool
}

// Engine loads plugins. It compiles a module once, however many of its plugins
// are loaded at a time. It is safe for concurrent use.
type Engine struct {
	observer     observe.Observer
	interpret    bool
	unmetered    bool
	memory       *memoryBudget
	running      limiter
	slow         limiter // of slow plugins, which together leave one of running to the others
	wazero       string  // its version
	cache        wazero.CompilationCache
	interpreting chan struct{}    // holds a token while the code of an interpreted module is made
	disk         *codecache.Cache // nil: modules are compiled here

	mu     sync.Mutex
	shared map[string]*sharedCode // by their directories on disk
}

// NewEngine returns an Engine, which the caller closes. Its observer gets
// an event that names the engine of wazero that will run: where the node forbids executable memory, wazero
// interprets.
func NewEngine(ctx context.Context, o Options) (*Engine, error) {
	e := &Engine{
		observer:     o.Observer,
		interpret:    o.Interpret,
		unmetered:    o.NoTimeLimit,
		memory:       &memoryBudget{limit: cmp.Or(o.GuestMemory, DefaultGuestMemory)},
		running:      newLimiter(cmp.Or(o.Running, max(2, runtime.GOMAXPROCS(0)))),
		cache:        wazero.NewCompilationCache(),
		interpreting: make(chan struct{}, 1),
		wazero:       WazeroVersion(),
		shared:       map[string]*sharedCode{},
	}
	e.slow = newLimiter(e.running.allButOne())
	if e.observer == nil {
		e.observer = observe.Discard()
	}
	kind, err := e.kind(ctx)
	if err != nil {
		return nil, fmt.Errorf("starting the wasm engine: %w", err)
	}
	e.observer.Observe(ctx, &observe.EngineStarted{Engine: kind})
	if kind == interpreter && !o.Interpret {
		e.observer.Observe(ctx, &observe.EngineSlow{})
	}
	e.interpret = kind == interpreter
	if o.CacheDir == "" || e.interpret {
		return e, nil
	}
	if e.disk, err = codecache.Open(codecache.Options{Dir: o.CacheDir, Program: o.Compiler}); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the wasm engine: %w", err), e.Close(ctx))
	}
	return e, nil
}

// Close frees what plugins shared. All plugins have been closed before.
func (e *Engine) Close(ctx context.Context) error { return e.cache.Close(ctx) }

// features are what all supported toolchains need, and nothing else: no
// reference types (whose tables grow without a limit), no SIMD, no multi-value.
const features = api.CoreFeatureMutableGlobal | api.CoreFeatureNonTrappingFloatToIntConversion |
	api.CoreFeatureSignExtensionOps | api.CoreFeatureBulkMemoryOperations

// The two ways to run a module.
const (
	compiler    = "compiler"
	interpreter = "interpreter"
)

// kind finds out which engine wazero chose. It does not say, so we ask a
// function of the smallest module what it is.
func (e *Engine) kind(ctx context.Context) (string, error) {
	r := wazero.NewRuntimeWithConfig(ctx, runtimeConfig(e.cache, settings{Pages: 1}, e.interpret))
	defer r.Close(ctx)
	code, err := r.CompileModule(ctx, []byte("\x00asm\x01\x00\x00\x00"+ // magic, version
		"\x01\x04\x01\x60\x00\x00"+ // type: () -> ()
		"\x03\x02\x01\x00"+ // function of that type
		"\x07\x05\x01\x01f\x00\x00"+ // export it as "f"
		"\x0a\x04\x01\x02\x00\x0b")) // code: end
	if err != nil {
		return "", err
	}
	defer code.Close(ctx)
	m, err := r.InstantiateModule(ctx, code, wazero.NewModuleConfig())
	if err != nil {
		return "", err
	}
	if strings.HasPrefix(fmt.Sprintf("%T", m.ExportedFunction("f")), "*interpreter.") {
		return interpreter, nil
	}
	return compiler, nil
}
