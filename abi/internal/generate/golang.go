package main

import (
	"fmt"
	"go/format"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
)

const generated = "// Code generated from package abi by abi/internal/generate. DO NOT EDIT.\n\n"

func goFile(path, text string) (file, error) {
	b, err := format.Source([]byte(generated + text))
	if err != nil {
		return file{}, fmt.Errorf("%s: %w", path, err)
	}
	return file{path, b}, nil
}

// goImports declares the host functions for guests.
func goImports(string, *constantSet) (file, error) {
	var b strings.Builder
	b.WriteString(`//go:build wasip1 || tinygo.wasm

package sdk

import (
	"unsafe"

	"github.com/wasmproxy/wasmproxy/abi"
)

// The host functions. ABI.md says what each does. What is not called is not imported.
`)
	for _, f := range abi.Functions {
		fmt.Fprintf(&b, "\n//go:wasmimport %s %s\n//go:noescape\nfunc host%s(%s) %s\n", abi.Module, f.Name, camel(f.Name), goParams(f), goResult(f))
	}
	return goFile("sdk/import.go", b.String())
}

// goParams are a function's parameters in Go.
func goParams(f abi.Function) string {
	var params []string
	for _, a := range arguments(f) {
		switch {
		case a.shape == text:
			params = append(params, a.Name+" string")
		case a.shape == plain:
			params = append(params, a.Name+" "+goType(a))
		case a.shape == buffer:
			params = append(params, "buf unsafe.Pointer, size int32")
		default:
			params = append(params, a.Name+" unsafe.Pointer")
		}
	}
	return strings.Join(params, ", ")
}

func goType(a argument) string {
	switch {
	case a.Name == "object", a.Name == "pod":
		return "abi.Object"
	case a.Name == "field":
		return "abi.Field"
	case a.Name == "feature":
		return "abi.Feature"
	case a.Type == abi.I64:
		return "int64"
	}
	return "int32"
}

func goResult(f abi.Function) string { return [...]string{"", "int32", "int64"}[f.Result] }

// goRegister has a method for each hook by which a plugin registers a handler.
// Tick has one of its own, because it comes with a period.
func goRegister(string, *constantSet) (file, error) {
	var b strings.Builder
	b.WriteString(`package sdk

import "github.com/wasmproxy/wasmproxy/abi"
`)
	for _, h := range abi.Hooks {
		if h.Hook == abi.Tick {
			continue
		}
		fmt.Fprintf(&b, `
// On%[1]s registers a handler of hook %[1]s, for what matches if a match is given.
func (r *Registration) On%[1]s(f func(*%[1]s) error, match ...Match) *Registration {
	return on(r, abi.%[1]s, f, match)
}
`, h.Name)
	}
	return goFile("sdk/register.go", b.String())
}

// goCapabilities has the capabilities by the names that the SDK gives them.
func goCapabilities(string, *constantSet) (file, error) {
	var b strings.Builder
	b.WriteString(`package sdk

// Capability is a permission that a plugin needs, see [Registration.Needs].
type Capability string

// The capabilities. Those that are granted by default need no word of the operator.
const (
`)
	for _, c := range abi.Capabilities {
		granted := ""
		if c.Granted {
			granted = "; granted by default"
		}
		fmt.Fprintf(&b, "Cap%s Capability = %q // %s%s\n", camel(strings.ReplaceAll(c.Name, ".", "_")), c.Name, c.Gives, granted)
	}
	b.WriteString(")\n")
	return goFile("sdk/capability.go", b.String())
}
