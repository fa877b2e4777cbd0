package group_test

import (
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/abi/group"
)

// Each hook, function and capability of a field is in one group, so that a host knows what it leaves out.
func TestEachIsInOneGroup(t *testing.T) {
	times := map[any]int{}
	for _, g := range group.All {
		for _, h := range g.Hooks {
			times[h]++
		}
		for _, f := range g.Functions {
			times[f]++
		}
		for _, c := range g.Writing {
			times[c]++
		}
	}
	for _, h := range abi.Hooks {
		if times[h.Hook] != 1 || group.OfHook(h.Hook) == "" {
			t.Errorf("%s is in %d groups", h.Name, times[h.Hook])
		}
	}
	for _, f := range abi.Functions {
		if times[f.Name] != 1 || group.OfFunction(f.Name) == "" {
			t.Errorf("%s is in %d groups", f.Name, times[f.Name])
		}
	}
	for _, f := range abi.Fields {
		if times[f.Writing] != 1 || group.OfWrite(abi.PreCreateContainer, f.Writing) == "" {
			t.Errorf("%v.%s, which takes %v, is in %d groups", f.Object, f.Name, f.Writing, times[f.Writing])
		}
	}
}
