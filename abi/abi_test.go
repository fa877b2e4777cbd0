package abi_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
)

// The tests of this file keep ABI.md equal to the tables of the package.

func specification(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("ABI.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// table returns the rows of a table of ABI.md, without its header, and of each
// row only the first columns, which come from the package.
func table(t *testing.T, name string, columns int) []string {
	t.Helper()
	_, after, ok := strings.Cut(specification(t), "<!-- table: "+name+" -->\n")
	if !ok {
		t.Fatalf("ABI.md has no table %s", name)
	}
	text, _, _ := strings.Cut(after, "\n\n")
	var rows []string
	for _, line := range strings.Split(text, "\n")[2:] {
		rows = append(rows, row(strings.SplitN(strings.Trim(line, "|"), "|", columns+1)[:columns]...))
	}
	return rows
}

func row(cells ...string) string {
	var b strings.Builder
	for _, cell := range cells {
		b.WriteString("| " + strings.TrimSpace(cell) + " ")
	}
	return b.String() + "|"
}

func compare(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("ABI.md has\n%s\nwhere the package has\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestHooksTable(t *testing.T) {
	var want []string
	for i, info := range abi.Hooks {
		if int(info.Hook) != i+1 || info.Hook.Info() != info {
			t.Errorf("hook %d is row %d of the table", info.Hook, i+1)
		}
		if h, ok := abi.HookByName(info.Name); !ok || h != info.Hook || h.String() != info.Name {
			t.Errorf("%s is not found by its name", info.Name)
		}
		asked := "after"
		if info.Pre {
			asked = "before"
		}
		want = append(want, row(strconv.Itoa(int(info.Hook)), info.Name, info.Method, asked, info.Object.String(),
			strings.Join(writable(info.Hook), ", "), strings.Join(files(info.Hook), ", ")))
	}
	compare(t, table(t, "hooks", 7), want)
}

// writable names the fields that can be changed in a hook, a container's
// resources in one word.
func writable(h abi.Hook) []string {
	var names []string
	for _, f := range abi.Fields {
		name := f.Object.String() + "." + f.Name
		if group, _, ok := strings.Cut(f.Name, "."); ok {
			name = f.Object.String() + "." + group + `.\*`
		}
		if f.Writable.Has(h) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func files(h abi.Hook) []string {
	var names []string
	for _, o := range []abi.Object{abi.Event, abi.Pod, abi.Container, abi.Node, abi.FirstHandle} {
		if abi.CgroupWritable(o).Has(h) {
			names = append(names, o.String())
		}
	}
	return names
}

func TestFieldsTable(t *testing.T) {
	types := map[abi.Type]string{abi.Int64: "i64", abi.String: "string", abi.Map: "map"}
	var want []string
	for _, f := range abi.Fields {
		want = append(want, row(f.Object.String(), fmt.Sprint(int(f.Field)), f.Name, types[f.Type], f.Unit,
			strings.Join(f.Writable.Names(), ", ")))
		if found, ok := abi.FieldOf(f.Object, f.Field); !ok || found != f {
			t.Errorf("%v field %d occurs twice", f.Object, f.Field)
		}
		if found, ok := abi.FieldByName(f.Object, f.Name); !ok || found != f {
			t.Errorf("%v.%s occurs twice", f.Object, f.Name)
		}
	}
	compare(t, table(t, "fields", 6), want)
}

func TestErrorsTable(t *testing.T) {
	var want []string
	for e := abi.NotFound; e.Error() != abi.Errno(1).Error(); e-- {
		want = append(want, row(fmt.Sprint(int(e)), e.Error()))
	}
	compare(t, table(t, "errors", 2), want)
}

func TestExportsTable(t *testing.T) {
	compare(t, table(t, "exports", 1), []string{
		row("`" + abi.ExportMemory + "`"), row("`" + abi.ExportInitialize + "`"), row("`" + abi.ExportABI + "`"),
		row("`" + abi.ExportManifest + "`"), row("`" + abi.ExportConfigure + "`"), row("`" + abi.ExportHook + "`"),
	})
	for _, text := range []string{
		fmt.Sprintf("now %d |", abi.Version), "custom section `" + abi.ManifestSection + "`",
		fmt.Sprintf("at most %d KiB:", abi.MaxManifest>>10), fmt.Sprintf("| ≥ %d | a handle", abi.FirstHandle),
		fmt.Sprintf("- %d: the call goes on", abi.Continue), fmt.Sprintf("- %d: the call is refused", abi.Reject),
	} {
		if !strings.Contains(specification(t), text) {
			t.Errorf("ABI.md does not say %q", text)
		}
	}
}

func TestSmallTables(t *testing.T) {
	compare(t, table(t, "kinds", 1), numbers(abi.ByPodID, abi.ByPodUID, abi.ByPodName, abi.ByContainerID))
	compare(t, table(t, "codes", 1), numbers(0, abi.RejectInvalidArgument, abi.RejectPermissionDenied, abi.RejectResourceExhausted, abi.RejectFailedPrecondition))
	compare(t, table(t, "levels", 1), numbers(abi.LogDebug, abi.LogInfo, abi.LogWarn, abi.LogError))
}

func numbers(n ...int) []string {
	var rows []string
	for _, n := range n {
		rows = append(rows, row(fmt.Sprint(n)))
	}
	return rows
}

// importLine is a function's type in WebAssembly's text format.
var importLine = regexp.MustCompile(`(?s)### (\w+)\n\n` + "```wat\n" + `\(import "(\w+)" "(\w+)" \(func(.*?)\)\)\n` + "```")

func TestFunctions(t *testing.T) {
	var got, want []string
	for _, m := range importLine.FindAllStringSubmatch(specification(t), -1) {
		got = append(got, fmt.Sprintf("%s %s.%s%s", m[1], m[2], m[3], regexp.MustCompile(`\$\w+ |\s+`).ReplaceAllString(m[4], "")))
	}
	types := map[abi.ValueType]string{abi.I32: "i32", abi.I64: "i64"}
	for _, f := range abi.Functions {
		line := fmt.Sprintf("%s %s.%s", f.Name, abi.Module, f.Name)
		for _, p := range f.Params {
			line += "(param" + types[p] + ")"
		}
		for _, r := range f.Results {
			line += "(result" + types[r] + ")"
		}
		want = append(want, line)
	}
	compare(t, got, want)
}
