package intercept_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// After an undo the kernel has the very shares that it had before, and not others of the same
// weight. On cgroup v2 they are the weight.
func TestUndoOfAWeightIsExact(t *testing.T) {
	k := newKernelGroup(t, "")
	before := k.share(t, 102)
	n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, write(abi.Container, "cpu.weight", "300"))}, withCgroups(k.fs))
	n.create(k.parent)
	n.must(n.start())
	if got := content(t, k.dir, k.shareFile()); got == before {
		t.Fatalf("%s is %s with the plugin, too", k.shareFile(), got)
	}
	n.withdraw("10-test")
	if got := content(t, k.dir, k.shareFile()); got != before {
		t.Errorf("%s is %s, want %s", k.shareFile(), got, before)
	}
}

// On cgroup v2 an undo of cpu.weight.nice writes the weight that was there, which may lie between
// two steps of nice.
func TestUndoOfNiceIsExact(t *testing.T) {
	fs, _, dir := scratchGroup(t)
	put(t, dir, "cpu.weight", "59")
	put(t, dir, "cpu.weight.nice", "2")
	n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, write(abi.Container, "cpu.weight.nice", "5"))}, withCgroups(fs))
	n.runPod()
	n.begin()
	put(t, dir, "cpu.weight", "33") // as the kernel shows it then
	n.withdraw("10-test")
	if got := content(t, dir, "cpu.weight"); got != "59" || n.options.Ledger.Record(enforce.ID{Pod: "u1", Container: "c1"}).Has() {
		t.Errorf("cpu.weight is %s, want 59", got)
	}
}

// Of the weight and its other view, which one plugin sets, the last one holds: no scan writes
// anything, and nothing is a fight.
func TestOnePluginSetsBothViewsOfTheWeight(t *testing.T) {
	fs, _, dir := scratchGroup(t)
	put(t, dir, "cpu.weight", "100")
	put(t, dir, "cpu.weight.nice", "0")
	both := func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		return errors.Join(adj.WriteFile(abi.Container, "cpu.weight", "200"), adj.WriteFile(abi.Container, "cpu.weight.nice", "5"))
	}
	n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, both)}, withCgroups(fs))
	n.runPod()
	n.begin()
	if nice, weight := content(t, dir, "cpu.weight.nice"), content(t, dir, "cpu.weight"); nice != "5" || weight != "100" {
		t.Errorf("cpu.weight.nice is %s, want 5; cpu.weight was written: %s", nice, weight)
	}
	m := n.with(withCgroups(fs), on(abi.PreUpdateContainerResources, write(abi.Container, "cpu.weight", "300")))
	m.must(m.updateC1(&runtimeapi.LinuxContainerResources{CpuQuota: 50_000}))
	if got := content(t, dir, "cpu.weight"); got != "300" || n.wish("c1", "cpu.weight.nice") != "" || n.wish("c1", "cpu.weight") != "300" {
		t.Errorf("cpu.weight is %s, and the records are %v", got, n.options.Ledger.Record(enforce.ID{Pod: "u1", Container: "c1"}).Values())
	}
	for range 8 {
		n.options.Scan(t.Context())
	}
	if log := n.log.String(); strings.Contains(log, "repaired") || strings.Contains(log, "again and again") {
		t.Errorf("the log has\n%s", log)
	}
}
