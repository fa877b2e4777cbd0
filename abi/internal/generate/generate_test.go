package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/abi/group"
)

const root = "../../.."

func TestGeneratedFilesAreInStep(t *testing.T) {
	if err := run(root, true, false); err != nil {
		t.Error(err)
	}
}

// A plugin that was built for the frozen tables must go on to work, so what they
// say stays true: they only grow.
func TestFrozenTablesStayTrue(t *testing.T) {
	frozen, err := os.ReadFile(filepath.Join(root, frozenPath))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(frozen), "\n")
	if len(lines) < 300 {
		t.Fatalf("%s has only %d lines", frozenPath, len(lines))
	}
	g, err := newGenerator(root)
	if err != nil {
		t.Fatal(err)
	}
	text, err := g.file(frozenPath)
	if err != nil {
		t.Fatal(err)
	}
	now := strings.Split(string(text), "\n")
	for _, line := range lines {
		if !slices.Contains(now, line) && !higherFloor(line, now) {
			t.Errorf("no longer true: %s", line)
		}
	}
	for _, row := range unmarked(lines, now, abi.Additions) {
		t.Errorf("abi.Additions does not say which minor version has added it: %s", row)
	}
	for _, a := range abi.Additions {
		if a.Minor < 1 || a.Minor > abi.Minor || !slices.ContainsFunc(now, func(line string) bool { return is(line, a) }) {
			t.Errorf("abi.Additions has %+v, and the tables of version %d.%d have not", a, abi.Major, abi.Minor)
		}
	}
}

// higherFloor reports whether a line is of a floor that has become higher.
func higherFloor(line string, now []string) bool {
	words := strings.Fields(line)
	if len(words) != 3 || words[0] != "floor" {
		return false
	}
	floor, err := strconv.ParseInt(words[2], 10, 64)
	i := slices.IndexFunc(now, func(line string) bool { return strings.HasPrefix(line, "floor "+words[1]+" ") })
	if err != nil || i < 0 {
		return false
	}
	n, err := strconv.ParseInt(strings.Fields(now[i])[2], 10, 64)
	return err == nil && n > floor
}

// unmarked returns the rows of tables that the frozen ones lack, and of which no addition tells.
func unmarked(frozen, now []string, additions []abi.Addition) (rows []string) {
	for _, line := range now {
		table, _, _ := strings.Cut(line, " ")
		row := slices.Contains([]string{"hook", "function", "field", "capability", "error", "feature"}, table)
		known := slices.Contains(frozen, line) || slices.ContainsFunc(additions, func(a abi.Addition) bool { return is(line, a) })
		if row && !known {
			rows = append(rows, line)
		}
	}
	return rows
}

// is reports whether a line of the frozen form is the row of an addition.
func is(line string, a abi.Addition) bool {
	words := strings.Fields(line)
	if len(words) < 2 || words[0] != a.Table {
		return false
	}
	switch a.Table {
	case "function", "capability":
		return words[1] == a.Name
	case "field":
		return words[1]+"."+words[3] == a.Name
	case "error": // which has its name for people
		return strings.ToUpper(strings.ReplaceAll(words[2], "-", "_")) == a.Name
	}
	return words[2] == a.Name
}

// A row that a later minor version adds has to say so.
func TestAdditionsAreMarked(t *testing.T) {
	frozen := []string{"function get (i32) needs=-", "hook 1 PreRunPodSandbox RunPodSandbox before pod"}
	added := []string{
		"function shrink (i32) needs=-", "hook 2 PreShrink Shrink before pod", "field pod 99 size i64 - writing=- reading=-",
		"capability size", "error -9 too-small", "feature 5 sizes",
	}
	additions := []abi.Addition{
		{Minor: 1, Table: "function", Name: "shrink"}, {Minor: 1, Table: "hook", Name: "PreShrink"}, {Minor: 1, Table: "field", Name: "pod.size"},
		{Minor: 1, Table: "capability", Name: "size"}, {Minor: 1, Table: "error", Name: "TOO_SMALL"}, {Minor: 1, Table: "feature", Name: "sizes"},
	}
	now := slices.Concat(frozen, added, []string{"writable pod.size PreShrink"})
	if rows := unmarked(frozen, now, nil); !slices.Equal(rows, added) {
		t.Errorf("without additions %q are unmarked", rows)
	}
	for i := range additions {
		one := slices.Concat(additions[:i], additions[i+1:])
		if rows := unmarked(frozen, now, one); !slices.Equal(rows, added[i:i+1]) {
			t.Errorf("without %+v %q are unmarked", additions[i], rows)
		}
	}
	if higherFloor("floor imports 64", []string{"floor imports 63"}) || !higherFloor("floor imports 64", []string{"floor imports 65"}) {
		t.Error("a floor may rise and not sink")
	}
}

