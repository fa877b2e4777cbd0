package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// Beyond the first two, a function or a file is reported: it may be right as it is. Beyond
// the others, TestShape fails. Lines of tables do not count: composite literals without code.
const (
	manyFunctionLines = 60
	manyFileLines     = 400
	maxColumns        = 140 // with four for a tab
	maxOperators      = 2   // && and || of one condition
	fewWords          = 8   // a text of so many is in one place
	maxMethods        = 30  // of one type
)

// manyMethods has the types that may have more than maxMethods, and how many.
var manyMethods = map[string]struct {
	atMost int
	reason string
}{
	"runtime/intercept.event": {36, "half of them are those of plugin.Event"},
}

// TestShape measures what is neither a test nor generated, in this module and in that of the fleet.
func TestShape(t *testing.T) {
	functions, files := 0, 0
	methods, texts := map[string]int{}, map[string]string{}
	all := directories(t)
	maps.Copy(all, fleetDirectories(t))
	for dir, path := range all {
		sources, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, source := range sources {
			text, err := os.ReadFile(source)
			if err != nil {
				t.Fatal(err)
			}
			set := token.NewFileSet()
			f, err := parser.ParseFile(set, source, text, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(source, "_test.go") || ast.IsGenerated(f) {
				continue
			}
			files++
			functions += reportSizes(t, set, f, source)
			countMethods(f, path, methods)
			faults := append(wideLines(set, f, string(text)), longConditions(set, f)...)
			for _, fault := range append(faults, repeatedTexts(set, f, texts)...) {
				t.Error(fault)
			}
		}
	}
	for name, n := range methods {
		may, listed := manyMethods[name]
		if n > max(maxMethods, may.atMost) {
			t.Errorf("%s has %d methods, more than %d", name, n, max(maxMethods, may.atMost))
		}
		if listed && n <= maxMethods {
			t.Errorf("%s has %d methods, and needs no exception", name, n)
		}
	}
	for name := range manyMethods {
		if methods[name] == 0 {
			t.Errorf("%s is an exception, and there is no such type", name)
		}
	}
	if functions < 1000 || files < 200 {
		t.Errorf("only %d functions in %d files were found", functions, files)
	}
}

// fleetDirectories are those of the fleet's packages, with their paths. They are not listed, as directories does: what they import
// need not be on this machine.
func fleetDirectories(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir("../../fleet", func(file string, _ fs.DirEntry, err error) error {
		if filepath.Ext(file) == ".go" {
			dir := filepath.Dir(file)
			all[dir] = strings.TrimPrefix(filepath.ToSlash(dir), "../../")
		}
		return err
	})
	if err != nil || all["../../fleet/agent"] != "fleet/agent" {
		t.Fatalf("the fleet's directories are %v, error %v", all, err)
	}
	return all
}

// TestShapeFindsFaults has a file with each fault, next to what is accepted.
func TestShapeFindsFaults(t *testing.T) {
	wide := strings.Repeat("w", maxColumns)
	text := `package p

var ` + wide + ` int // fault: line 3
// ` + wide + ` no fault: one word
// ` + strings.Repeat("word ", 30) + `: line 5
var text = "` + wide + `"
var table = []string{
	"` + wide[:80] + `", "` + wide[:80] + `",
}
var code = []func(){
	func() { println("` + wide[:80] + `", "` + wide[:80] + `", "` + wide[:80] + `") },
}
var raw = ` + "`\n" + wide + wide + "\n`" + `
var twice = f("a text of eight words is in one place", "a text of seven words may be", "a text of seven words may be",
	"a text of eight words is in one place")

func (t *T[K]) method(a, b, c, d bool) bool {
	if a && b || c {
		return a && func() bool { return b && c && d }()
	}
	return a && (b || !(c && d)) // line 23
}

// +marker:` + strings.Repeat("word ", 30) + `no fault: it is one line
`
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, "p.go", text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"p.go:3: ", "p.go:5: ", "p.go:11: ", "p.go:23:9: ", "p.go:17:2: "}
	got := append(append(wideLines(set, f, text), longConditions(set, f)...), repeatedTexts(set, f, map[string]string{})...)
	for i, fault := range got {
		if i >= len(want) || !strings.HasPrefix(fault, want[i]) {
			t.Errorf("fault %d is %q", i, fault)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d faults were found, and not %d", len(got), len(want))
	}
	methods := map[string]int{}
	if countMethods(f, "p", methods); methods["p.T"] != 1 {
		t.Errorf("the methods are %v", methods)
	}
}

// reportSizes returns the number of functions.
func reportSizes(t *testing.T, set *token.FileSet, f *ast.File, source string) (functions int) {
	t.Helper()
	if n := set.File(f.Pos()).LineCount() - tableLines(set, f); n > manyFileLines {
		t.Logf("%s has %d lines, more than %d", source, n, manyFileLines)
	}
	for _, decl := range f.Decls {
		if function, ok := decl.(*ast.FuncDecl); ok {
			functions++
			if n := linesOf(set, function) - tableLines(set, function); n > manyFunctionLines {
				t.Logf("%s: %s has %d lines, more than %d", set.Position(function.Pos()), function.Name.Name, n, manyFunctionLines)
			}
		}
	}
	return functions
}

// countMethods adds a file's methods to the numbers by package and type.
func countMethods(f *ast.File, path string, methods map[string]int) {
	for _, decl := range f.Decls {
		function, ok := decl.(*ast.FuncDecl)
		if !ok || function.Recv == nil {
			continue
		}
		receiver := strings.TrimPrefix(types.ExprString(function.Recv.List[0].Type), "*")
		name, _, _ := strings.Cut(receiver, "[")
		methods[path+"."+name]++
	}
}

// wideLines returns the lines that are too wide, but for rows of tables, markers of kubebuilder, and for lines
// that are only too wide by their longest string, or by the longest word of a comment.
func wideLines(set *token.FileSet, f *ast.File, text string) (faults []string) {
	rows := map[int]bool{}
	ast.Inspect(f, func(node ast.Node) bool {
		table, ok := node.(*ast.CompositeLit)
		if !ok || hasCode(table) {
			return true
		}
		for line := set.Position(table.Pos()).Line + 1; line < set.Position(table.End()).Line; line++ {
			rows[line] = true
		}
		return false
	})
	unbroken := map[int]int{} // by line
	note := func(pos token.Pos, unit string) {
		for i, part := range strings.Split(unit, "\n") {
			line := set.Position(pos).Line + i
			unbroken[line] = max(unbroken[line], columns(part))
		}
	}
	ast.Inspect(f, func(node ast.Node) bool {
		if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			note(literal.Pos(), literal.Value)
		}
		return true
	})
	for _, group := range f.Comments {
		for _, comment := range group.List {
			if strings.HasPrefix(comment.Text, "// +") { // a marker of kubebuilder, which is one line
				note(comment.Pos(), comment.Text)
			}
			for word := range strings.FieldsSeq(comment.Text) {
				note(comment.Pos(), word)
			}
		}
	}
	line := 0
	for source := range strings.SplitSeq(text, "\n") {
		line++
		if n := columns(source); n-unbroken[line] > maxColumns && !rows[line] {
			faults = append(faults, fmt.Sprintf("%s:%d: the line has %d columns, more than %d", set.Position(f.Pos()).Filename, line, n, maxColumns))
		}
	}
	return faults
}

