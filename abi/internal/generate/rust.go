package main

import (
	"fmt"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

// rust is the Rust SDK's module of tables, constants and host functions.
func rust(_ string, c *constantSet) (file, error) {
	w := &rustWriter{}
	w.f("// Code generated from package abi by abi/internal/generate. DO NOT EDIT.\n\n")
	w.f("//! The tables of the plugin ABI `wp1`. ABI.md says what each entry means.\n\n")
	w.f("/// The ABI that this SDK speaks, as `wp_abi` returns it: major << 16 | minor.\npub const VERSION: i32 = %d;\n", abi.Version)
	w.hooks()
	w.capabilities()
	w.features(c)
	w.errors(c)
	w.fields()
	w.records()
	w.constants(c)
	w.imports()
	return file{"sdk/rust/src/abi.rs", []byte(w.String())}, nil
}

type rustWriter struct{ strings.Builder }

func (w *rustWriter) f(format string, args ...any) { fmt.Fprintf(w, format, args...) }

// enum writes an enumeration; name and number of each variant come from row, which
// reports the end.
func (w *rustWriter) enum(comment, derive, name string, n int, row func(i int) (comment, variant string, number int)) {
	w.f("\n/// %s\n#[derive(Clone, Copy, Debug, PartialEq, Eq%s)]\n#[repr(i32)]\npub enum %s {\n", comment, derive, name)
	for i := range n {
		comment, variant, number := row(i)
		w.f("    /// %s.\n    %s = %d,\n", comment, variant, number)
	}
	w.f("}\n")
}

func (w *rustWriter) hooks() {
	w.enum("A point in the life of a CRI call at which plugins are asked, or one apart from calls.",
		", Hash, PartialOrd, Ord", "Hook", len(abi.Hooks), func(i int) (string, string, int) {
			h := abi.Hooks[i]
			comment := h.Asked.String()
			if h.Method != "" {
				comment += "; " + h.Method
			}
			return comment, h.Name, int(h.Hook)
		})
	w.f(rustHookTable, len(abi.Hooks))
	for _, h := range abi.Hooks {
		w.f("    HookInfo { hook: Hook::%s, name: %q, asked: Asked::%s, object: %d },\n", h.Name, h.Name, rustAsked(h.Asked), h.Object)
	}
	w.f("];\n")
}

func rustAsked(a abi.Asked) string { return [...]string{"", "Before", "Leaving", "After", "Apart"}[a] }

func rustType(t abi.Type) string { return [...]string{"", "Int64", "String", "Map", "List", "Set"}[t] }

func (w *rustWriter) capabilities() {
	w.f("\n/// A permission that a plugin declares and an operator grants.\n#[derive(Clone, Copy, Debug, PartialEq, Eq)]\npub enum Capability {\n")
	for _, c := range abi.Capabilities {
		w.f("    /// `%s`: %s.\n    %s,\n", c.Name, c.Gives, rustVariant(c.Name))
	}
	w.f("}\n\nimpl Capability {\n    /// The name in manifests.\n    pub const fn name(self) -> &'static str {\n        match self {\n")
	for _, c := range abi.Capabilities {
		w.f("            Capability::%s => %q,\n", rustVariant(c.Name), c.Name)
	}
	w.f("        }\n    }\n}\n")
}

// rustVariant turns a name of a table such as state.kv into StateKv.
func rustVariant(name string) string {
	var b strings.Builder
	for _, word := range strings.FieldsFunc(name, func(r rune) bool { return r == '.' || r == '_' }) {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

func (w *rustWriter) features(c *constantSet) {
	comments := c.block("FeatureCgroupV2")
	w.enum("Something that nodes and hosts of one ABI version may lack.", "", "Feature", len(abi.Features),
		func(i int) (string, string, int) {
			f := abi.Features[i]
			return "`" + f.Name + "`: " + comments[i].comment, rustVariant(f.Name), int(f.Feature)
		})
}

func (w *rustWriter) errors(c *constantSet) {
	errors := c.block("OK")[1:]
	w.enum("The host's reason for refusing something.", ", Hash", "Errno", len(errors),
		func(i int) (string, string, int) { return errors[i].comment, errors[i].name, int(errors[i].value) })
	w.f("\nimpl Errno {\n    /// The errors, by their number from -1 downwards.\n    #[rustfmt::skip]\n    pub const ALL: [Errno; %d] = [\n", len(errors))
	for _, n := range errors {
		w.f("        Errno::%s,\n", n.name)
	}
	w.f("    ];\n\n    /// The error's name, such as \"read-only here\".\n    pub const fn name(self) -> &'static str {\n        match self {\n")
	for _, n := range errors {
		w.f("            Errno::%s => %q,\n", n.name, abi.Errno(n.value).Error())
	}
	w.f("        }\n    }\n}\n")
}

// fields writes the numbers of fields; those of resources are relative, because a
// pod has them twice and a container once.
func (w *rustWriter) fields() {
	w.f("\n/// The numbers of fields.\npub mod field {\n")
	for _, f := range abi.Fields {
		if f.Object == abi.Node || f.Field < abi.Overhead {
			w.f("    /// `%s.%s`, %s.\n    pub const %s: i32 = %d;\n", f.Object, f.Name, rustComment(f), shout(f.Object.String()+"."+f.Name), f.Field)
		}
	}
	w.f("    /// The first of a pod's overhead.\n    pub const OVERHEAD: i32 = %d;\n", abi.Overhead)
	w.f("    /// The first of the resources of a pod or container.\n    pub const RESOURCES: i32 = %d;\n", abi.Resources)
	for _, f := range abi.Fields {
		if name, ok := strings.CutPrefix(f.Name, "resources."); ok && f.Object == abi.Container {
			w.f("    /// `%s`, %s; relative to `OVERHEAD` or `RESOURCES`.\n    pub const %s: i32 = %d;\n", name, rustComment(f), shout(name), f.Field-abi.Resources)
		}
	}
	w.f("}\n")
	w.fieldTable()
}

func rustComment(f abi.FieldInfo) string {
	if f.Unit == "" {
		return f.Type.String()
	}
	return f.Type.String() + " in " + f.Unit
}

func (w *rustWriter) fieldTable() {
	w.f(rustFieldTable, len(abi.Fields))
	for _, f := range abi.Fields {
		w.f("    FieldInfo { object: %d, field: %d, name: %q, kind: Type::%s, writable: %#x, writing: %s, reading: %s, handle: %t },\n",
			f.Object, f.Field, f.Name, rustType(f.Type), uint64(f.Writable), rustOption(f.Writing), rustOption(f.Reading), abi.HandleWritable(f))
	}
	w.f("];\n")
}

func rustOption(c abi.Capability) string {
	if c == 0 {
		return "None"
	}
	return "Some(Capability::" + rustVariant(c.String()) + ")"
}

func (w *rustWriter) records() {
	w.f(`
/// A row of the table of sets whose elements are records.
pub struct RecordInfo {
    /// The object's number.
    pub object: i32,
    /// The field's number.
    pub field: i32,
    /// The keys of an element; the first is the one it goes by.
    pub keys: &'static [&'static str],
}

/// The table of sets whose elements are records.
#[rustfmt::skip]
pub static RECORDS: [RecordInfo; %d] = [
`, len(abi.Records))
	for _, r := range abi.Records {
		w.f("    RecordInfo { object: %d, field: %d, keys: &[\"%s\"] },\n", r.Object, r.Field, strings.Join(r.Keys, `", "`))
	}
	w.f("];\n")
	for _, o := range []abi.Object{abi.Pod, abi.Container} {
		w.f("\n/// The hooks in which `cgroup_set` takes a %s, one bit each.\npub const CGROUP_%s: u64 = %#x;\n",
			o, strings.ToUpper(o.String()), uint64(abi.CgroupWritable(o)))
	}
	w.files()
}

// files writes the names of the cgroup files that plugins may write, for tests of plugins.
func (w *rustWriter) files() {
	w.f(`
/// A cgroup file that plugins may write. Ways are 1 for `+"`cgroup_set`, 2 for `unified`"+` and 3 for both.
pub struct CgroupFile {
    /// The cgroup v2 name, in which `+"`<size>`"+` is a size of huge pages.
    pub name: &'static str,
    /// The ways of a pod's.
    pub pod: u8,
    /// The ways of a container's.
    pub container: u8,
}

/// The table of cgroup files that plugins may write.
#[rustfmt::skip]
pub static CGROUP_FILES: [CgroupFile; %d] = [
`, len(rules.Files))
	for i := range rules.Files {
		x := &rules.Files[i]
		w.f("    CgroupFile { name: %q, pod: %d, container: %d },\n", x.Name, x.Pod, x.Container)
	}
	w.f("];\n")
}

func (w *rustWriter) constants(c *constantSet) {
	for _, g := range []struct{ title, first, module, prefix string }{
		{"The numbers of objects.", "Event", "object", ""},
		{"Kinds of `pod_find`.", "ByPodID", "kind", ""},
		{"What `wp_hook` returns if it does not fail.", "Continue", "result", ""},
		{"Codes of `reject`.", "RejectInvalidArgument", "code", "Reject"},
		{"Levels of `log`.", "LogDebug", "level", "Log"},
		{"Kinds of `metric`.", "MetricAdd", "metric", "Metric"},
	} {
		w.f("\n/// %s\npub mod %s {\n", g.title, g.module)
		for _, n := range c.block(g.first) {
			w.f("    /// `%d`: %s.\n    pub const %s: i32 = %d;\n", n.value, n.comment, shout(strings.TrimPrefix(n.name, g.prefix)), n.value)
		}
		w.f("}\n")
	}
}

func (w *rustWriter) imports() {
	w.f(`
/// The host functions. ABI.md says what each does.
#[cfg(target_arch = "wasm32")]
#[rustfmt::skip]
pub mod host {
    #[link(wasm_import_module = %q)]
    unsafe extern "C" {
`, abi.Module)
	for _, f := range abi.Functions {
		var params []string
		for _, a := range arguments(f) {
			params = append(params, rustParam(a))
		}
		result := ""
		if f.Result != 0 {
			result = " -> " + wat(f.Result)
		}
		w.f("        /// See `%s` in ABI.md.\n        pub fn %s(%s)%s;\n", f.Name, f.Name, strings.Join(params, ", "), result)
	}
	w.f("    }\n}\n")
}

func rustParam(a argument) string {
	switch a.shape {
	case text:
		return a.Name + ": *const u8, " + a.length + ": u32"
	case buffer:
		return a.Name + ": *mut u8, " + a.length + ": u32"
	case number:
		return a.Name + ": *mut u8"
	}
	return a.Name + ": " + wat(a.Type)
}
