package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
)

// calls are all calls of all vectors, with their vectors.
func calls(t *testing.T) func(yield func(*Vector, *Call) bool) {
	all := allVectors(t)
	return func(yield func(*Vector, *Call) bool) {
		for i := range all {
			for _, list := range [][]Call{all[i].Configure, all[i].Calls} {
				for j := range list {
					if list[j].Function != nil && !yield(&all[i], &list[j]) {
						return
					}
				}
			}
		}
	}
}

// outcomes are those that functions have in vectors: "OK", "trap" or an error.
func outcomes(t *testing.T) map[string]map[string]bool {
	seen := map[string]map[string]bool{}
	for _, c := range calls(t) {
		if seen[c.Name()] == nil {
			seen[c.Name()] = map[string]bool{}
		}
		outcome := "OK"
		switch {
		case c.Error != "":
			outcome = c.Error
		case c.Trap:
			outcome = "trap"
		}
		seen[c.Name()][outcome] = true
	}
	return seen
}

// elsewhere are errors of functions that no fixture brings about: handles are counted, and
// entries bounded, in runtime/intercept; and a number has no length, and nothing that a node may lack goes by set_bytes or is in a list.
var elsewhere = map[string][]string{
	"pod_find": {"LIMIT"}, "pod_list": {"LIMIT"}, "container_list": {"LIMIT"},
	"map_dump": {"TOO_LARGE"}, "list_dump": {"TOO_LARGE"}, "cri_raw": {"TOO_LARGE"},
	"set_i64": {"TOO_LARGE", "UNSUPPORTED"}, "set_bytes": {"UNSUPPORTED"},
	"list_set": {"UNSUPPORTED"}, "list_add": {"UNSUPPORTED"}, "list_del": {"UNSUPPORTED"},
	"conflict": {"CONFLICT"}, // it tells of that of others
}

// TestFunctionsAreCovered looks for a vector of each function that succeeds, traps if it
// takes a pointer, and answers each error that ABI.md says of it.
func TestFunctionsAreCovered(t *testing.T) {
	seen, documented := outcomes(t), documentedErrors(t)
	for _, f := range abi.Functions {
		want := append([]string{"OK"}, documented[f.Name]...)
		if slices.ContainsFunc(f.Params, func(p abi.Param) bool { return p.Name == "buf" || p.Name == "out" || strings.HasSuffix(p.Name, "_len") }) {
			want = append(want, "trap")
		}
		if f.Name == "fail" || f.Name == "abort" || f.Name == "log" {
			want = slices.DeleteFunc(want, func(s string) bool { return s != "OK" && s != "trap" })
		}
		for _, outcome := range want {
			if !seen[f.Name][outcome] && !slices.Contains(elsewhere[f.Name], outcome) {
				t.Errorf("no vector for %s: %s", f.Name, outcome)
			}
		}
	}
}

// TestErrorsAreCovered looks for a vector of each error.
func TestErrorsAreCovered(t *testing.T) {
	seen := map[string]bool{}
	for _, outcomes := range outcomes(t) {
		for outcome := range outcomes {
			seen[outcome] = true
		}
	}
	for e := abi.Errno(-1); e.Error() != "unknown error"; e-- {
		if !seen[abi.ErrnoName(e)] {
			t.Errorf("no vector for %s", abi.ErrnoName(e))
		}
	}
}

// getters and setters of each type, each of which is to work on each such field.
var getters = map[abi.Type]string{abi.Int64: "get_i64", abi.String: "get", abi.Map: "map_dump", abi.List: "list_dump", abi.Set: "list_dump"}

// TestFieldsAreCovered looks for a vector that reads each field a value of its own, for
// one that writes it in each hook in which it is writable, and for one that is refused
// in each other hook.
func TestFieldsAreCovered(t *testing.T) {
	read := map[abi.FieldInfo]bool{}
	writes, refused := map[abi.FieldInfo]abi.HookSet{}, map[abi.FieldInfo]abi.HookSet{}
	for v, c := range calls(t) {
		info, ok := c.Field()
		if !ok {
			continue
		}
		if _, handle := c.handle(); !handle && c.writes() && c.Error == "" {
			writes[info] |= abi.HookSetOf(v.Hook)
		}
		if c.Is != nil && c.Name() == getters[info.Type] {
			read[info] = true
		}
		if c.writes() && c.Error == "READ_ONLY" {
			refused[info] |= abi.HookSetOf(v.Hook)
		}
	}
	for _, info := range abi.Fields {
		if !read[info] {
			t.Errorf("no vector reads %v.%s", info.Object, info.Name)
		}
		for _, h := range abi.Hooks {
			switch writable := info.Writable.Has(h.Hook); {
			case writable && !writes[info].Has(h.Hook):
				t.Errorf("no vector writes %v.%s in %v", info.Object, info.Name, h.Hook)
			case !writable && writes[info].Has(h.Hook):
				t.Errorf("a vector writes %v.%s in %v", info.Object, info.Name, h.Hook)
			case !writable && info.Writable != 0 && !refused[info].Has(h.Hook):
				t.Errorf("no vector is refused %v.%s in %v", info.Object, info.Name, h.Hook)
			}
		}
		if info.Writable == 0 && refused[info] == 0 {
			t.Errorf("no vector is refused %v.%s", info.Object, info.Name)
		}
	}
}

