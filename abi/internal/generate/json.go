package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/abi/group"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

// document is wp1.json: all tables, for programs in other languages. CONFORMANCE.md describes it. What a later minor version
// adds to its form is a key more.
type document struct {
	Module       string           `json:"module"`
	Version      string           `json:"version"`
	Manifest     manifestRow      `json:"manifest"`
	FirstHandle  int64            `json:"first_handle"`
	QOSClass     int64            `json:"qos_class"`
	Exports      []exportRow      `json:"exports"`
	Functions    []functionRow    `json:"functions"`
	Hooks        []hookRow        `json:"hooks"`
	Objects      []numberRow      `json:"objects"`
	Fields       []fieldRow       `json:"fields"`
	Errors       []numberRow      `json:"errors"`
	Capabilities []capabilityRow  `json:"capabilities"`
	Features     []numberRow      `json:"features"`
	Results      []numberRow      `json:"results"`
	Kinds        []numberRow      `json:"kinds"`
	Codes        []numberRow      `json:"codes"`
	Levels       []numberRow      `json:"levels"`
	Metrics      []numberRow      `json:"metrics"`
	Groups       []groupRow       `json:"groups"`
	Floors       []floorRow       `json:"floors"`
	CgroupFiles  []cgroupFileRow  `json:"cgroup_files"`
	Statistics   []cgroupStatsRow `json:"statistics"`
}

type manifestRow struct {
	Section  string `json:"section"`
	MaxBytes int    `json:"max_bytes"`
}

type exportRow struct {
	Name     string   `json:"name"`
	Params   []string `json:"params"`
	Result   string   `json:"result,omitempty"`
	Required bool     `json:"required"`
	About    string   `json:"about"`
}

type paramRow struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	PointsTo string `json:"points_to,omitempty"` // "text", which the host reads, "buffer", which it writes, or "i64", likewise
	Length   string `json:"length,omitempty"`    // the parameter after it, which is its length
}

type functionRow struct {
	Number int        `json:"number"` // of the scripts of testdata/abi
	Name   string     `json:"name"`
	Params []paramRow `json:"params"`
	Result string     `json:"result,omitempty"`
	Needs  string     `json:"needs,omitempty"`
	Group  string     `json:"group"`
	Since  string     `json:"since"`
}

type hookRow struct {
	Number      int      `json:"number"`
	Name        string   `json:"name"`
	Method      string   `json:"method,omitempty"`
	Called      string   `json:"called"`
	Object      string   `json:"object"`
	CgroupFiles []string `json:"cgroup_files,omitempty"` // of which objects cgroup_set takes them
	Group       string   `json:"group"`
	Since       string   `json:"since"`
}

type fieldRow struct {
	Object   string    `json:"object"`
	Number   int       `json:"number"`
	Name     string    `json:"name"`
	Type     string    `json:"type"`
	Unit     string    `json:"unit,omitempty"`
	Writable []string  `json:"writable,omitempty"` // hooks
	Handle   bool      `json:"handle,omitempty"`   // it can be set on a handle
	Writing  string    `json:"writing,omitempty"`  // capability
	Reading  string    `json:"reading,omitempty"`  // capability
	Range    *rangeRow `json:"range,omitempty"`
	Record   []string  `json:"record,omitempty"` // keys of its elements, in their order
	Key      string    `json:"key,omitempty"`    // the one of these by which an element goes
	About    string    `json:"about,omitempty"`
	Since    string    `json:"since"`
}

type rangeRow struct {
	Min       int64 `json:"min"`
	Max       int64 `json:"max"`
	Unlimited bool  `json:"unlimited,omitempty"` // -1 is no limit
}

type numberRow struct {
	Number int64  `json:"number"`
	Name   string `json:"name"`
	About  string `json:"about,omitempty"`
	Since  string `json:"since,omitempty"`
}

type capabilityRow struct {
	Name    string `json:"name"`
	Granted bool   `json:"granted,omitempty"` // by default
	Gives   string `json:"gives"`
	Since   string `json:"since"`
}

