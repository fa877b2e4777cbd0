package wasm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/tetratelabs/wazero"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/wasm/binary"
	"github.com/wasmproxy/wasmproxy/runtime/wasm/codecache"
)

// settings are what compiled code depends on beside the module and the
// processor, as far as it differs from plugin to plugin.
type settings struct {
	Pages  uint32
	Wazero string // its version; share fills it in
}

// WazeroVersion is that of the module that the program was built with, or ""
// where Go does not know.
func WazeroVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range info.Deps {
		if m.Path == "github.com/tetratelabs/wazero" {
			return m.Version
		}
	}
	return ""
}

// runtimeConfig is how every module is compiled and run, in the daemon and in
// the process that compiles for it: wazero finds code that was compiled alike only.
func runtimeConfig(cache wazero.CompilationCache, s settings, interpret bool) wazero.RuntimeConfig {
	config := wazero.NewRuntimeConfig()
	if interpret {
		config = wazero.NewRuntimeConfigInterpreter()
	}
	return config.
		WithCompilationCache(cache).
		WithCoreFeatures(features).
		WithMemoryLimitPages(s.Pages).
		WithDebugInfoEnabled(false) // DWARF is untrusted input that nobody needs
}

// CompilerCommand is the first argument of a program that the engine starts to
// compile a module.
const CompilerCommand = codecache.Command

// RunCompiler is what such a program does: argument is what follows the command,
// in holds the module.
// What is wrong with the module goes to out, in one line.
func RunCompiler(ctx context.Context, argument string, in io.Reader, out io.Writer) error {
	job, err := codecache.ParseJob(argument)
	if err != nil {
		return err
	}
	if err := codecache.Confine(job.Limits); err != nil {
		return err
	}
	var s settings
	if err := json.Unmarshal([]byte(job.Settings), &s); err != nil {
		return fmt.Errorf("reading how to compile: %w", err)
	}
	module, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("reading the module: %w", err)
	}
	if err := compileInto(ctx, job.Dir, s, module); err != nil {
		text := plugin.Printable(err.Error(), maxReason)
		_, _ = io.WriteString(out, text) // the error says it too, to who looks
		return errors.New(text)
	}
	return nil
}

func compileInto(ctx context.Context, dir string, s settings, module []byte) (err error) {
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cache.Close(ctx)) }()
	r := wazero.NewRuntimeWithConfig(ctx, runtimeConfig(cache, s, false))
	code, err := r.CompileModule(ctx, module)
	if err != nil {
		return errors.Join(err, r.Close(ctx))
	}
	return errors.Join(r.Close(ctx), code.Close(ctx))
}

// codeRef is a reference to the cache that holds a module's code.
type codeRef struct {
	cache  wazero.CompilationCache
	making chan struct{} // holds a token for each module whose code is made, or read from disk
	gc     int           // the collector's GOGC meanwhile; 0 leaves it
	end    func(context.Context) error
}

// compiledCode is the code of a module, and the runtime in which its instances are made. Its
// owner closes it after them.
type compiledCode struct {
	runtime wazero.Runtime
	code    wazero.CompiledModule
	ref     codeRef
}

// Close frees the code unless another plugin has it, too.
func (c *compiledCode) Close(ctx context.Context) error {
	err := c.runtime.Close(ctx)
	if c.code != nil {
		err = errors.Join(err, c.code.Close(ctx))
	}
	return errors.Join(err, c.ref.end(ctx))
}

