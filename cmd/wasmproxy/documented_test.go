package main

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// documentedShare is how many of a hundred exported names must have a comment. Those of
// Rust's are all held to it, by the lint missing_docs.
const documentedShare = 95

// TestExportedNamesAreDocumented counts constants, variables, functions, types and
// methods. A comment above a group is that of all in it, for which a line's own does, too.
func TestExportedNamesAreDocumented(t *testing.T) {
	var all, bare []string
	for dir, path := range directories(t) {
		c := count{path: path}
		c.add(t, dir)
		all, bare = append(all, c.all...), append(bare, c.bare...)
	}
	t.Logf("%d exported names, %d without a comment: %s", len(all), len(bare), strings.Join(bare, ", "))
	if len(all) < 500 {
		t.Errorf("only %d exported names were found", len(all))
	}
	if len(bare)*100 > len(all)*(100-documentedShare) {
		t.Errorf("%d of %d exported names have no comment", len(bare), len(all))
	}
}

// directories are those of the module's packages, with their paths.
func directories(t *testing.T) map[string]string {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Dir", module+"...").Output()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct{ ImportPath, Dir string }
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all[p.Dir] = strings.TrimPrefix(p.ImportPath, module)
	}
}

// count is of one package.
type count struct {
	path      string
	all, bare []string
}

func (c *count) add(t *testing.T, dir string) {
	t.Helper()
	set := token.NewFileSet()
	sources, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, source, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if !ast.IsGenerated(f) {
			files = append(files, f)
		}
	}
	p, err := doc.NewFromFiles(set, files, module+c.path)
	if err != nil {
		t.Fatal(err)
	}
	c.values(p.Consts, p.Vars)
	c.functions("", p.Funcs)
	for _, typ := range p.Types {
		c.name(typ.Name, typ.Doc)
		c.values(typ.Consts, typ.Vars)
		c.functions("", typ.Funcs)
		c.functions(typ.Name+".", typ.Methods)
	}
}

func (c *count) values(groups ...[]*doc.Value) {
	for _, group := range groups {
		for _, v := range group {
			for _, spec := range v.Decl.Specs {
				s := spec.(*ast.ValueSpec)
				for _, name := range s.Names {
					if name.IsExported() {
						c.name(name.Name, v.Doc+s.Doc.Text()+s.Comment.Text())
					}
				}
			}
		}
	}
}

func (c *count) functions(of string, all []*doc.Func) {
	for _, f := range all {
		c.name(of+f.Name, f.Doc)
	}
}

func (c *count) name(name, comment string) {
	name = c.path + "." + name
	c.all = append(c.all, name)
	if strings.TrimSpace(comment) == "" {
		c.bare = append(c.bare, name)
	}
}