// repeatedTexts returns the texts that stand elsewhere too, but for those in tables. seen has where each text was found.
func repeatedTexts(set *token.FileSet, f *ast.File, seen map[string]string) (faults []string) {
	ast.Inspect(f, func(node ast.Node) bool {
		if table, ok := node.(*ast.CompositeLit); ok && !hasCode(table) {
			return false
		}
		literal, ok := node.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING || len(strings.Fields(literal.Value)) < fewWords {
			return true
		}
		at := set.Position(literal.Pos()).String()
		if first := seen[literal.Value]; first != "" {
			faults = append(faults, fmt.Sprintf("%s: the text %s is at %s, too", at, literal.Value, first))
		}
		seen[literal.Value] = at
		return true
	})
	return faults
}

// columns is a line's width.
func columns(line string) int {
	return utf8.RuneCountInString(line) + 3*strings.Count(line, "\t")
}

// longConditions returns the conditions with too many operators. A function in a condition
// has conditions of its own.
func longConditions(set *token.FileSet, f *ast.File) (faults []string) {
	inner := map[ast.Node]bool{}
	ast.Inspect(f, func(node ast.Node) bool {
		if !joins(node) || inner[node] {
			return true
		}
		operators := 0
		ast.Inspect(node, func(node ast.Node) bool {
			if joins(node) {
				operators++
				inner[node] = true
			}
			_, function := node.(*ast.FuncLit)
			return !function
		})
		if operators > maxOperators {
			faults = append(faults, fmt.Sprintf("%s: the condition has %d && or ||, more than %d", set.Position(node.Pos()), operators, maxOperators))
		}
		return true
	})
	return faults
}

func joins(node ast.Node) bool {
	b, ok := node.(*ast.BinaryExpr)
	return ok && (b.Op == token.LAND || b.Op == token.LOR)
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
