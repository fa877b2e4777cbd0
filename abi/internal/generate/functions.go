package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"text/template"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/abi/group"
)

// functions are those that the templates call besides the methods of the tables.
var functions = template.FuncMap{
	"cell": cell, "pick": pick,
	"camel": camel, "snake": snake, "shout": shout, "variant": func(name string) string { return title(name) },
	"dashes":  func(text any) string { return strings.ReplaceAll(fmt.Sprint(text), " ", "-") },
	"upper":   strings.ToUpper,
	"join":    strings.Join,
	"prefix":  strings.HasPrefix,
	"without": strings.TrimPrefix,

	"errno":          func(n int64) string { return abi.Errno(n).Error() },
	"errnoName":      func(n int64) string { return abi.ErrnoName(abi.Errno(n)) },
	"handleWritable": abi.HandleWritable,
	"cgroupWritable": func(object int64) abi.HookSet { return abi.CgroupWritable(abi.Object(object)) },
	"cgroupFiles":    cgroupFiles,
	"changeable":     changeable,
	"fieldName":      fieldName,
	"resource": func(f abi.Field) string {
		return strings.TrimPrefix(fieldName(abi.Container, abi.Resources+f), "resources.")
	},
	"function": func(name string) (*abi.Function, error) {
		i := slices.IndexFunc(abi.Functions, func(f abi.Function) bool { return f.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no function %q", name)
		}
		return &abi.Functions[i], nil
	},
	"pageOf": func(function string) string {
		if group.OfFunction(function) == group.Core {
			return ""
		}
		return "OPTIONAL.md"
	},
	"relative": func(f abi.Field) abi.Field { return f - abi.Resources },
	"added":    added,
}

// added says which minor version has added a row of a table, if it is not of 1.0.
func added(table string, name ...any) string {
	if minor := abi.Since(table, fmt.Sprint(name...)); minor > 0 {
		return " (since " + version(minor) + ")"
	}
	return ""
}

// pick returns the word at the place that a number of a table has, from 0 on.
func pick(number reflect.Value, words ...string) string { return words[number.Uint()] }

// cell is a cell of a table of Markdown up to the bar that ends it.
func cell(content any) string {
	text := strings.NewReplacer("|", `\|`, "*", `\*`).Replace(fmt.Sprint(content))
	if text != "" {
		text += " "
	}
	return text
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

// cgroupFiles are the objects whose cgroup files a hook may write.
func cgroupFiles(h abi.Hook) (objects []string) {
	for _, o := range []abi.Object{abi.Pod, abi.Container} {
		if abi.CgroupWritable(o).Has(h) {
			objects = append(objects, o.String())
		}
	}
	return objects
}

func fieldName(o abi.Object, f abi.Field) string {
	info, _ := abi.FieldOf(o, f)
	return info.Name
}
