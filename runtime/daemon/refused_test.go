package daemon_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/daemon"
)

// loadBudget is what a guest may take until it is ready for its first event.
const loadBudget = 5 * time.Second

// hasty guests do their worst before their first event. says is why they are not
// loaded; words are alternatives.
var hasty = []struct{ name, says string }{
	{"start-loop", "instantiating: used|time limit"},
	{"start-recursion", "instantiating: trapped"},
	{"start-grow", "instantiating: trapped: unreachable"},
	{"initialize-loop", "_initialize: used|time limit"},
	{"abi-loop", "wp_abi: used|time limit"},
	{"manifest-loop", "wp_manifest: used|time limit"},
	{"configure-loop", "wp_configure: used|time limit"},
}

// TestHastyGuests holds them to the bounds of those that wait for a hook. It does so with
// the compiler only: interpreted they take all of their five seconds, in which another
// process takes the processor for longer than the bounds at least once.
func TestHastyGuests(t *testing.T) {
	notUnderRace(t)
	k := newKit(t, engines[0].json)
	for _, g := range hasty {
		t.Run(g.name, func(t *testing.T) {
			k.try(t, loadBudget, func() { k.calmDown(t) }, func() time.Duration { return k.refuse(t, g.name, g.says) })
			k.behaves(t)
		})
	}
}

// refuse makes a guest the plugin, which fails, and returns how long that takes.
func (k *kit) refuse(t *testing.T, name, says string) time.Duration {
	t.Helper()
	start := time.Now()
	k.put("10-bad.wasm", name)
	k.await("plugin not loaded", "10-bad")
	took := time.Since(start)
	journal := k.log.String()
	if last := journal[strings.LastIndex(journal, "plugin not loaded"):]; !containsOne(last, says) {
		t.Errorf("it is refused with %.300q, want %q", last, says)
	}
	k.await("plugins in force", "10-bad")
	return took
}

// behaves shows that the plugin that was there before still serves.
func (k *kit) behaves(t *testing.T) {
	t.Helper()
	if err := k.life(t.Context(), "web"); err != nil {
		t.Error(err)
	}
}

// refused guests of testdata/wat are not loaded. says is why; words are alternatives.
var refused = []struct{ name, says string }{
	{"start-trap", "instantiating: trapped: unreachable"},
	{"manifest-exit", "wp_manifest: exited with code 0"},
	{"manifest-4-gib", "the manifest has 4294967295 bytes"},
	{"manifest-too-long", "the manifest has 16385 bytes"},
	{"manifest-outside", "outside its memory"},
	{"manifest-not-json", "manifest is not the JSON it should be"},
	{"manifest-unknown-hook", "manifest"},
	{"manifest-deep", "manifest is not the JSON it should be"},
	{"manifest-long-name", "manifest: name"},
	{"configure-trap", "wp_configure: trapped: unreachable"},
	{"configure-refuse", "wp_configure"},
	{"missing-abi", "it does not export wp_abi"},
	{"missing-hook", "it does not export wp_hook"},
	{"missing-manifest", "neither a custom section wp.manifest nor the export wp_manifest"},
	{"no-memory", "memory"},
	{"hidden-memory", "it does not export its memory"},
	{"hook-takes-i64", "its export wp_hook has type (i64) -> i32"},
	{"hook-is-memory", "its export wp_hook is not a function"},
	{"wrong-export", "its export"},
	{"wrong-signature", "it imports"},
	{"import-wrong-type", "it imports wp1.now as (i32) -> i64"},
	{"unknown-import", "which this host does not have"},
	{"imported-memory", "it imports env.memory"},
	{"imported-table", "it imports env.table"},
	{"imported-global", "it imports env.g"},
	{"import-refuel", "it imports __wp_fuel.refuel"},
	{"export-fuel-name", "names that begin with __wp_ belong to the host"},
	{"memory-hungry", "its limit is 512"},
	{"memory-of-2-gib", "it needs 32768 pages"},
	{"table-of-4-billion", "holds a table of 4294967295 entries"},
	{"table-grow", "reference types"},
	{"table-set", "reference types"},
	{"table-copy", "table.copy"},
	{"table-init", "passive segment"},
	{"element-passive", "passive segment"},
	{"element-declarative", "declarative segment"},
	{"element-drop", "elem.drop"},
	{"element-outside", "element"},
	{"passive-data", "passive segment"},
	{"data-drop", "data.drop"},
	{"data-outside", "data[1]: out of bounds memory access"},
	{"memory-init", "memory.init"},
	{"multi-value", "holds 2 results"},
	{"vectors", "SIMD"},
	{"externref", "value type 0x6f"},
	{"abi-major", "ABI"},
	{"abi-minor", "ABI"},
	{"command", "c-shared"},
	{"empty", "it does not export"},
}

