package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

// specification is ABI.md: its tables, each after its marker, and the signatures
// at the head of each function's section.
func specification(root string, c *constantSet) (file, error) {
	const path = "abi/ABI.md"
	b, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		return file{}, err
	}
	text := string(b)
	for _, t := range tables(c) {
		if text, err = t.into(path, text); err != nil {
			return file{}, err
		}
	}
	text, err = signatures(path, text)
	return file{path, []byte(text)}, err
}

// table is one of ABI.md's; the first row is its header.
type table struct {
	name string
	rows [][]string
}

// into puts the table in the place of the lines after its marker.
func (t table) into(path, text string) (string, error) {
	marker := "<!-- table: " + t.name + " -->\n"
	before, rest, ok := strings.Cut(text, marker)
	_, after, ended := strings.Cut(rest, "\n\n")
	if !ok || !ended {
		return "", fmt.Errorf("%s has no marker %q with a table after it", path, strings.TrimSpace(marker))
	}
	return before + marker + t.String() + "\n" + after, nil
}

func (t table) String() string {
	var b strings.Builder
	for i, cells := range t.rows {
		b.WriteString("|")
		for _, cell := range cells {
			if cell != "" {
				cell += " "
			}
			b.WriteString(" " + strings.NewReplacer("|", `\|`, "*", `\*`).Replace(cell) + "|")
		}
		b.WriteString("\n")
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(cells)) + "|\n")
		}
	}
	return b.String()
}

func tables(c *constantSet) []table {
	return []table{
		exportsTable(c), hooksTable(), fieldsTable(), recordsTable(), filesTable(), functionsTable(), capabilitiesTable(), errorsTable(c),
		constantsTable("features", c, "FeatureCgroupV2", "feature", "is there if"),
		constantsTable("kinds", c, "ByPodID", "kind", "name is → result"),
		constantsTable("codes", c, "RejectInvalidArgument", "code", "gRPC"),
		constantsTable("levels", c, "LogDebug", "level", ""),
		constantsTable("metrics", c, "MetricAdd", "kind", ""),
	}
}

func exportsTable(c *constantSet) table {
	comments := map[string]string{}
	for _, n := range c.block("ExportMemory") {
		comments[n.text] = n.comment
	}
	t := table{"exports", [][]string{{"export", "type", "", ""}, {"`memory`", "memory", "required", comments["memory"]}}}
	for _, e := range abi.Exports {
		need := "optional"
		if e.Required {
			need = "required"
		}
		t.rows = append(t.rows, []string{"`" + e.Name + "`", signature(e.Params, e.Result), need, comments[e.Name]})
	}
	return t
}

func signature(params []abi.ValueType, result abi.ValueType) string {
	var names []string
	for _, p := range params {
		names = append(names, wat(p))
	}
	s := "(" + strings.Join(names, ", ") + ")"
	if result != 0 {
		s += " → " + wat(result)
	}
	return s
}

func wat(t abi.ValueType) string { return [...]string{"", "i32", "i64"}[t] }

func hooksTable() table {
	t := table{"hooks", [][]string{{"number", "hook", "CRI method", "called", "object", "may change", "cgroup files of"}}}
	for _, h := range abi.Hooks {
		t.rows = append(t.rows, []string{strconv.Itoa(int(h.Hook)), h.Name, h.Method, h.Asked.String(), h.Object.String(),
			strings.Join(changeable(h.Hook), ", "), strings.Join(cgroupFiles(h.Hook), ", ")})
	}
	return t
}

