package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// The longest function and the longest file, in lines. Tables do not count: composite
// literals in which there is no code.
const (
	maxFunctionLines = 60
	maxFileLines     = 400
)

// TestFunctionsAndFilesAreShort measures what is neither a test nor generated.
func TestFunctionsAndFilesAreShort(t *testing.T) {
	functions, files := 0, 0
	for dir := range directories(t) {
		sources, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, source := range sources {
			set := token.NewFileSet()
			f, err := parser.ParseFile(set, source, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(source, "_test.go") || ast.IsGenerated(f) {
				continue
			}
			files++
			if n := set.File(f.Pos()).LineCount() - tableLines(set, f); n > maxFileLines {
				t.Errorf("%s has %d lines, more than %d", source, n, maxFileLines)
			}
			for _, decl := range f.Decls {
				if function, ok := decl.(*ast.FuncDecl); ok {
					functions++
					if n := linesOf(set, function) - tableLines(set, function); n > maxFunctionLines {
						t.Errorf("%s: %s has %d lines, more than %d", set.Position(function.Pos()), function.Name.Name, n, maxFunctionLines)
					}
				}
			}
		}
	}
	if functions < 1000 || files < 200 {
		t.Errorf("only %d functions in %d files were found", functions, files)
	}
}

// linesOf counts those that a node is on, without the comment above it.
func linesOf(set *token.FileSet, node ast.Node) int {
	begin := node.Pos()
	if function, ok := node.(*ast.FuncDecl); ok {
		begin = function.Type.Pos()
	}
	return set.Position(node.End()).Line - set.Position(begin).Line + 1
}

// tableLines counts the lines between the braces of tables.
func tableLines(set *token.FileSet, in ast.Node) (n int) {
	ast.Inspect(in, func(node ast.Node) bool {
		table, ok := node.(*ast.CompositeLit)
		if !ok || hasCode(table) {
			return true
		}
		n += max(linesOf(set, table)-2, 0)
		return false
	})
	return n
}

// hasCode reports whether there is a function in the literal.
func hasCode(table *ast.CompositeLit) (found bool) {
	ast.Inspect(table, func(node ast.Node) bool {
		_, is := node.(*ast.FuncLit)
		found = found || is
		return !found
	})
	return found
}
