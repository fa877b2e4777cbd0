package wasm

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// Options are what an Engine needs.
type Options struct {
	Log *slog.Logger // slog.Default() if nil

	// Interpret runs guests without compiling them: some fifty times slower,
	// and beyond the reach of a fault in the compiler.
	Interpret bool

	// NoTimeLimit lets guests run for as long as they like. It is there for the
	// test that shows what the limit is for; no program sets it.
	NoTimeLimit bool
}

// Engine loads plugins. It compiles a module once, however many of its plugins
// are loaded at a time. It is safe for concurrent use.
type Engine struct {
	log       *slog.Logger
	interpret bool
	limiter   limiter
	cache     wazero.CompilationCache
	compiling chan struct{} // holds a token while a module is compiled: one at a time, since it takes much memory
}

// NewEngine returns an Engine, which the caller closes. It logs which of
// wazero's engines will run: where the node forbids executable memory, wazero
// interprets.
func NewEngine(ctx context.Context, o Options) (*Engine, error) {
	e := &Engine{
		log:       o.Log,
		interpret: o.Interpret,
		limiter:   metered{},
		cache:     wazero.NewCompilationCache(),
		compiling: make(chan struct{}, 1),
	}
	if e.log == nil {
		e.log = slog.Default()
	}
	if o.NoTimeLimit {
		e.limiter = unlimited{}
	}
	kind, err := e.kind(ctx)
	if err != nil {
		return nil, fmt.Errorf("starting the wasm engine: %w", err)
	}
	e.log.InfoContext(ctx, "wasm engine started", "engine", kind)
	if kind == interpreter && !o.Interpret {
		e.log.WarnContext(ctx, "wasm plugins will be interpreted, which is slow: this processor or this node's policy does not allow compiled code")
	}
	return e, nil
}

// Close frees what plugins shared. All plugins have been closed before.
func (e *Engine) Close(ctx context.Context) error { return e.cache.Close(ctx) }

// features are what all supported toolchains need, and nothing else: no
// reference types (whose tables grow without a limit), no SIMD, no multi-value.
const features = api.CoreFeatureMutableGlobal | api.CoreFeatureNonTrappingFloatToIntConversion |
	api.CoreFeatureSignExtensionOps | api.CoreFeatureBulkMemoryOperations

// newRuntime returns a runtime for one plugin, whose memories end at this number of pages.
func (e *Engine) newRuntime(ctx context.Context, pages uint32) wazero.Runtime {
	config := wazero.NewRuntimeConfig()
	if e.interpret {
		config = wazero.NewRuntimeConfigInterpreter()
	}
	return wazero.NewRuntimeWithConfig(ctx, config.
		WithCompilationCache(e.cache).
		WithCoreFeatures(features).
		WithMemoryLimitPages(pages).
		WithDebugInfoEnabled(false)) // DWARF is untrusted input that nobody needs
}

// The two ways to run a module.
const (
	compiler    = "compiler"
	interpreter = "interpreter"
)

// kind finds out which engine wazero chose. It does not say, so we ask a
// function of the smallest module what it is.
func (e *Engine) kind(ctx context.Context) (string, error) {
	r := e.newRuntime(ctx, 1)
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