// changeable names the fields that a hook may change, resources in one word.
func changeable(h abi.Hook) []string {
	var names []string
	for _, f := range abi.Fields {
		name := f.Object.String() + "." + f.Name
		if group, _, ok := strings.Cut(f.Name, "."); ok {
			name = f.Object.String() + "." + group + ".*"
		}
		if f.Writable.Has(h) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func cgroupFiles(h abi.Hook) []string {
	var names []string
	for _, o := range []abi.Object{abi.Pod, abi.Container} {
		if abi.CgroupWritable(o).Has(h) {
			names = append(names, o.String())
		}
	}
	return names
}

func fieldsTable() table {
	t := table{"fields", [][]string{{"object", "field", "name", "type", "unit", "writable in", "needs"}}}
	for _, f := range abi.Fields {
		t.rows = append(t.rows, []string{f.Object.String(), strconv.Itoa(int(f.Field)), f.Name, f.Type.String(), f.Unit,
			strings.Join(f.Writable.Names(), ", "), fieldNeeds(f)})
	}
	return t
}

// fieldNeeds is what a field needs to be written, or also read.
func fieldNeeds(f abi.FieldInfo) string {
	if f.Reading != 0 {
		return f.Reading.String() + ", also to read"
	}
	return f.Writing.String()
}

func recordsTable() table {
	t := table{"records", [][]string{{"field", "key", "all keys, in their order"}}}
	for _, r := range abi.Records {
		info, _ := abi.FieldOf(r.Object, r.Field)
		t.rows = append(t.rows, []string{r.Object.String() + "." + info.Name, "`" + r.Key + "`", "`" + strings.Join(r.Keys, "`, `") + "`"})
	}
	return t
}

// filesTable is that of the cgroup files that plugins may write.
func filesTable() table {
	t := table{"cgroup-files", [][]string{{"file", "of a pod", "of a container", "value", "lines", "cgroup", "CRI's field of the same"}}}
	for i := range rules.Files {
		x := &rules.Files[i]
		lines, versions := "one", "v2"
		if x.Lines {
			lines = "one for each device or resource"
		}
		if x.Controller != "" {
			versions = "v1, v2"
		}
		var fields []string
		for _, f := range x.Fields {
			info, _ := abi.FieldOf(abi.Container, abi.Resources+f)
			fields = append(fields, strings.TrimPrefix(info.Name, "resources."))
		}
		t.rows = append(t.rows, []string{"`" + x.Name + "`", x.Pod.String(), x.Container.String(), x.Value, lines, versions, strings.Join(fields, ", ")})
	}
	return t
}

func functionsTable() table {
	t := table{"functions", [][]string{{"function", "type", "needs"}}}
	for _, f := range abi.Functions {
		var params []abi.ValueType
		for _, p := range f.Params {
			params = append(params, p.Type)
		}
		t.rows = append(t.rows, []string{fmt.Sprintf("[%s](#%s)", f.Name, f.Name), signature(params, f.Result), f.Needs.String()})
	}
	return t
}

func capabilitiesTable() table {
	t := table{"capabilities", [][]string{{"capability", "granted", "gives the right to"}}}
	for _, c := range abi.Capabilities {
		granted := ""
		if c.Granted {
			granted = "by default"
		}
		t.rows = append(t.rows, []string{"`" + c.Name + "`", granted, c.Gives})
	}
	return t
}

func errorsTable(c *constantSet) table {
	t := table{"errors", [][]string{{"number", "name", ""}}}
	for _, n := range c.block("OK")[1:] {
		t.rows = append(t.rows, []string{strconv.FormatInt(n.value, 10), abi.Errno(n.value).Error(), n.comment})
	}
	return t
}

func constantsTable(name string, c *constantSet, first, number, meaning string) table {
	t := table{name, [][]string{{number, meaning}}}
	for _, n := range c.block(first) {
		t.rows = append(t.rows, []string{strconv.FormatInt(n.value, 10), n.comment})
	}
	return t
}

// section is the head of a function's section with its signature.
var section = regexp.MustCompile("(?s)\n### (\\w+)\n\n```wat\n.*?```\n")

// signatures writes the signature of every function into its section. Each
// function has one, and they have the order of the table.
func signatures(path, text string) (string, error) {
	var found []string
	for _, m := range section.FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	var want []string
	for _, f := range abi.Functions {
		want = append(want, f.Name)
	}
	if !slices.Equal(found, want) {
		return "", fmt.Errorf("%s has sections with a block of wat for %q, want %q", path, found, want)
	}
	return section.ReplaceAllStringFunc(text, func(s string) string {
		name := section.FindStringSubmatch(s)[1]
		i := slices.Index(want, name)
		return "\n### " + name + "\n\n```wat\n" + declaration(abi.Functions[i]) + "```\n"
	}), nil
}

// declaration is a function's import in WebAssembly's text format, a pointer and
// its length on one line.
func declaration(f abi.Function) string {
	var lines []string
	for _, a := range arguments(f) {
		line := fmt.Sprintf("(param $%s %s)", a.Name, wat(a.Type))
		if a.length != "" {
			line += fmt.Sprintf(" (param $%s i32)", a.length)
		}
		lines = append(lines, line)
	}
	if f.Result != 0 {
		lines = append(lines, "(result "+wat(f.Result)+")")
	}
	sep := "\n  "
	if len(lines) == 1 {
		sep = " "
	}
	return fmt.Sprintf("(import %q %q (func%s%s))\n", abi.Module, f.Name, sep, strings.Join(lines, sep))
}
