package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

func inspectCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "inspect NAME|X.wasm",
		Short: "Print what a plugin is, wants, imports and may do, and what keeps it from loading",
		Long: `The plugin is a file, or one that comes with this program. X.json beside X.wasm counts as in the
plugin directory: what it grants is granted. The command fails if the proxy would not load the
plugin, whatever its configuration is; for that see wasmproxy validate.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return inspect(cmd, args[0], format)
		},
	}
	outputFlag(cmd, &format)
	return cmd
}

// outputFlag gives a command the flag --output, and refuses other values before it runs.
func outputFlag(cmd *cobra.Command, format *string) {
	cmd.Flags().StringVarP(format, "output", "o", "text", "text or json")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if *format != "text" && *format != "json" {
			return wrongUsage("--output: must be text or json, got %q", *format)
		}
		return nil
	}
}

// inspect tells of a plugin that comes with this program, with no JSON file, or of a file.
func inspect(cmd *cobra.Command, path, format string) error {
	module, names := bundled(path)
	name := "50-" + path + ".wasm" // as plugin install calls it
	p := pluginFile{name, module, registry.Description{ID: stem(name), File: name}}
	if module == nil {
		var err error
		if p, err = readPlugin(path); errors.Is(err, fs.ErrNotExist) && filepath.Base(path) == path {
			err = fmt.Errorf("%w; the bundled plugins are %s", err, strings.Join(names, ", "))
		}
		if err != nil {
			return err
		}
	}
	settings := p.settings()
	in, err := wasm.Inspect(cmd.Context(), p.module, settings)
	if err != nil {
		return fmt.Errorf("inspecting %s: %w", plugin.Name(path), err)
	}
	if len(in.Sections) == 0 && len(in.Problems) > 0 && format == "text" { // of what is no module there is nothing to tell
		return notLoading(path, in.Problems)
	}
	about := newInspection(p, in, limits(settings, in))
	if format == "json" {
		err = encode(cmd.OutOrStdout(), about)
	} else {
		err = about.print(cmd.OutOrStdout())
	}
	if err == nil && len(about.Problems) > 0 {
		return notLoading(path, about.Problems)
	}
	return err
}

func notLoading(path string, problems []string) error {
	return fmt.Errorf("%s would not load: %s", plugin.Name(path), strings.Join(problems, "; "))
}

// encode writes a value as JSON that people can read too.
func encode(out io.Writer, v any) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := out.Write(plugin.PrintableJSON(text.Bytes()))
	return err
}

// inspection is what the command prints, as JSON has it.
type inspection struct {
	File           string             `json:"file"`
	Name           string             `json:"name"`
	Version        string             `json:"version"`
	Description    string             `json:"description,omitempty"`
	License        string             `json:"license,omitempty"`
	SDK            string             `json:"sdk,omitempty"`
	ABI            string             `json:"abi,omitempty"` // that it was built for
	NeedsABI       string             `json:"needs_abi,omitempty"`
	ManifestSource string             `json:"manifest_source,omitempty"`
	Hooks          []abi.ManifestHook `json:"hooks"`
	State          string             `json:"state"`
	TickMS         int64              `json:"tick_ms,omitempty"`
	Durable        []string           `json:"durable,omitempty"`
	ConfigSchema   json.RawMessage    `json:"config_schema,omitempty"`
	Capabilities   capabilities       `json:"capabilities"`
	Limits         []limit            `json:"limits"`
	Imports        []imported         `json:"imports"`
	Exports        []string           `json:"exports"`
	Size           int                `json:"size"`
	Sections       []section          `json:"sections"`
	MemoryMin      uint64             `json:"memory_min"`           // bytes
	MemoryMax      uint64             `json:"memory_max,omitempty"` // bytes; left out where the module sets none
	SHA256         string             `json:"sha256"`
	Problems       []string           `json:"problems,omitempty"`
	Warnings       []string           `json:"warnings,omitempty"`
}

// capabilities are the names of what a plugin says that it needs, what its imports
// need, and what it gets.
type capabilities struct {
	Declared   []string `json:"declared"`
	Granted    []string `json:"granted"`              // of what it declares
	Missing    []string `json:"missing,omitempty"`    // declared and not granted
	Add        string   `json:"add,omitempty"`        // the line that grants them
	To         string   `json:"to,omitempty"`         // and the file that it belongs to
	Undeclared []string `json:"undeclared,omitempty"` // imports that need what is not declared, and so always return DENIED
	Unknown    []string `json:"unknown,omitempty"`    // declared, of a later version of the ABI
}

// section is a part of the module.
type section struct {
	Name string `json:"name"`
	Size int    `json:"size"`
}

// imported is one thing that the module wants of the host, and what it gets.
type imported struct {
	Module string           `json:"module"`
	Name   string           `json:"name"`
	Type   string           `json:"type"`
	State  wasm.ImportState `json:"state"`
}

// limit is what one call, or one instance, may use.
type limit struct {
	Of     string `json:"of"`
	Needs  int64  `json:"needs,omitempty"` // what the manifest asks for, or what memory the module begins with
	Max    int64  `json:"max"`             // the most that the manifest may ask for
	Gets   int64  `json:"gets"`            // what holds
	Enough bool   `json:"enough"`
}

func newInspection(p pluginFile, in wasm.Inspection, limits []limit) inspection {
	m := in.Manifest
	declared, unknown := m.Declared()
	rights := p.beside.Rights(m)
	c := capabilities{Declared: declared.Names(), Granted: rights.Has().Names(), Unknown: unknown}
	if missing := rights.Lacks(); missing != 0 {
		c.Missing, c.Add, c.To = missing.Names(), rights.Line(), p.beside.JSONName()
	}
	for _, i := range in.Imports {
		if needs := needs(i.Module, i.Name); !declared.Has(needs) {
			c.Undeclared = append(c.Undeclared, fmt.Sprintf("%s needs %s", i.Name, needs))
		}
	}
	about := inspection{
		File: p.path, Name: m.Name, Version: m.Version, Description: m.Description, License: m.License, SDK: m.SDK,
		ManifestSource: in.ManifestSource, Hooks: m.Hooks, State: m.State, TickMS: m.TickMS, Durable: m.Durable,
		Capabilities: c, Limits: limits, Exports: in.Exports,
		Size: in.Size, MemoryMin: uint64(in.MemoryMin) << 16, MemoryMax: uint64(in.MemoryMax) << 16, SHA256: in.SHA256,
		Problems: in.Problems, Warnings: p.warnings(m),
	}
	if p.beside.State != "" {
		about.State = p.beside.State
	}
	if p.beside.TickPeriod > 0 && m.TickMS > 0 {
		about.TickMS = p.beside.TickPeriod.Milliseconds()
	}
	if about.State == "" {
		about.State = abi.StateNone
	}
	if m.ConfigSchema != "" {
		about.ConfigSchema = json.RawMessage(m.ConfigSchema)
	}
	if in.ABI != 0 {
		version := func(v uint32) string { return fmt.Sprintf("%s %d.%d", abi.Module, v>>16, v&0xffff) }
		about.ABI, about.NeedsABI = version(in.ABI), version(in.Needs)
	}
	for _, i := range in.Imports {
		about.Imports = append(about.Imports, imported(i))
	}
	for _, s := range in.Sections {
		about.Sections = append(about.Sections, section(s))
	}
	return about
}

// needs is the capability that an import needs; 0 if it needs none.
func needs(module, name string) abi.Capability {
	for _, f := range abi.Functions {
		if module == abi.Module && f.Name == name {
			return f.Needs
		}
	}
	return 0
}

// limits compare what the manifest asks for with what it may ask for.
func limits(settings wasm.PluginOptions, in wasm.Inspection) []limit {
	asked := in.Manifest.Limits
	hold, most, _ := settings.Limits(asked)
	asked.Memory = max(asked.Memory, int64(in.MemoryMin)<<16)
	hooks := in.Manifest.HookSet()
	var all []limit
	for _, l := range plugin.Limits {
		ticks := hooks.Has(abi.Tick) || l.Key == "tick_host_calls" && hooks.Has(abi.Synchronize)
		if strings.HasPrefix(l.Key, "tick_") && !ticks {
			continue
		}
		needs, gets := *l.Of(&asked), *l.Of(&hold)
		all = append(all, limit{Of: l.Key, Needs: needs, Max: *l.Of(&most), Gets: gets, Enough: needs <= gets})
	}
	return all
}
