package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// named is a constant of package abi that is in none of its tables. What is said of
// it is its comment.
type named struct {
	Name    string // as in Go
	Value   any    // an int64 or a string
	Comment string
}

// Without returns it with a name that lacks the prefix.
func (n named) Without(prefix string) named {
	n.Name = strings.TrimPrefix(n.Name, prefix)
	return n
}

// constantSet holds the blocks of constants of package abi, by the name of their
// first constant.
type constantSet struct{ blocks map[string][]named }

// Block returns the block that begins with a constant.
func (c *constantSet) Block(first string) ([]named, error) {
	b := c.blocks[first]
	if b == nil {
		return nil, fmt.Errorf("package abi has no block of constants that begins with %s", first)
	}
	return b, nil
}

// Const returns the value of a constant.
func (c *constantSet) Const(name string) (any, error) {
	for _, block := range c.blocks {
		for _, n := range block {
			if n.Name == name {
				return n.Value, nil
			}
		}
	}
	return nil, fmt.Errorf("package abi has no constant %s", name)
}

// constants reads the constants of package abi with their comments from its source.
func constants(dir string) (*constantSet, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	var files []*ast.File
	var decls []ast.Decl
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		files, decls = append(files, f), append(decls, f.Decls...)
	}
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: importer.ForCompiler(fset, "source", nil)}
	if _, err := config.Check("abi", fset, files, info); err != nil {
		return nil, err
	}
	set := &constantSet{map[string][]named{}}
	for _, decl := range decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.CONST {
			continue
		}
		var block []named
		for _, spec := range gen.Specs {
			v := spec.(*ast.ValueSpec)
			for _, name := range v.Names {
				n := named{Name: name.Name, Comment: strings.TrimSpace(v.Comment.Text())}
				if val := info.Defs[name].(*types.Const).Val(); val.Kind() == constant.String {
					n.Value = constant.StringVal(val)
				} else {
					n.Value, _ = constant.Int64Val(val)
				}
				block = append(block, n)
			}
		}
		set.blocks[block[0].Name] = block
	}
	return set, nil
}

// snake turns a name of Go's or the table's into words joined by underscores, in
// lower case: PostStopContainer, ByPodUID and resources.cpu_quota become
// post_stop_container, by_pod_uid and resources_cpu_quota.
func snake(name string) string {
	var b strings.Builder
	runes := []rune(strings.ReplaceAll(strings.ReplaceAll(name, ".", "_"), " ", "_"))
	for i, r := range runes {
		if i > 0 && unicode.IsUpper(r) && runes[i-1] != '_' {
			afterLower := !unicode.IsUpper(runes[i-1])
			beforeLower := i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if afterLower || beforeLower {
				b.WriteByte('_')
			}
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

func shout(name string) string { return strings.ToUpper(snake(name)) }

// camel turns get_i64 into GetI64, with initials as Go has them.
func camel(name string) string { return title(name, "cri", "cdi", "kv") }

// title joins the words of a name such as state.kv or cri_raw, each with its first letter
// in upper case, or all of them if it is one of the initials.
func title(name string, initials ...string) string {
	var b strings.Builder
	for word := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '.' || r == '_' }) {
		n := 1
		if slices.Contains(initials, word) {
			n = len(word)
		}
		b.WriteString(strings.ToUpper(word[:n]) + word[n:])
	}
	return b.String()
}