// TestHandlesAreCovered looks for a vector that writes each field of a handle that may
// be written, and for one that is refused another.
func TestHandlesAreCovered(t *testing.T) {
	wrote, refused := map[abi.FieldInfo]bool{}, 0
	for _, c := range calls(t) {
		info, ok := c.Field()
		if _, handle := c.handle(); !ok || !handle || !c.writes() {
			continue
		}
		switch c.Error {
		case "":
			wrote[info] = true
		case "READ_ONLY":
			refused++
		}
	}
	for _, info := range abi.Fields {
		if abi.HandleWritable(info) != wrote[info] {
			t.Errorf("%v.%s of a handle: a vector writes it: %v", info.Object, info.Name, wrote[info])
		}
	}
	if refused < 5 {
		t.Errorf("only %d writes on handles are refused", refused)
	}
}

// TestHooksAreCovered looks for a vector of each hook that reads which it is, for one
// that refuses the call or may not, and one that writes cgroup files or may not.
func TestHooksAreCovered(t *testing.T) {
	var named, refuses, mayNot, method abi.HookSet
	files := map[string]abi.HookSet{}
	for v, c := range calls(t) {
		this := abi.HookSetOf(v.Hook)
		switch {
		case c.Name() == "get_i64" && c.Args[0] == "event" && c.Args[1] == "hook":
			named |= this
		case c.Name() == "get" && c.Args[0] == "event" && c.Args[1] == "method":
			method |= this
		case c.Name() == "reject" && c.Error == "":
			refuses |= this
		case c.Name() == "reject" && c.Error == "INVALID" && fmt.Sprint(c.Args[0]) == "7":
			mayNot |= this
		case c.Name() == "cgroup_set":
			if object, ok := c.Args[0].(string); ok {
				files[object+" "+c.Error] |= this
			}
		}
	}
	for _, h := range abi.Hooks {
		before := h.Phase == abi.Before
		if !named.Has(h.Hook) || h.Method != "" && !method.Has(h.Hook) {
			t.Errorf("no vector reads the hook's number and method in %v", h.Hook)
		}
		if refuses.Has(h.Hook) != before || mayNot.Has(h.Hook) == before && len(h.Method) > 0 && h.Hook != abi.PostStopContainer {
			t.Errorf("no vector says whether %v refuses", h.Hook)
		}
		for _, o := range []abi.Object{abi.Pod, abi.Container} {
			outcome := " READ_ONLY"
			if abi.CgroupWritable(o).Has(h.Hook) {
				outcome = " "
			}
			if !files[o.String()+outcome].Has(h.Hook) {
				t.Errorf("no vector writes a cgroup file of the %v in %v", o, h.Hook)
			}
		}
	}
}

// TestNumbersAreCovered looks for vectors of the numbers that functions take.
func TestNumbersAreCovered(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range calls(t) {
		if len(c.Args) > 0 && c.Error == "" {
			seen[fmt.Sprint(c.Name(), " ", c.Args[0])] = true
		}
	}
	for _, want := range []string{
		"pod_find 0", "pod_find 1", "pod_find 2", "pod_find 3",
		"reject 0", "reject 3", "reject 7", "reject 8", "reject 9",
		"log 0", "log 1", "log 2", "log 3", "metric 0", "metric 1", "metric 2",
		"feature 1", "feature 2", "feature 3", "feature 4",
	} {
		if !seen[want] {
			t.Errorf("no vector for %s", want)
		}
	}
	if last := abi.Features[len(abi.Features)-1]; last.Feature != 4 {
		t.Errorf("add the features up to %d to this test", last.Feature)
	}
}

// TestCapabilitiesAreCovered looks for a vector of each capability that is denied what
// needs it, and for one that has it.
func TestCapabilitiesAreCovered(t *testing.T) {
	var denied, granted abi.CapabilitySet
	for v, c := range calls(t) {
		needs := c.needs()
		if f, ok := c.Field(); ok && f.Field == abi.Resources+abi.CPUQuota && c.Name() == "set_i64" && len(v.CgroupFiles) > 0 && fmt.Sprint(c.Args[2]) != "-1" {
			needs |= abi.CapabilitySetOf(abi.PodLimits) // by its value
		}
		switch {
		case c.Error == "DENIED" && needs&^v.Grant != 0:
			denied |= needs &^ v.Grant
		case c.Error == "" && needs&^v.Grant == 0:
			granted |= needs
		}
	}
	for _, info := range abi.Capabilities {
		if info.Capability == abi.Credentials || info.Capability == abi.StoreReadAll {
			continue // of the request alone, and of an operator's match; tested in runtime/intercept
		}
		if !denied.Has(info.Capability) || !granted.Has(info.Capability) {
			t.Errorf("%s: a vector is denied: %v, and one has it: %v", info.Name, denied.Has(info.Capability), granted.Has(info.Capability))
		}
	}
}

// needs are the capabilities that the call needs.
func (c *Call) needs() abi.CapabilitySet {
	needs := abi.CapabilitySetOf(c.Function.Needs)
	info, ok := c.Field()
	switch {
	case ok && c.writes():
		needs |= abi.CapabilitySetOf(info.Writing)
	case ok:
		needs |= abi.CapabilitySetOf(info.Reading)
	}
	if _, handle := c.handle(); handle && (c.writes() || c.Name() == "cgroup_set") {
		needs |= abi.CapabilitySetOf(abi.UpdateOthers)
	}
	return needs &^ 1 // the zero Capability is none
}