// sectionOf writes a section of a module.
func sectionOf(id byte, content ...[]byte) []byte {
	body := bytes.Join(content, nil)
	return append(binary.AppendUvarint([]byte{id}, uint64(len(body))), body...)
}

func moduleOf(sections ...[]byte) []byte {
	return append([]byte("\x00asm\x01\x00\x00\x00"), bytes.Join(sections, nil)...)
}

// functionOf writes a module of one function () -> () with these locals and this code.
func functionOf(locals []byte, code ...byte) []byte {
	body := append(append(bytes.Clone(locals), code...), 0x0b)
	return moduleOf(sectionOf(1, []byte{1, 0x60, 0, 0}), sectionOf(3, []byte{1, 0}),
		sectionOf(10, binary.AppendUvarint([]byte{1}, uint64(len(body))), body))
}

// malformed modules are what wabt does not write.
func malformed() map[string]struct {
	module []byte
	says   string
} {
	type bad = struct {
		module []byte
		says   string
	}
	const opBlock, opEnd, opNop, void = 0x02, 0x0b, 0x01, 0x40
	most := binary.AppendUvarint(nil, 1<<32-1)
	all := map[string]bad{
		"deep-nesting":   {functionOf([]byte{0}, append(bytes.Repeat([]byte{opBlock, void}, 10_000), bytes.Repeat([]byte{opEnd}, 10_000)...)...), "nests more than"},
		"giant-function": {functionOf([]byte{0}, bytes.Repeat([]byte{opNop}, 1<<20)...), "bytes of code, the limit is"},
		"many-locals":    {functionOf(append(append([]byte{1}, most...), 0x7f)), "locals"},
		"two-memories":   {moduleOf(sectionOf(5, []byte{2, 0, 1, 0, 1})), "memor"},
		"set-fuel":       {functionOf([]byte{0}, 0x42, 0, 0x24, 0), "global"},
		"set-fuel-local": {functionOf([]byte{0}, 0x42, 0, 0x21, 0), "local"},
		"call-refuel":    {functionOf([]byte{0}, 0x10, 1), "function"},
		"export-fuel":    {moduleOf(sectionOf(7, []byte{1, 1, 'g', 3, 0})), "global"},
		"long-section":   {moduleOf([]byte{1}, most), "4294967295"},
	}
	for id, name := range []string{"name", "types", "imports", "functions", "tables", "memories", "globals", "exports", "", "elements", "bodies", "data", "data-count"} {
		if name != "" { // the start section counts nothing
			all["many-"+name] = bad{moduleOf(sectionOf(byte(id), most)), "4294967295"}
		}
	}
	return all
}

// TestRefusedGuests gives a daemon all these at a time. Each is refused for what is
// wrong with it, while calls pass as quickly as ever, and the one good plugin after
// them is loaded and serves.
func TestRefusedGuests(t *testing.T) {
	notUnderRace(t)
	for _, engine := range engines {
		t.Run(engine.name, func(t *testing.T) {
			n := newNode(t)
			says := map[string]string{}
			for _, g := range append(hasty[:4:4], refused...) { // each that loops takes the interpreter five seconds
				n.put("10-"+g.name+".wasm", g.name)
				says["10-"+g.name] = g.says
			}
			for name, bad := range malformed() {
				n.must(os.WriteFile(filepath.Join(n.config.PluginDir, "20-"+name+".wasm"), bad.module, 0o644))
				says["20-"+name] = bad.says
			}
			for id := range says {
				n.put(id+".json", strings.Replace(engine.json, "Fail", "Ignore", 1))
			}
			n.put("90-quota.wasm", "quota")
			start := time.Now()
			n.start(daemon.Run)
			calls, collections := traffic(n, ""), collecting()
			n.await("plugins in force", "90-quota")
			t.Logf("%d refused in %v, meanwhile p99 of calls %v, GC %v", len(says), time.Since(start), calls(), collections())
			journal := n.log.String()
			for id, why := range says {
				checkRefused(t, journal, id, why)
			}
			if err := n.life(t.Context(), "web"); err != nil {
				t.Error(err)
			}
		})
	}
}

// checkRefused looks for the line that says why a plugin was not loaded.
func checkRefused(t *testing.T, journal, id, why string) {
	t.Helper()
	for line := range strings.Lines(journal) {
		if containsAll(line, []string{"plugin not loaded", id + ":"}) || containsAll(line, []string{"level=ERROR", id}) {
			if why != "" && !containsOne(line, why) {
				t.Errorf("%s is refused with %.300q, want %q", id, line, why)
			}
			return
		}
	}
	t.Errorf("%s is not refused", id)
}
