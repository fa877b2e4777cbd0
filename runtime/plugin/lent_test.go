package plugin

import (
	"slices"
	"testing"
	"unsafe"

	"github.com/wasmproxy/wasmproxy/abi"
)

// TestLentTextsAreCopied lends texts that change afterwards, as a guest's memory does, to all that keeps one.
func TestLentTextsAreCopied(t *testing.T) {
	var memory [][]byte
	lend := func(text string) string {
		b := []byte(text)
		memory = append(memory, b)
		return unsafe.String(unsafe.SliceData(b), len(b))
	}
	a := NewAdjustment(abi.PreCreateContainer, 0)
	entry := func(key, text string) Change {
		return Change{Op: SetEntry, Object: abi.Container, Field: abi.ContainerAnnotations, Key: lend(key), Text: lend(text)}
	}
	list := string(abi.AppendList(nil, []string{"-v", ""}))
	want := []Change{
		{Op: SetEntry, Object: abi.Container, Field: abi.ContainerAnnotations, Key: "a", Text: "1"},
		{Op: SetList, Object: abi.Container, Field: abi.ContainerCommand, Text: list},
		{Op: AddElement, Object: abi.Container, Field: abi.ContainerCDIDevices, Key: "vendor.com/gpu=0", Text: "vendor.com/gpu=0"},
	}
	for _, c := range []Change{
		entry("a", "1"),
		{Op: SetList, Object: abi.Container, Field: abi.ContainerCommand, Text: lend(list)},
		{Op: AddElement, Object: abi.Container, Field: abi.ContainerCDIDevices, Text: lend("vendor.com/gpu=0")},
	} {
		if err := a.Add(c); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Add(entry("io.kubernetes.x", "1")); ErrnoOf(err) != abi.Denied {
		t.Fatal(err)
	}
	a.owned.record([]Owned{{Plugin: "10-first", Change: entry("b", "1")}})
	if err := a.Add(entry("b", "2")); ErrnoOf(err) != abi.Conflict {
		t.Fatal(err)
	}
	kv, metrics := NewKV(), NewMetrics()
	txn := kv.Begin()
	if errno := txn.Set(lend("key"), lend("value")); errno != abi.OK {
		t.Fatal(errno)
	}
	metrics.Update(abi.MetricAdd, lend("calls_total"), 1)

	for _, b := range memory {
		for i := range b {
			b[i] = 'x'
		}
	}
	if err := txn.Commit(); err != nil {
		t.Fatal(err)
	}
	if got := a.Changes(); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := a.conflict.Change.Key + " " + a.conflict.Change.Text; got != "b 2" {
		t.Errorf("the conflict is over %q", got)
	}
	if got := a.refusals[0].Error(); got != `container.annotations["io.kubernetes.x"]: denied: keys that begin with io.kubernetes. are kubelet's` {
		t.Errorf("refused: %s", got)
	}
	if got := kv.All(); len(got) != 1 || got["key"] != "value" {
		t.Errorf("kept %q", got)
	}
	if got := metrics.All(); len(got) != 1 || got[0].Name != "calls_total" {
		t.Errorf("counted %+v", got)
	}
}
