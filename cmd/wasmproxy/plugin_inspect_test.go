package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

// What is shown of a limit is what holds, whoever set it.
func TestLimitsThatHold(t *testing.T) {
	in := wasm.Inspection{MemoryMin: 2, Manifest: abi.Manifest{
		Hooks: []abi.ManifestHook{{Hook: "Tick"}}, Limits: abi.Limits{Fuel: 1_000_000, Memory: 1 << 20, HostCalls: 5000},
	}}
	for _, test := range []struct {
		settings wasm.PluginOptions
		want     []string
	}{
		{wasm.PluginOptions{}, []string{
			"fuel 1000000, as its manifest says; the maximum is 20000000", "memory 1 MiB, as its manifest says; the maximum is 32 MiB",
			"time 500 ms", "host_calls 1000, too low for the 5000 that it needs", "tick_host_calls 5000", "tick_fuel 1000000", "tick_time 1000 ms",
		}},
		{wasm.PluginOptions{Interpret: true, Set: abi.Limits{Fuel: 1_000_000, HostCalls: 5000, Memory: 64 << 10}}, []string{
			"fuel 1000000, as its manifest says; the maximum is 1000000", "memory 64 KiB, too low for the 1 MiB that it needs",
			"time 500 ms", "host_calls 5000, as its manifest says; the maximum is 5000", "tick_host_calls 5000", "tick_fuel 1000000", "tick_time 1000 ms",
		}},
		{wasm.PluginOptions{Interpret: true, Max: abi.Limits{HostCalls: 6000}}, []string{
			"fuel 1000000, as its manifest says; the maximum is 5000000", "memory 1 MiB, as its manifest says; the maximum is 32 MiB",
			"time 500 ms", "host_calls 5000, as its manifest says; the maximum is 6000", "tick_host_calls 5000", "tick_fuel 1000000", "tick_time 1000 ms",
		}},
	} {
		var got []string
		for _, l := range limits(test.settings, in) {
			got = append(got, l.String())
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%+v: %q, want %q", test.settings, got, test.want)
		}
	}
}

// A capability that is misspelt is denied at each call, so it is said before.
func TestWarningOfAnUnknownCapability(t *testing.T) {
	got := pluginFile{beside: registry.Description{File: "10-x.wasm"}}.warnings(abi.Manifest{Capabilities: []string{"resource", "annotations"}})
	if len(got) != 1 || !strings.HasPrefix(got[0], `the plugin declares the unknown capability "resource"; this version has `) || !strings.Contains(got[0], "resources") {
		t.Errorf("warnings %q", got)
	}
}

// Compilers link what a plugin never calls: what is said of it must not look like an error.
func TestMeaningOfImports(t *testing.T) {
	for want, i := range map[string]imported{
		"linked, but disabled: a call fails with an error of WASI":                   {"wasi_snapshot_preview1", "fd_close", "(i32) -> i32", wasm.Denied},
		"linked; the manifest does not declare store.read, so a call returns DENIED": {abi.Module, "pod_find", "(i32, i32, i32) -> i32", wasm.Undeclared},
		"optional and not in this version: a call returns UNSUPPORTED":               {abi.Module, "later", "()", wasm.Absent},
		"served":  {abi.Module, "get", "()", wasm.Served},
		"unknown": {"env", "puts", "()", wasm.Unknown},
	} {
		if got := i.meaning(); got != want {
			t.Errorf("%s: %q, want %q", i.Name, got, want)
		}
	}
}