// codeOf makes the code of a module, or reads it from a directory that another process has
// filled. With compiled, code that is yet to be made is ErrNotCompiled. Of interpreted modules
// one is made at a time, since the collector's setting is the process's.
func (e *Engine) codeOf(ctx context.Context, s settings, interpret, compiled bool, module []byte) (c compiledCode, err error) {
	switch {
	case e.disk != nil && !interpret:
		c.ref, err = e.share(ctx, s, compiled, module)
	case compiled:
		err = ErrNotCompiled
	case interpret:
		c.ref, err = e.interpreted(module)
	default:
		c.ref = codeRef{cache: e.cache, making: make(chan struct{}, 1), end: func(context.Context) error { return nil }}
	}
	if err != nil {
		return c, err
	}
	c.runtime = wazero.NewRuntimeWithConfig(ctx, runtimeConfig(c.ref.cache, s, interpret))
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close(ctx))
		}
	}()
	select {
	case c.ref.making <- struct{}{}:
		defer func() { <-c.ref.making }()
	case <-ctx.Done():
		return c, fmt.Errorf("waiting for another plugin's code: %w", context.Cause(ctx))
	}
	if c.ref.gc != 0 {
		defer debug.SetGCPercent(debug.SetGCPercent(c.ref.gc))
	}
	defer recovered(&err)
	if c.code, err = c.runtime.CompileModule(ctx, module); err != nil {
		err = fmt.Errorf("compiling: %s", plugin.Printable(err.Error(), maxReason))
	}
	return c, err
}

// What the interpreter may keep of a module. It works in this process, and makes up to
// interpretedCost bytes of each byte of code.
const (
	maxInterpreted  = 2816 << 10 // bytes of code with its metering; a guest of standard Go: 2.4 MiB
	interpretedCost = 40
)

// interpreted takes what the code of a module needs, out of the budget of all guests.
func (e *Engine) interpreted(module []byte) (codeRef, error) {
	var size int64
	for id, content := range binary.Sections(module) {
		if id == binary.CodeSection {
			size = int64(content.Len())
		}
	}
	if size > maxInterpreted {
		return codeRef{}, fmt.Errorf("its code has %.3g MiB with its metering, too much to be interpreted: the limit is %.3g MiB; make it smaller, or let it be compiled (engine auto)", mib(size), mib(maxInterpreted))
	}
	if err := e.memory.take(size * interpretedCost); err != nil {
		return codeRef{}, fmt.Errorf("interpreting its code: %w", err)
	}
	end := func(context.Context) error { e.memory.give(size * interpretedCost); return nil }
	return codeRef{cache: e.cache, making: e.interpreting, gc: interpretingGC, end: end}, nil
}

// interpretingGC is the collector's GOGC while the code of an interpreted module is made:
// much of what that allocates is garbage at once.
const interpretingGC = 25

// sharedCode is the code of one entry of the disk cache, which all plugins made
// from the same module have in memory once.
//
// It is read by one plugin at a time: wazero 1.12 shows a module that it reads to others
// before the module has its entry code, without which an instance panics.
type sharedCode struct {
	cache   wazero.CompilationCache
	reading chan struct{} // holds a token while a plugin reads the code
	users   int
}

// share returns a reference to the code of a module on disk, which another process makes
// unless it is there.
func (e *Engine) share(ctx context.Context, s settings, compiled bool, module []byte) (codeRef, error) {
	s.Wazero = e.wazero
	how, err := json.Marshal(s)
	if err != nil {
		return codeRef{}, err
	}
	var dir string
	if compiled {
		dir, err = e.disk.Find(string(how), module)
	} else {
		dir, err = e.disk.Get(ctx, string(how), module)
	}
	if err != nil {
		return codeRef{}, fmt.Errorf("compiling: %w", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	shared := e.shared[dir]
	if shared == nil {
		cache, err := wazero.NewCompilationCacheWithDir(dir)
		if err != nil {
			return codeRef{}, fmt.Errorf("loading compiled code: %w", err)
		}
		shared = &sharedCode{cache: cache, reading: make(chan struct{}, 1)}
		e.shared[dir] = shared
	}
	shared.users++
	end := func(ctx context.Context) error {
		e.mu.Lock()
		defer e.mu.Unlock()
		if shared.users--; shared.users > 0 {
			return nil
		}
		delete(e.shared, dir)
		return shared.cache.Close(ctx)
	}
	return codeRef{cache: shared.cache, making: shared.reading, end: end}, nil
}
