package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/abi/group"
)

// callTime bounds a call of a guest. This host counts no instructions.
const callTime = 2 * time.Second

// guest is a module that is loaded. Each call gets a new instance, configured anew: so nothing is left of earlier calls.
type guest struct {
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	manifest abi.Manifest
	granted  abi.CapabilitySet
	config   string
	hooks    []string // that the operator leaves the guest; all if empty
	log      []string // of the load
}

// load follows "Life of a guest" of ABI.md.
func load(ctx context.Context, module []byte, config string, granted abi.CapabilitySet, hooks ...string) (g *guest, err error) {
	g = &guest{config: config, hooks: hooks}
	settings := wazero.NewRuntimeConfig().WithMemoryLimitPages(512).WithCloseOnContextDone(true).WithCustomSections(true)
	g.runtime = wazero.NewRuntimeWithConfig(ctx, settings)
	defer func() {
		if err != nil {
			err = errors.Join(err, g.close(ctx))
		}
	}()
	if g.compiled, err = g.runtime.CompileModule(ctx, module); err != nil {
		return g, err
	}
	sections := 0
	for _, s := range g.compiled.CustomSections() {
		if s.Name() == abi.ManifestSection {
			sections, err = sections+1, g.readManifest(s.Data())
		}
	}
	if err == nil && sections > 1 {
		err = errors.New("two manifests")
	}
	if err = errors.Join(err, g.checkExports(), g.link(ctx)); err != nil {
		return g, err
	}
	return g, g.configure(ctx, sections == 0, granted)
}

// configure calls what comes before the first event. A guest without a section tells its manifest itself.
func (g *guest) configure(ctx context.Context, ask bool, granted abi.CapabilitySet) error {
	e := &event{config: g.config}
	if !ask {
		g.allow(e, granted)
	}
	m, ctx, cancel, err := g.instantiate(ctx, e)
	defer cancel()
	if err != nil {
		return err
	}
	defer m.Close(ctx)
	version, err := m.ExportedFunction(abi.ExportABI).Call(ctx)
	if err != nil || version[0]>>16 != abi.Major {
		return errors.Join(err, fmt.Errorf("built for another major version: %v", version))
	}
	if ask {
		if err := g.askManifest(ctx, m); err != nil {
			return err
		}
		g.allow(e, granted)
	}
	err = g.checkHooks()
	if err == nil {
		err = runConfigure(ctx, m, e)
	}
	g.log = e.log
	return err
}

// allow gives an event what the manifest declares and the operator grants.
func (g *guest) allow(e *event, granted abi.CapabilitySet) {
	declared, _ := g.manifest.Declared()
	g.granted = declared & granted
	e.granted = g.granted
}

func (g *guest) askManifest(ctx context.Context, m api.Module) error {
	f := m.ExportedFunction(abi.ExportManifest)
	if f == nil {
		return errors.New("no manifest")
	}
	at, err := f.Call(ctx)
	if err != nil {
		return err
	}
	text, ok := m.Memory().Read(uint32(at[0]>>32), uint32(at[0]))
	if !ok {
		return errors.New("the manifest is outside of memory")
	}
	g.manifest = abi.Manifest{}
	return g.readManifest(text)
}

func (g *guest) readManifest(text []byte) error {
	if len(text) > abi.MaxManifest {
		return errors.New("the manifest is too long")
	}
	m := struct {
		*abi.Manifest
		Hooks []json.RawMessage `json:"hooks"`
	}{Manifest: &g.manifest}
	if err := json.Unmarshal(text, &m); err != nil {
		return err
	}
	g.manifest.Hooks = nil
	for _, text := range m.Hooks { // a name, or an object
		var hook abi.ManifestHook
		if json.Unmarshal(text, &hook.Hook) != nil {
			if err := json.Unmarshal(text, &hook); err != nil {
				return err
			}
		}
		if len(g.hooks) == 0 || slices.Contains(g.hooks, hook.Hook) {
			g.manifest.Hooks = append(g.manifest.Hooks, hook)
		}
	}
	return nil
}

// checkHooks refuses a hook that this host does not serve, unless the guest can do without it.
func (g *guest) checkHooks() error {
	if g.manifest.Name == "" || g.manifest.Version == "" || len(g.manifest.Hooks) == 0 {
		return errors.New("the manifest lacks name, version or hooks")
	}
	for _, h := range g.manifest.Hooks {
		hook, _ := abi.HookByName(h.Hook)
		if group.OfHook(hook) != group.Core && !slices.Contains(g.manifest.Optional, h.Hook) {
			return fmt.Errorf("this host has no hook %q", h.Hook)
		}
	}
	return nil
}

