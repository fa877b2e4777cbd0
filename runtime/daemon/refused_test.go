package daemon_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// loadBudget is what a guest may take until it is ready for its first event.
const loadBudget = 5 * time.Second

// hasty guests do their worst before their first event. says is why they are not
// loaded; words are alternatives.
var hasty = []struct{ name, says string }{
	{"start-loop", "start function: used|is used up|time limit"},
	{"start-recursion", "start function: trapped: stack overflow"},
	{"start-grow", "start function: trapped: unreachable"},
	{"start-host-calls", "start function: called the host more than 1000 times"},
	{"initialize-loop", "_initialize: used|is used up|time limit"},
	{"abi-loop", "wp_abi: used|is used up|time limit"},
	{"manifest-loop", "wp_manifest: used|is used up|time limit"},
	{"configure-loop", "wp_configure: used|is used up|time limit"},
}

// TestHastyGuests holds them to the bounds of those that wait for a hook.
func TestHastyGuests(t *testing.T) {
	for _, engine := range engines {
		t.Run(engine.name, func(t *testing.T) {
			k := newKit(t, engine.json)
			for _, g := range hasty {
				t.Run(g.name, func(t *testing.T) {
					k.try(t, loadBudget, func() { k.good(t) }, func() time.Duration { return k.refuse(t, g.name, g.says) })
					k.behaves(t)
				})
			}
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
	{"start-trap", "start function: trapped: unreachable"},
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
	{"import-refuel", `uses the name \"__wp_fuel\": names that begin with __wp_ belong to the host`},
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

// TestRefusedGuests gives a daemon that serves all these at a time. Each is refused for
// what is wrong with it, all of them cost no more than one hostile guest may, and the good
// plugin after them is loaded and serves.
func TestRefusedGuests(t *testing.T) {
	for _, engine := range engines {
		t.Run(engine.name, func(t *testing.T) {
			k := newKit(t, engine.json)
			says := k.refusable(t)
			turn := 0
			k.try(t, loadBudget, func() {}, func() time.Duration {
				start := time.Now()
				turn++
				k.put("90-last.wasm", []string{"noop", "quota"}[turn%2])
				k.await("plugin=90-last", "name=") // it is loaded, or replaces another
				k.await("plugins active", "90-last")
				return time.Since(start)
			})
			for id, why := range says { // 90-last waits for none of them
				k.checkRefused(t, id, why)
			}
			k.behaves(t)
			// What is not even a module may still be being written: that is said when it has lasted a second, before or
			// after the others are refused.
			k.checkRefused(t, "30-script", "30-script.wasm: is not a WebAssembly module")
		})
	}
}

// refusable puts what is to be refused into the plugin directory and returns why.
// Guests that loop are not among them: each takes its time, one after the other.
func (k *kit) refusable(t *testing.T) (says map[string]string) {
	t.Helper()
	says = map[string]string{}
	for _, g := range slices.Concat(hasty[1:4:4], refused) {
		says["10-"+g.name] = g.says
		k.put("10-"+g.name+".json", strings.Replace(k.json, "Fail", "Ignore", 1))
		k.put("10-"+g.name+".wasm", g.name)
	}
	for name, bad := range malformed() {
		says["20-"+name] = bad.says
		k.must(os.WriteFile(filepath.Join(k.config.PluginDir, "20-"+name+".wasm"), bad.module, 0o644))
	}
	k.must(os.WriteFile(filepath.Join(k.config.PluginDir, "30-script.wasm"), []byte("#!/bin/sh\n"), 0o644))
	return says
}

// checkRefused waits for the line that says why a plugin was not loaded.
func (k *kit) checkRefused(t *testing.T, id, why string) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		for line := range strings.Lines(k.log.String()) {
			if containsAll(line, []string{"plugin not loaded", id + ":"}) || containsAll(line, []string{"level=ERROR", "/" + id + "."}) {
				if why != "" && !containsOne(line, why) {
					t.Errorf("%s is refused with %.300q, want %q", id, line, why)
				}
				return
			}
		}
	}
	t.Errorf("%s is not refused", id)
}