type groupRow struct {
	Name    string   `json:"name"`
	Writing []string `json:"writing,omitempty"` // capabilities of the fields that are set
	Gives   string   `json:"gives"`
}

type floorRow struct {
	Name   string `json:"name"`
	Number int64  `json:"number"`
	Of     string `json:"of"`
}

type cgroupFileRow struct {
	Name      string   `json:"name"`
	Pod       []string `json:"pod,omitempty"` // "cgroup_set", "unified"
	Container []string `json:"container,omitempty"`
	Value     string   `json:"value"`
	Lines     bool     `json:"lines,omitempty"`
	V1        []string `json:"v1,omitempty"`
	Needs     string   `json:"needs"`
}

type cgroupStatsRow struct {
	Name  string   `json:"name"`
	Value string   `json:"value"`
	V1    []string `json:"v1,omitempty"`
	Needs string   `json:"needs"`
}

// json returns wp1.json, with a row of a table on each line.
func (t tables) json() ([]byte, error) {
	d, err := t.document()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	v := reflect.ValueOf(d)
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		before := ",\n"
		if i == 0 {
			before = "{\n"
		}
		fmt.Fprintf(&b, "%s%q: ", before, name)
		if v.Field(i).Kind() != reflect.Slice {
			err = appendJSON(&b, v.Field(i).Interface())
		} else {
			err = appendRows(&b, v.Field(i))
		}
		if err != nil {
			return nil, err
		}
	}
	b.WriteString("\n}\n")
	return b.Bytes(), nil
}

func appendRows(b *bytes.Buffer, rows reflect.Value) error {
	b.WriteString("[")
	for i := range rows.Len() {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString("\n ")
		if err := appendJSON(b, rows.Index(i).Interface()); err != nil {
			return err
		}
	}
	b.WriteString("\n]")
	return nil
}

func appendJSON(b *bytes.Buffer, v any) error {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	b.Truncate(b.Len() - 1) // the end of the line
	return err
}

func (t tables) document() (d document, err error) {
	d = document{
		Module: abi.Module, Version: version(abi.Minor), Manifest: manifestRow{abi.ManifestSection, abi.MaxManifest},
		FirstHandle: int64(abi.FirstHandle), QOSClass: int64(abi.QOSClass),
		Exports: t.exportRows(), Functions: functionRows(),
	}
	for _, h := range abi.Hooks {
		d.Hooks = append(d.Hooks, hookRow{
			int(h.Hook), h.Name, h.Method, h.Phase.String(), h.Object.String(), cgroupFiles(h.Hook), group.OfHook(h.Hook), since("hook", h.Name),
		})
	}
	if d.Fields, err = t.fieldRows(); err != nil {
		return d, err
	}
	for _, block := range []struct {
		to            *[]numberRow
		first, prefix string
	}{
		{&d.Objects, "Event", ""}, {&d.Errors, "OK", ""}, {&d.Features, "FeatureCgroupV2", "Feature"}, {&d.Results, "Continue", ""},
		{&d.Kinds, "ByPodID", ""}, {&d.Codes, "RejectInvalidArgument", "Reject"}, {&d.Levels, "LogDebug", "Log"}, {&d.Metrics, "MetricAdd", "Metric"},
	} {
		constants, err := t.Block(block.first)
		if err != nil {
			return d, err
		}
		for _, c := range constants {
			*block.to = append(*block.to, numberRow{c.Value.(int64), snake(c.Without(block.prefix).Name), c.Comment, ""})
		}
	}
	d.Objects = d.Objects[:abi.Node+1] // without what is beside them
	d.Errors = d.Errors[1:]
	for i := range d.Errors {
		e := &d.Errors[i]
		e.Name = abi.ErrnoName(abi.Errno(e.Number))
		e.Since = since("error", e.Name)
	}
	for i := range d.Features {
		d.Features[i].Name = t.Features[i].Name
		d.Features[i].Since = since("feature", t.Features[i].Name)
	}
	for _, c := range abi.Capabilities {
		d.Capabilities = append(d.Capabilities, capabilityRow{c.Name, c.Granted, c.Gives, since("capability", c.Name)})
	}
	for _, g := range group.All {
		row := groupRow{Name: g.Name, Gives: g.Gives}
		for _, c := range g.Writing {
			if c != 0 {
				row.Writing = append(row.Writing, c.String())
			}
		}
		d.Groups = append(d.Groups, row)
	}
	for _, f := range group.Floors {
		d.Floors = append(d.Floors, floorRow{f.Name, f.Number, f.Of})
	}
	for _, f := range rules.Files {
		d.CgroupFiles = append(d.CgroupFiles, cgroupFileRow{f.Name, ways(f.Pod), ways(f.Container), f.Value, f.Lines, v1Names(f), f.Needs})
	}
	for _, f := range rules.Statistics {
		d.Statistics = append(d.Statistics, cgroupStatsRow{f.Name, f.Value, v1Names(f), f.Needs})
	}
	return d, nil
}