// The pages and wp1.json say which version has added a row.
func TestAdditionsAreShown(t *testing.T) {
	former := abi.Additions
	defer func() { abi.Additions = former }()
	for table, name := range map[string]string{
		"function": "conflict", "hook": "Tick", "field": "container.env", "capability": "env", "error": "CONFLICT", "feature": "kv",
	} {
		abi.Additions = []abi.Addition{{Minor: 1, Table: table, Name: name}}
		g, err := newGenerator(root)
		if err != nil {
			t.Fatal(err)
		}
		page, err := g.make("ABI.md")
		if n := strings.Count(page, "(since 1.1)"); err != nil || n != 1 {
			t.Errorf("a %s that was added: error %v, shown %d times", table, err, n)
		}
		text, err := g.tables.json()
		if n := strings.Count(string(text), `"since":"1.1"`); err != nil || n != 1 {
			t.Errorf("a %s that was added: error %v, %d times in wp1.json", table, err, n)
		}
	}
	if abi.Needs([]string{"get"}, nil) != 0 {
		t.Error("get needs a later version")
	}
	abi.Additions = []abi.Addition{{Minor: 1, Table: "function", Name: "conflict"}, {Minor: 2, Table: "hook", Name: "Tick"}}
	if abi.Needs([]string{"get", "conflict"}, nil) != 1 || abi.Needs([]string{"conflict"}, []string{"Tick"}) != 2 {
		t.Error("what was added is not needed")
	}
}

// What wp1.json says is enough to write the constants and imports of an SDK: those of C's are found by it alone.
func TestJSONHasTheTables(t *testing.T) {
	read := func(path string) string {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	var d document
	if err := json.Unmarshal([]byte(read(jsonPath)), &d); err != nil {
		t.Fatal(err)
	}
	header, spec := read("sdk/c/wasmproxy.h"), read("abi/ABI.md")
	var want []string
	add := func(name string, number any) { want = append(want, fmt.Sprintf("#define WP_%s %v", name, number)) }
	for _, h := range d.Hooks {
		add("HOOK_"+shout(h.Name), h.Number)
	}
	for _, f := range d.Fields {
		add(strings.ToUpper(f.Object)+"_"+shout(f.Name), f.Number)
	}
	for _, e := range d.Errors {
		add("ERR_"+e.Name, fmt.Sprintf("(%d)", e.Number))
	}
	for prefix, rows := range map[string][]numberRow{
		"OBJECT_": d.Objects, "FEATURE_": d.Features, "": append(d.Results, d.Kinds...), "REJECT_": d.Codes,
		"LOG_": d.Levels, "METRIC_": d.Metrics,
	} {
		for _, r := range rows {
			add(prefix+strings.ToUpper(r.Name), r.Number)
		}
	}
	for _, line := range want {
		if !strings.Contains(header, "\n"+line+" ") && !strings.Contains(header, "\n"+line+"\n") {
			t.Errorf("wasmproxy.h lacks %s", line)
		}
	}
	if n := strings.Count(header, "\n#define WP_"); len(want) < 150 || n < len(want) {
		t.Errorf("wasmproxy.h has %d constants, and wp1.json %d", n, len(want))
	}
	for _, f := range d.Functions {
		var types []string
		for _, p := range f.Params {
			types = append(types, p.Type)
		}
		row := "| (" + strings.Join(types, ", ") + ")"
		if f.Result != "" {
			row += " → " + f.Result
		}
		if f.Since != "1.0" || f.Group == "" || !strings.Contains(spec, "#"+f.Name+") "+row+" |") {
			t.Errorf("ABI.md lacks the row of %+v", f)
		}
	}
	if len(d.Functions) != len(abi.Functions) || len(d.Floors) != len(group.Floors) || len(d.Capabilities) != len(abi.Capabilities) {
		t.Error("wp1.json lacks rows")
	}
}

// A part that a file lacks, has in another place or has besides those of its template is
// an error, not left alone.
func TestMergeWantsEachPartInItsPlace(t *testing.T) {
	const a, b = "<!-- table: a -->\n| 1 |\n\n", "<!-- table: b -->\n| 2 |\n\n"
	got, err := merge("# Title\n\n"+a+"Text.\n"+b+"End.\n", strings.ReplaceAll(a+b, "|", "$1"))
	if want := "# Title\n\n<!-- table: a -->\n$1 1 $1\n\nText.\n<!-- table: b -->\n$1 2 $1\n\nEnd.\n"; string(got) != want || err != nil {
		t.Errorf("got %q, error %v, want %q", got, err, want)
	}
	for _, text := range []string{a, b + a, a + b + a, ""} {
		if _, err := merge(text, a+b); err == nil {
			t.Errorf("no error for %q", text)
		}
	}
}

func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"PostStopContainer": "post_stop_container", "ByPodUID": "by_pod_uid", "FeatureCgroupV2": "feature_cgroup_v2",
		"resources.cpu_quota": "resources_cpu_quota", "OK": "ok", "FeatureKV": "feature_kv", "TooLarge": "too_large",
	} {
		if got := snake(name); got != want {
			t.Errorf("%s becomes %s, want %s", name, got, want)
		}
	}
	for name, want := range map[string]string{"get_i64": "GetI64", "cri_raw": "CRIRaw", "kv_del": "KVDel"} {
		if got := camel(name); got != want {
			t.Errorf("%s becomes %s, want %s", name, got, want)
		}
	}
}