func runConfigure(ctx context.Context, m api.Module, e *event) error {
	f := m.ExportedFunction(abi.ExportConfigure)
	if f == nil {
		return nil
	}
	result, err := f.Call(ctx)
	if err != nil {
		return err
	}
	if int32(result[0]) < 0 {
		return fmt.Errorf("%s (%d)", e.reason, int32(result[0]))
	}
	return nil
}

// instantiate makes an instance whose functions are about this event.
func (g *guest) instantiate(ctx context.Context, e *event) (api.Module, context.Context, context.CancelFunc, error) {
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, eventKey{}, &call{event: e}), callTime)
	m, err := g.runtime.InstantiateModule(ctx, g.compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions(abi.ExportInitialize))
	return m, ctx, cancel, err
}

// call tells the guest an event. The event then has what came of it; the error is why the guest failed.
func (g *guest) call(ctx context.Context, e *event) error {
	before := &event{config: g.config, granted: g.granted}
	m, ctx, cancel, err := g.instantiate(ctx, before)
	defer cancel()
	if err != nil {
		return err
	}
	defer m.Close(ctx)
	if err := runConfigure(ctx, m, before); err != nil {
		return err
	}
	e.granted, e.config = g.granted, g.config
	result, err := m.ExportedFunction(abi.ExportHook).Call(context.WithValue(ctx, eventKey{}, &call{event: e}), uint64(e.hook))
	switch {
	case err != nil:
	case result[0] == abi.Reject && e.refused, result[0] == abi.Continue && !e.refused:
		return nil
	case int32(result[0]) < 0:
		err = fmt.Errorf("%s (%d)", e.reason, int32(result[0]))
	default:
		err = fmt.Errorf("wp_hook returned %d, and reject was called: %v", result[0], e.refused)
	}
	e.changes, e.refused = nil, false
	return err
}

func (g *guest) close(ctx context.Context) error { return g.runtime.Close(ctx) }

// exports are the types of what a guest exports.
var exports = map[string]string{
	abi.ExportABI: "()i32", abi.ExportHook: "(i32)i32", abi.ExportManifest: "()i64", abi.ExportConfigure: "()i32", abi.ExportInitialize: "()",
}

func (g *guest) checkExports() error {
	have := g.compiled.ExportedFunctions()
	for name, want := range exports {
		f, there := have[name]
		required := name == abi.ExportABI || name == abi.ExportHook
		switch {
		case there && typeOf(f.ParamTypes(), f.ResultTypes()) != want:
			return fmt.Errorf("%s is not of type %s", name, want)
		case !there && required:
			return fmt.Errorf("%s is not exported", name)
		}
	}
	if _, starts := have["_start"]; starts && have[abi.ExportInitialize] == nil {
		return errors.New("a program, not a library")
	}
	if g.compiled.ExportedMemories()[abi.ExportMemory] == nil || len(g.compiled.ImportedMemories()) > 0 {
		return errors.New("it has no memory of its own")
	}
	return nil
}

func typeOf(params, results []api.ValueType) string {
	text := "("
	for _, p := range params {
		text += api.ValueTypeName(p)
	}
	text += ")"
	for _, r := range results {
		text += api.ValueTypeName(r)
	}
	return text
}

// link gives the guest the functions that it imports. Those that it can do without answer UNSUPPORTED.
func (g *guest) link(ctx context.Context) error {
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, g.runtime); err != nil {
		return err
	}
	host := g.runtime.NewHostModuleBuilder(abi.Module)
	for _, f := range g.compiled.ImportedFunctions() {
		module, name, _ := f.Import()
		if module != abi.Module {
			continue
		}
		serve, want := functions[name], ""
		if partly := len(g.hooks) > 0; partly && name == "cgroup_set" {
			serve = cgroupSet
		} else if partly && serve == nil {
			serve = absent
		}
		for _, row := range abi.Functions {
			if row.Name == name {
				want = typeOf(types(row))
			}
		}
		switch {
		case serve != nil && typeOf(f.ParamTypes(), f.ResultTypes()) != want:
			return fmt.Errorf("%s has another type", name)
		case serve == nil && !slices.Contains(g.manifest.Optional, name):
			return fmt.Errorf("this host has no function %s", name)
		case serve == nil:
			serve = absent
		}
		host.NewFunctionBuilder().WithGoModuleFunction(counted(serve), f.ParamTypes(), f.ResultTypes()).Export(name)
	}
	_, err := host.Instantiate(ctx)
	return err
}

func types(f abi.Function) (params, results []api.ValueType) {
	value := map[abi.ValueType]api.ValueType{abi.I32: api.ValueTypeI32, abi.I64: api.ValueTypeI64}
	for _, p := range f.Params {
		params = append(params, value[p.Type])
	}
	if f.Result != 0 {
		results = append(results, value[f.Result])
	}
	return params, results
}
