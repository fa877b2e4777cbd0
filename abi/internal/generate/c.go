package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
)

// header is the generated part of the C header. What is around it is written by hand.
func header(root string, c *constantSet) (file, error) {
	const path = "sdk/c/wasmproxy.h"
	b, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		return file{}, err
	}
	text, err := between(path, string(b), "/* Generated from package abi: begin. Do not edit. */",
		"/* End of the generated part. */", headerPart(c))
	return file{path, []byte(text)}, err
}

func headerPart(c *constantSet) string {
	var b strings.Builder
	define := func(name string, value any, comment string) {
		fmt.Fprintf(&b, "#define %s %v", name, value)
		if comment != "" {
			fmt.Fprintf(&b, " /* %s */", comment)
		}
		b.WriteString("\n")
	}
	define("WP_ABI_VERSION", abi.Version, fmt.Sprintf("%d.%d", abi.Major, abi.Minor))
	headerTables(&b, define)
	headerConstants(&b, define, c)
	b.WriteString("\n/* Host functions. ABI.md says what each does. */\n")
	for _, f := range abi.Functions {
		b.WriteString("\n" + cImport(f))
	}
	b.WriteString("\n/* What a plugin defines. */\n\n")
	for _, e := range abi.Exports {
		if e.Name != abi.ExportInitialize {
			b.WriteString(cExport(e))
		}
	}
	return b.String()
}

func headerTables(b *strings.Builder, define func(string, any, string)) {
	b.WriteString("\n/* Hooks. */\n")
	for _, h := range abi.Hooks {
		define("WP_HOOK_"+shout(h.Name), int(h.Hook), h.Asked.String())
	}
	b.WriteString("\n/* Fields of the objects. */\n")
	for _, f := range abi.Fields {
		comment := f.Type.String()
		if f.Unit != "" {
			comment += ", " + f.Unit
		}
		define("WP_"+strings.ToUpper(f.Object.String())+"_"+shout(f.Name), int(f.Field), comment)
	}
	b.WriteString("\n/* Capabilities, as the manifest names them. */\n")
	for _, c := range abi.Capabilities {
		define("WP_CAPABILITY_"+shout(c.Name), fmt.Sprintf("%q", c.Name), c.Gives)
	}
}

func headerConstants(b *strings.Builder, define func(string, any, string), c *constantSet) {
	for _, g := range []struct{ title, first, prefix string }{
		{"Objects.", "Event", "OBJECT_"},
		{"Errors.", "OK", "ERR_"},
		{"Kinds of wp_pod_find.", "ByPodID", ""},
		{"What wp_hook returns if it does not fail.", "Continue", ""},
		{"Codes of wp_reject.", "RejectInvalidArgument", ""},
		{"Levels of wp_log.", "LogDebug", ""},
		{"Kinds of wp_metric.", "MetricAdd", ""},
		{"Features.", "FeatureCgroupV2", ""},
	} {
		b.WriteString("\n/* " + g.title + " */\n")
		for _, n := range c.block(g.first) {
			define("WP_"+g.prefix+shout(n.name), cNumber(n.value), n.comment)
		}
	}
}

// cNumber puts negative numbers into parentheses.
func cNumber(n int64) string {
	if n < 0 {
		return fmt.Sprintf("(%d)", n)
	}
	return fmt.Sprint(n)
}

func cImport(f abi.Function) string {
	params := []string{}
	for _, a := range arguments(f) {
		name := a.Name
		if name == "namespace" { // a word of C++
			name = "ns"
		}
		switch a.shape {
		case text:
			params = append(params, "const char *"+name, "size_t "+name+"_len")
		case buffer:
			params = append(params, "void *"+name, "size_t "+a.length)
		case number:
			params = append(params, "int64_t *"+name)
		default:
			params = append(params, cType(a.Type)+" "+name)
		}
	}
	return fmt.Sprintf("__attribute__((import_module(%q), import_name(%q)))\n%s wp_%s(%s);\n",
		abi.Module, f.Name, cType(f.Result), f.Name, cParams(params))
}

func cExport(e abi.Export) string {
	var params []string
	for _, p := range e.Params {
		params = append(params, cType(p)+" hook")
	}
	return fmt.Sprintf("__attribute__((export_name(%q))) %s %s(%s);\n", e.Name, cType(e.Result), e.Name, cParams(params))
}

func cParams(params []string) string {
	if len(params) == 0 {
		return "void"
	}
	return strings.Join(params, ", ")
}

func cType(t abi.ValueType) string { return [...]string{"void", "int32_t", "int64_t"}[t] }