func version(minor int) string { return fmt.Sprintf("%d.%d", abi.Major, minor) }

func since(table, name string) string { return version(abi.Since(table, name)) }

func wat(t abi.ValueType) string { return [...]string{"", "i32", "i64"}[t] }

func (t tables) exportRows() (rows []exportRow) {
	about := map[any]string{}
	block, _ := t.Block("ExportMemory")
	for _, c := range block {
		about[c.Value] = c.Comment
	}
	for _, e := range abi.Exports {
		row := exportRow{Name: e.Name, Params: []string{}, Result: wat(e.Result), Required: e.Required, About: about[e.Name]}
		for _, p := range e.Params {
			row.Params = append(row.Params, wat(p))
		}
		rows = append(rows, row)
	}
	return rows
}

func functionRows() (rows []functionRow) {
	for i, f := range abi.Functions {
		row := functionRow{
			Number: i, Name: f.Name, Params: []paramRow{}, Result: wat(f.Result), Needs: f.Needs.String(),
			Group: group.OfFunction(f.Name), Since: since("function", f.Name),
		}
		for _, a := range f.Arguments() {
			p := paramRow{Name: a.Name, Type: wat(a.Type), Length: a.Length}
			switch a.Shape {
			case abi.Text, abi.Buffer:
				p.PointsTo = string(a.Shape)
			case abi.Number:
				p.PointsTo = "i64"
			}
			row.Params = append(row.Params, p)
			if a.Length != "" {
				row.Params = append(row.Params, paramRow{Name: a.Length, Type: "i32"})
			}
		}
		rows = append(rows, row)
	}
	return rows
}

func (t tables) fieldRows() (rows []fieldRow, err error) {
	about := map[abi.Object]map[abi.Field]string{}
	for object, first := range map[abi.Object]string{
		abi.Event: "EventHook", abi.Pod: "PodID", abi.Container: "ContainerID", abi.Node: "NodeCgroupVersion",
	} {
		block, err := t.Block(first)
		if err != nil {
			return nil, err
		}
		about[object] = map[abi.Field]string{}
		for _, c := range block {
			about[object][abi.Field(c.Value.(int64))] = c.Comment
		}
	}
	for _, f := range abi.Fields {
		row := fieldRow{
			Object: f.Object.String(), Number: int(f.Field), Name: f.Name, Type: f.Type.String(), Unit: f.Unit,
			Writable: f.Writable.Names(), Handle: abi.HandleWritable(f), Writing: f.Writing.String(), Reading: f.Reading.String(),
			Record: f.RecordKeys(), About: about[f.Object][f.Field], Since: since("field", f.Object.String()+"."+f.Name),
		}
		if low, high, unlimited := f.Format.Range(); high > 0 {
			row.Range = &rangeRow{low, high, unlimited}
		}
		for _, r := range abi.Records {
			if r.Object == f.Object && r.Field == f.Field {
				row.Key = r.Key
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func ways(w rules.Ways) []string {
	if w == 0 {
		return nil
	}
	return strings.Split(w.String(), ", ")
}

func v1Names(f rules.File) []string {
	if f.V1 == nil {
		return nil
	}
	return f.V1.Names
}
