package wasm

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"slices"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	wasmbinary "github.com/wasmproxy/wasmproxy/runtime/wasm/binary"
	"github.com/wasmproxy/wasmproxy/runtime/wasm/preflight"
)

// Inspection is what is known of a module without loading it as a plugin.
type Inspection struct {
	Size     int
	SHA256   string // in hexadecimal
	Sections []preflight.Section
	Imports  []Import
	Exports  []string // made printable, as are the names of imports

	// Memory's limits in pages of 64 KiB. MemoryMax is 0 where the module sets none.
	MemoryMin, MemoryMax uint32

	// ABI is the version of the ABI that the module was built for, as abi.Version
	// writes it; 0 if it was not found out.
	ABI uint32

	// Needs is the version that it needs for its imports and hooks, as far as this host knows them.
	Needs uint32

	Manifest       abi.Manifest
	ManifestJSON   []byte // as the module has it
	ManifestSource string // "custom section", "export", or "" if none was found

	// Problems are what keeps the module from being loaded, one line each.
	Problems []string
}

// Inspect examines a module that would be loaded with these options. It runs it only
// where the manifest or the version cannot be read otherwise, and never configures it. It
// is compiled by a process of its own, with the limits of an Engine that has a CacheDir: the
// running program is started with CompilerCommand, which calls RunCompiler.
// An error means that the examination failed; what is wrong with the module is in
// Problems.
func Inspect(ctx context.Context, binary []byte, o PluginOptions) (in Inspection, err error) {
	return examine(ctx, binary, o, nil)
}

// Inspect is the function Inspect with this engine, which then has the code of a module that was run.
func (e *Engine) Inspect(ctx context.Context, binary []byte, o PluginOptions) (in Inspection, err error) {
	return examine(ctx, binary, o, e)
}

func examine(ctx context.Context, binary []byte, o PluginOptions, e *Engine) (in Inspection, err error) {
	defer in.clean()
	digest := sha256.Sum256(binary)
	in = Inspection{Size: len(binary), SHA256: hex.EncodeToString(digest[:])}
	m, err := preflight.Scan(binary) // which finds a part of it if it fails
	var manifest abi.Manifest
	var known *abi.Manifest // nil unless a custom section has it
	var unread error
	if m.Manifest != nil {
		manifest, unread = parseManifest(m.Manifest)
		known = &manifest
	}
	in.Sections = m.Sections
	in.Imports, _ = checkImports(m, manifest.Optional)
	for _, export := range m.Exports {
		in.Exports = append(in.Exports, plugin.Printable(export.Name, maxTail))
	}
	if m.Memory != nil {
		in.MemoryMin, in.MemoryMax = m.Memory.Min, m.Memory.Max
	}
	if err != nil {
		in.Problems = []string{err.Error()}
		return in, nil
	}
	limits, _ := o.negotiate(known)
	in.Problems = check(m, manifest.Optional, limits.limit)
	if known != nil {
		in.ManifestSource, in.ManifestJSON, in.Manifest = "custom section", m.Manifest, manifest
		in.problem(unread)
	}
	if m.ABI != nil {
		in.ABI = uint32(*m.ABI)
		in.problem(checkVersion(in.ABI))
	}
	if len(in.Problems) == 0 && (in.ManifestSource == "" || in.ABI == 0) {
		err = in.run(ctx, m, o, e)
	}
	declared, _ := in.Manifest.Declared()
	for n := range in.Imports { // that would answer DENIED whatever the operator grants
		i := &in.Imports[n]
		needs := hostFunctions[i.Module][i.Name].needs
		if in.Manifest.Name != "" && i.State == Served && !declared.Has(needs) {
			i.State = Undeclared
		}
	}
	in.Needs = in.needs()
	_, unfit := parseSchema(in.Manifest.ConfigSchema)
	in.problem(unfit)
	hold, _, over := o.Limits(in.Manifest.Limits)
	in.problem(over)
	if known == nil && len(in.Problems) == 0 { // an exported manifest is read after the check
		in.Problems = checkMemory(m, pagesOf(hold.Memory))
	}
	return in, err
}

// needs returns the version of the ABI that has added the last of what the module uses.
func (in *Inspection) needs() uint32 {
	var functions, hooks []string
	for _, i := range in.Imports {
		if i.Module == abi.Module && i.State != Absent {
			functions = append(functions, i.Name)
		}
	}
	for _, h := range in.Manifest.Hooks {
		if !slices.Contains(in.Manifest.Optional, h.Hook) {
			hooks = append(hooks, h.Hook)
		}
	}
	return abi.Major<<16 | uint32(abi.Needs(functions, hooks))
}

// clean makes the names of imports fit for a terminal.
func (in *Inspection) clean() {
	for n := range in.Imports {
		i := &in.Imports[n]
		i.Module, i.Name = plugin.Printable(i.Module, maxTail), plugin.Printable(i.Name, maxTail)
	}
}

func (in *Inspection) problem(err error) {
	if err != nil {
		in.Problems = append(in.Problems, err.Error())
	}
}

// run makes an instance, which has what is still missing. Without an engine it makes one.
func (in *Inspection) run(ctx context.Context, m *preflight.Outline, o PluginOptions, e *Engine) error {
	if e == nil {
		dir, err := os.MkdirTemp("", "wasmproxy-inspect-")
		if err != nil {
			return fmt.Errorf("inspecting the module: %w", err)
		}
		defer os.RemoveAll(dir)
		if e, err = NewEngine(ctx, Options{CacheDir: dir, Interpret: o.Interpret}); err != nil {
			return fmt.Errorf("inspecting the module: %w", err)
		}
		defer e.Close(ctx)
	}
	o = o.withDefaults(e)
	limits, _ := o.negotiate(nil)
	p, err := e.compile(ctx, "inspected", m, o, limits)
	if err != nil {
		in.problem(err)
		return nil
	}
	defer p.Close(ctx)
	limited, cancel := untilReady(ctx)
	defer cancel()
	g, err := p.instantiate(limited)
	if err == nil {
		defer g.close()
		in.ABI, err = g.initialize(limited)
	}
	if err == nil && in.ManifestSource == "" {
		in.ManifestSource = "export"
		in.ManifestJSON, err = g.manifest(limited)
		if err == nil {
			in.Manifest, err = parseManifest(in.ManifestJSON)
		}
	}
	in.problem(err)
	return ctx.Err()
}

// Embed returns the inspected module with its manifest as its first section, where the
// manifest can be read although the module cannot be loaded. It returns the module itself if its
// manifest is not that of a function.
func (in *Inspection) Embed(module []byte) []byte {
	if in.ManifestSource != "export" || len(in.ManifestJSON) == 0 {
		return module
	}
	const header = len(wasmbinary.Magic)
	section := append(sizedBytes([]byte(abi.ManifestSection)), in.ManifestJSON...)
	return slices.Concat(module[:header], []byte{wasmbinary.CustomSection}, sizedBytes(section), module[header:])
}

// sizedBytes is b with its length before it.
func sizedBytes(b []byte) []byte { return append(binary.AppendUvarint(nil, uint64(len(b))), b...) }
