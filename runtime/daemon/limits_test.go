package daemon_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/wasmproxy/wasmproxy/runtime/daemon"
)

// A plugin has what its file says, from the next call after that says otherwise.
func TestLimitsOfAPlugin(t *testing.T) {
	n := serving(t, map[string]string{
		"10-loop.wasm": "loop", "10-loop.json": `{"failure-policy":"Fail","timeout":"30s","limits":{"fuel":1000000}}`,
		"20-hungry.wasm": "memory-hungry", "20-hungry.json": `{"limits":{"memory":"64Mi"}}`, // 62.5 MiB, the default is 32
	})
	n.awaitActive("10-loop", "20-hungry")
	n.refuses(t, "units of fuel, its limit is 1000000")
	n.put("10-loop.json", `{"failure-policy":"Fail","timeout":"30s","limits":{"fuel":2000000}}`)
	n.awaitLoad("10-loop")
	n.refuses(t, "units of fuel, its limit is 2000000")
	n.put("20-hungry.json", `{"limits":{"memory":"16Mi"}}`)
	n.await("plugin not loaded", "20-hungry", "it needs 1000 pages (62.5 MiB) of memory to start with, its limit is 256 (16 MiB)")
}

// A plugin has what its manifest asks for, up to the settings. One that asks for more is not
// loaded, and with Fail its hooks are refused until its file allows it.
func TestManifestAsksForHigherLimits(t *testing.T) {
	asking := func(limits string) string {
		return manifested(t, "loop", `{"name":"loop","version":"1","hooks":["PreRunPodSandbox"],"limits":{`+limits+`}}`)
	}
	n := newNode(t)
	n.config.MaxFuel, n.config.MaxTimeout = 30_000_000, 30*time.Second
	n.config.DataDir = filepath.Join(n.dir, "data") // a plugin that was good before refuses if it cannot be loaded
	n.putRaw("10-loop.wasm", asking(`"fuel":30000000,"time_ms":30000`))
	n.put("10-loop.json", `{"failure-policy":"Fail"}`)
	n.start(daemon.Run)
	n.awaitActive("10-loop")
	n.awaitKept("10-loop", `Fail`)
	n.refuses(t, "units of fuel, its limit is 30000000")
	n.put("10-loop.json", `{"failure-policy":"Fail","limits":{"fuel":29999999}}`)
	const above = "limits.fuel is 30000000, above the maximum of 29999999: raise limits.fuel in the plugin's JSON"
	n.await("plugin not loaded", "10-loop", above, "the previous version stays active")
	n.end()

	n.config.MaxFuel = 29_000_000
	n.put("10-loop.json", `{"failure-policy":"Fail"}`)
	n.log = newJournal()
	n.start(daemon.Run)
	const tooMuch = "manifest: limits.fuel is 30000000, above the maximum of 29000000: raise the setting max-plugin-fuel, or set limits.fuel"
	n.await("plugin not loaded", "10-loop", "calls are refused", tooMuch)
	n.refuses(t, tooMuch)
	n.put("10-loop.json", `{"failure-policy":"Fail","limits":{"fuel":31000000}}`)
	n.awaitActive("10-loop")
	n.refuses(t, "units of fuel, its limit is 30000000")
}

func (n *node) refuses(t *testing.T, why string) {
	t.Helper()
	if _, err := n.runPod(t.Context(), "web"); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), why) {
		t.Errorf("got %v, want %q", err, why)
	}
}
