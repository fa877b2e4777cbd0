package main

import (
	"embed"
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/abi/group"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

//go:embed *.tmpl
var sources embed.FS

// generator makes the generated files of a repository.
type generator struct {
	root      string // the top of the repository
	templates *template.Template
	tables    tables
}

// tables are those of package abi, and of the cgroup files, as the templates use them.
type tables struct {
	*constantSet
	Hooks        []abi.HookInfo
	Fields       []abi.FieldInfo
	Records      []abi.RecordInfo
	Capabilities []abi.CapabilityInfo
	Features     []abi.FeatureInfo
	Functions    []abi.Function
	Exports      []abi.Export
	Files        []rules.File
	Statistics   []rules.File
	Groups       []group.Group
	Floors       []group.Floor
}

func newGenerator(root string) (*generator, error) {
	c, err := constants(filepath.Join(root, "abi"))
	if err != nil {
		return nil, err
	}
	t, err := template.New("").Funcs(functions).ParseFS(sources, "*.tmpl")
	if err != nil {
		return nil, err
	}
	return &generator{root, t, tables{c, abi.Hooks, abi.Fields, abi.Records, abi.Capabilities, abi.Features,
		abi.Functions, abi.Exports, rules.Files, rules.Statistics, group.All, group.Floors}}, nil
}

// pages are those of the specification. One template makes the parts of all, in this order.
var pages = []string{"abi/ABI.md", "abi/FIELDS.md", "abi/OPTIONAL.md", "abi/CGROUP.md"}

// file returns the text of a generated file. That of a file which is generated in
// parts has what the file has around them.
func (g *generator) file(path string) ([]byte, error) {
	if i := slices.Index(pages, path); i >= 0 {
		return g.page(i)
	}
	if path == jsonPath {
		return g.tables.json()
	}
	made, err := g.make(filepath.Base(path))
	if err != nil {
		return nil, err
	}
	switch filepath.Ext(path) {
	case ".go":
		return format.Source([]byte(made))
	case ".md", ".h":
		have, err := os.ReadFile(filepath.Join(g.root, path))
		if err != nil {
			return nil, err
		}
		return merge(string(have), made)
	}
	return []byte(made), nil
}

func (g *generator) make(name string) (string, error) {
	var b strings.Builder
	err := g.templates.ExecuteTemplate(&b, name+".tmpl", g.tables)
	return b.String(), err
}

// page returns the text of a page of the specification.
func (g *generator) page(number int) ([]byte, error) {
	const between = "\x00"
	texts := make([]string, len(pages))
	for i, path := range pages {
		text, err := os.ReadFile(filepath.Join(g.root, path))
		if err != nil {
			return nil, err
		}
		texts[i] = string(text)
	}
	made, err := g.make("ABI.md")
	if err != nil {
		return nil, err
	}
	all, err := merge(strings.Join(texts, between), made)
	if err != nil {
		return nil, err
	}
	return []byte(strings.Split(string(all), between)[number]), nil
}

// parts match the generated parts of files that are otherwise written by hand: a table
// of ABI.md, the signature of a function there, and the part of the C header. The group
// is the head that tells a part from others.
var parts = []*regexp.Regexp{
	regexp.MustCompile(`(?ms)^(<!-- table: \S+ -->)\n.*?\n\n`),
	regexp.MustCompile("(?ms)^(### \\w+)\n\n```wat\n.*?```\n"),
	regexp.MustCompile(`(?ms)^(/\* Generated from package abi: begin. Do not edit. \*/)\n.*?^/\* End of the generated part. \*/\n`),
}

// merge replaces the generated parts of a text by those that its template made. The
// text must have each of them, in their order, and no other.
func merge(text, made string) ([]byte, error) {
	for _, part := range parts {
		have, want := part.FindAllStringSubmatch(text, -1), part.FindAllStringSubmatch(made, -1)
		if h, w := heads(have), heads(want); !slices.Equal(h, w) {
			return nil, fmt.Errorf("has the generated parts %q, want %q", h, w)
		}
		i := -1
		text = part.ReplaceAllStringFunc(text, func(string) string {
			i++
			return want[i][0]
		})
	}
	return []byte(text), nil
}

func heads(matches [][]string) (all []string) {
	for _, m := range matches {
		all = append(all, m[1])
	}
	return all
}
