package daemon_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// section is a section of a module, of so many items that are the same after the first.
func section(id byte, first string, n int, item string) string {
	content := string(binary.AppendUvarint(nil, uint64(n+1))) + first + strings.Repeat(item, n)
	return string(id) + sized(content)
}

func sized(s string) string { return string(binary.AppendUvarint(nil, uint64(len(s)))) + s }

// bomb is a plugin with so many hooks with this code, of which one is exported.
func bomb(functions int, code string) string {
	const version = "\x00\x41\x80\x80\x04\x0b" // 1.0
	manifest := sized("wp.manifest") + `{"name":"bomb","version":"1","hooks":["PreCreateContainer"]}`
	return "\x00asm\x01\x00\x00\x00" + "\x00" + sized(manifest) +
		section(1, "\x60\x00\x01\x7f", 1, "\x60\x01\x7f\x01\x7f") + section(3, "\x00", functions, "\x01") + section(5, "\x00\x01", 0, "") +
		"\x07" + sized("\x03"+sized("memory")+"\x02\x00"+sized("wp_abi")+"\x00\x00"+sized("wp_hook")+"\x00\x01") +
		section(10, sized(version), functions, sized("\x00"+code+"\x0b"))
}

// schemaBomb is a good guest whose manifest has a schema of so many parts.
func schemaBomb(t *testing.T, item string, n int) string {
	manifest := `{"name":"bomb","version":"1","hooks":["PreCreateContainer"],"config_schema":{"allOf":[` + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + `]}}`
	return module(t, "initialize-loop") + "\x00" + sized(sized("wp.manifest")+manifest)
}

// TestLoadBombs puts modules beside a policy plugin that take a proxy gigabytes, or a processor for
// minutes, only to be loaded. Each is refused with the reason, the proxy grows by less than 200 MiB, and
// the policy refuses all along.
func TestLoadBombs(t *testing.T) {
	sums := "\x20\x00" + strings.Repeat("\x41\x00", 170_000) + strings.Repeat("\x6a", 170_000)
	table := "\x02\x40\x20\x00\x0e" + string(binary.AppendUvarint(nil, 500_000)) + strings.Repeat("\x00", 500_001) + "\x0b\x41\x00"
	k := newKit(t, "{}")
	k.put("90-policy.json", `{"failure-policy":"Fail"}`)
	k.put("90-policy.wasm", "reject")
	k.await("plugins active", "90-policy")
	for _, tt := range []struct{ name, module, json, says string }{
		{"N65 schema of Unicode classes", schemaBomb(t, `{"pattern":"^\\pL{600}"},{"pattern":"^\\pL{601}"}`, 300), `{}`, "comes to more than 20000 instructions"},
		{"N67 deep schema", schemaBomb(t, strings.Repeat(`{"not":`, 1500)+"{}"+strings.Repeat("}", 1500), 1), `{}`, "64 objects and lists within one another"},
		{"N42 br_table", bomb(15, table), `{}`, "takes too long to compile"},
		{"N43 br_tables", bomb(8, strings.Repeat("\x02\x40\x20\x00\x0e\x01\x00\x00\x0b", 15_000)+"\x41\x00"), `{}`, "takes too long to compile"},
		{"N56 interpreted code", bomb(14, sums), `{"engine":"interpreter"}`, "too much to be interpreted"},
		{"as much interpreted code as there may be", bomb(5, sums), `{"engine":"interpreter"}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k.t = t
			before := k.settle()
			k.put("10-bad.json", tt.json)
			k.putRaw("10-bad.wasm", tt.module)
			if tt.says == "" {
				k.await("plugin loaded", "plugin=10-bad")
			} else {
				k.await("plugin not loaded", "10-bad", tt.says)
			}
			if grown := k.peak() - before; grown > 200<<20 && !underRace {
				t.Errorf("the proxy grew by %d MiB", grown>>20)
			}
			if _, err := k.runPod(t.Context(), "web"); status.Code(err) == codes.OK || !strings.Contains(err.Error(), "90-policy") {
				t.Errorf("the policy plugin does not refuse: %v", err)
			}
		})
	}
	k.t = t
}
