package sdk

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Names that one SDK has alone, with why. All others are the same in Go, Rust and C, in the spelling of the language.
var (
	goAlone = map[string]string{
		"error": "of an interface", "unwrap": "of an interface", "string": "to_string in Rust",
		"plugin": "a macro in Rust and C", "describe": "a macro in Rust", "license": "a macro in Rust",
		"needs": "a macro in Rust", "limits": "a macro in Rust", "keep_memory": "a macro in Rust", "durable": "a macro in Rust",
		"config_schema": "a macro in Rust", "format_int": "to_string in Rust", "parse_int": "parse in Rust",
		"err": "Rust has ? in its place", "match": "a word of Rust, which has matches",
	}
	rustAlone = map[string]string{
		"new": "of an error", "errno": "of an error", "context": "of an error", "update": "Go has a type for what was found",
		"update_pod": "Go has a type for what was found", "matches": "match is a word of Rust",
	}
	cAlone = map[string]string{
		"make_text": "texts", "there": "texts", "equal": "texts", "has_prefix": "texts", "join": "texts", "alloc": "memory",
		"check": "errors", "last_result": "errors", "error_name": "errors", "result": "errors", "failure": "a type in Go and Rust",
		"get_text": "fields by number", "get_int": "fields by number", "get_entry": "fields by number", "get_map": "fields by number",
		"get_list": "fields by number", "set_int": "fields by number", "set_text": "fields by number", "set_entry": "fields by number",
		"set_list": "fields by number", "delete_entry": "fields by number", "add": "fields by number", "delete": "fields by number",
		"find": "handles are of one type", "from": "dumps", "next": "dumps", "next_entry": "dumps", "next_handle": "dumps",
		"encode_list": "dumps", "encode_record": "dumps", "json_next_text": "lists", "json_next_object": "lists", "json_next_key": "lists",
		"json_next_text_member": "lists", "json_next_object_member": "lists",
	}
)

// library are the packages for what many plugins need: modules in Rust, and prefixes of functions in C.
var library = []string{"json", "glob", "image", "quantity"}

// TestVocabulary wants one name for one thing in the SDKs of all languages.
func TestVocabulary(t *testing.T) {
	inGo, inRust, inC := goNames(t, "."), map[string]bool{}, map[string]bool{}
	for _, file := range []string{"call", "container", "error", "getter", "hook/methods", "node", "pod", "resources", "store"} {
		rustNames(t, file, "", inRust)
	}
	for _, p := range library {
		for name := range goNames(t, p) {
			inGo[p+"_"+name] = true
		}
		rustNames(t, p, p+"_", inRust)
	}
	for _, header := range []string{"c/wasmproxy.h", "c/wasmproxy_library.h"} {
		cNames(t, header, inC)
	}
	if len(inGo) < 100 || len(inRust) < 100 || len(inC) < 40 {
		t.Fatalf("%d names in Go, %d in Rust, %d in C", len(inGo), len(inRust), len(inC))
	}
	compare(t, "Go", "Rust", inGo, inRust, goAlone)
	compare(t, "Rust", "Go", inRust, inGo, rustAlone)
	compare(t, "C", "Go", inC, inGo, cAlone)
}

func compare(t *testing.T, language, other string, names, others map[string]bool, alone map[string]string) {
	t.Helper()
	used := map[string]bool{}
	for name := range names {
		short := name
		for _, p := range library {
			short = strings.TrimPrefix(short, p+"_")
		}
		used[name], used[short] = true, true
		if !others[name] && alone[name] == "" && alone[short] == "" {
			t.Errorf("%s has %s, and %s has nothing of this name", language, name, other)
		}
	}
	for name := range alone {
		if !used[name] {
			t.Errorf("%s has no %s", language, name)
		}
	}
}

// goNames are the exported functions and methods of a package.
func goNames(t *testing.T, dir string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if ok && f.Name.IsExported() && !regexp.MustCompile("^On[A-Z]").MatchString(f.Name.Name) {
				names[snake(f.Name.Name)] = true
			}
		}
	}
	return names
}

var (
	lowerUpper = regexp.MustCompile("([a-z])([A-Z])")
	upperUpper = regexp.MustCompile("([A-Z])([A-Z][a-z])")
)

// snake is the name in Rust and C.
func snake(name string) string {
	name = strings.NewReplacer("CPUs", "Cpus", "QoS", "Qos").Replace(name)
	return strings.ToLower(upperUpper.ReplaceAllString(lowerUpper.ReplaceAllString(name, "${1}_$2"), "${1}_$2"))
}

var rustItem = regexp.MustCompile(`(?m)^( *)pub (?:mod (\w+) \{|(?:const )?fn (\w+))`)

// rustNames are the public functions and methods of a file. What is in a module within it has the module's name before it.
func rustNames(t *testing.T, file, prefix string, names map[string]bool) {
	t.Helper()
	module := ""
	text := read(t, "rust/src/"+file+".rs")
	text, _, _ = strings.Cut(text, "#[cfg(test)]")
	for _, m := range rustItem.FindAllStringSubmatch(text, -1) {
		switch indent, mod, fn := m[1], m[2], m[3]; {
		case mod != "":
			module = mod + "_"
		case module != "" && indent == "    ":
			names[prefix+module+fn] = true
		default:
			names[prefix+fn] = true
		}
	}
}

var cItem = regexp.MustCompile(`(?m)^(?:static inline [\w ]+[ *]|#define |__attribute__\(\(noreturn\)\) static inline void )wp_(\w+)\(`)

func cNames(t *testing.T, header string, names map[string]bool) {
	t.Helper()
	_, text, ok := strings.Cut(read(t, header), "/* End of the generated part. */")
	if !ok {
		text = read(t, header)
	}
	for _, m := range cItem.FindAllStringSubmatch(text, -1) {
		if !strings.HasPrefix(m[1], "_") {
			names[m[1]] = true
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
