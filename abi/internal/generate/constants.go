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
	"strings"
	"unicode"
)

// named is a constant of package abi that is in none of its tables. What is said of
// it is its comment.
type named struct {
	name    string // as in Go
	value   int64
	text    string // of a string constant
	comment string
}

// constantSet holds the blocks of constants of package abi, by the name of their
// first constant.
type constantSet struct{ blocks map[string][]named }

func (c *constantSet) block(first string) []named {
	b := c.blocks[first]
	if b == nil {
		panic("generate: package abi has no block of constants that begins with " + first)
	}
	return b
}

// constants reads the constants of package abi with their comments from its source.
func constants(dir string) (*constantSet, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: importer.ForCompiler(fset, "source", nil)}
	if _, err := config.Check("abi", fset, files, info); err != nil {
		return nil, err
	}
	set := &constantSet{map[string][]named{}}
	for _, f := range files {
		set.collect(f, info)
	}
	return set, nil
}

func (c *constantSet) collect(f *ast.File, info *types.Info) {
	for _, decl := range f.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.CONST {
			continue
		}
		var block []named
		for _, spec := range gen.Specs {
			v := spec.(*ast.ValueSpec)
			for _, name := range v.Names {
				block = append(block, newNamed(name.Name, info.Defs[name].(*types.Const).Val(), v))
			}
		}
		c.blocks[block[0].name] = block
	}
}

func newNamed(name string, v constant.Value, spec *ast.ValueSpec) named {
	n := named{name: name, comment: strings.TrimSpace(spec.Comment.Text())}
	if v.Kind() == constant.String {
		n.text = constant.StringVal(v)
	} else {
		n.value, _ = constant.Int64Val(v)
	}
	return n
}

// snake turns a name of Go's or the table's into words joined by underscores, in
// lower case: PostStopContainer, ByPodUID and resources.cpu_quota become
// post_stop_container, by_pod_uid and resources_cpu_quota.
func snake(name string) string {
	var b strings.Builder
	runes := []rune(strings.ReplaceAll(strings.ReplaceAll(name, ".", "_"), " ", "_"))
	for i, r := range runes {
		if i > 0 && unicode.IsUpper(r) && runes[i-1] != '_' &&
			(!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

func shout(name string) string { return strings.ToUpper(snake(name)) }

// camel turns get_i64 into GetI64, with initials as Go has them.
func camel(name string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(name, "_") {
		switch word {
		case "cri", "cdi", "kv":
			b.WriteString(strings.ToUpper(word))
		default:
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}

// between replaces what stands between two lines of a text, begin and end.
func between(path, text, begin, end, part string) (string, error) {
	before, rest, ok := strings.Cut(text, begin+"\n")
	_, after, found := strings.Cut(rest, end)
	if !ok || !found {
		return "", fmt.Errorf("%s has no line %q with a line %q after it", path, begin, end)
	}
	return before + begin + "\n" + part + end + after, nil
}
