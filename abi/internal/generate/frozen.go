package main

import (
	"fmt"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
)

const (
	frozenPath   = "abi/testdata/wp1.txt"
	frozenHeader = "# The tables of wp1 as they were frozen. Lines may be added to the tables, none may change.\n"
)

// dump writes the tables as lines of which none may ever change. What may grow,
// such as the hooks in which a field is writable, has a line for each step.
func dump() string {
	var b strings.Builder
	line := func(parts ...any) { fmt.Fprintln(&b, parts...) }
	for _, h := range abi.Hooks {
		line("hook", int(h.Hook), h.Name, orNone(h.Method), strings.ReplaceAll(h.Asked.String(), " ", "-"), h.Object)
	}
	dumpFields(line)
	dumpFunctions(line)
	for e := abi.NotFound; e.Error() != abi.Errno(1).Error(); e-- {
		line("error", int(e), strings.ReplaceAll(e.Error(), " ", "-"))
	}
	for _, c := range abi.Capabilities {
		line("capability", c.Name)
		if c.Granted {
			line("granted", c.Name)
		}
	}
	for _, f := range abi.Features {
		line("feature", int(f.Feature), f.Name)
	}
	return b.String()
}

func orNone(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func dumpFields(line func(...any)) {
	for _, f := range abi.Fields {
		name := f.Object.String() + "." + f.Name
		line("field", f.Object, int(f.Field), f.Name, f.Type, orNone(f.Unit),
			"writing="+orNone(f.Writing.String()), "reading="+orNone(f.Reading.String()))
		for _, hook := range f.Writable.Names() {
			line("writable", name, hook)
		}
		if abi.HandleWritable(f) {
			line("writable", name, "handle")
		}
	}
	for _, r := range abi.Records {
		line("record", r.Object, int(r.Field), "key="+r.Key)
		for _, key := range r.Keys {
			line("record", r.Object, int(r.Field), key)
		}
	}
	for _, h := range abi.Hooks {
		for _, name := range cgroupFiles(h.Hook) {
			line("cgroup", name, h.Name)
		}
	}
}

func dumpFunctions(line func(...any)) {
	for _, f := range abi.Functions {
		var params []abi.ValueType
		for _, p := range f.Params {
			params = append(params, p.Type)
		}
		line("function", f.Name, signature(params, f.Result), "needs="+orNone(f.Needs.String()))
	}
	required := []string{abi.ExportMemory}
	for _, e := range abi.Exports {
		line("export", e.Name, signature(e.Params, e.Result))
		if e.Required {
			required = append(required, e.Name)
		}
	}
	line("exports required:", strings.Join(required, " "))
	line("module", abi.Module, "major", abi.Major, "section", abi.ManifestSection, "first-handle", int(abi.FirstHandle))
	line("results", abi.Continue, abi.Reject)
	line("kinds", abi.ByPodID, abi.ByPodUID, abi.ByPodName, abi.ByContainerID)
	line("codes", abi.RejectInvalidArgument, abi.RejectPermissionDenied, abi.RejectResourceExhausted, abi.RejectFailedPrecondition)
	line("levels", abi.LogDebug, abi.LogInfo, abi.LogWarn, abi.LogError)
	line("metrics", abi.MetricAdd, abi.MetricSet, abi.MetricObserve)
}
