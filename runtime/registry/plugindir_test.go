package registry_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
)

func TestPluginFiles(t *testing.T) {
	for _, test := range []struct {
		name  string
		files map[string]string
		want  registry.Description
	}{
		{"module", map[string]string{"10-a.wasm": module}, registry.Description{ID: "10-a", Digest: digestOf(module)}},
		{"described", map[string]string{"10-a.wasm": module, "10-a.json": `{
			"failure-policy": "Fail", "runtime-hooks": ["PreCreateContainer", "PostCreateContainer"], "timeout": "250ms",
			"config": {"a": [1, 2]}, "enabled": true, "sha256": "` + strings.ToUpper(digestOf(module)) + `"}`},
			registry.Description{
				ID: "10-a", Digest: digestOf(module), Policy: plugin.Fail, HooksNamed: true, Timeout: 250 * time.Millisecond,
				Hooks: abi.HookSetOf(abi.PreCreateContainer, abi.PostCreateContainer), Config: []byte(`{"a":[1,2]}`),
			}},
		{"described by nothing", map[string]string{"10-a.wasm": module, "10-a.json": `{}`}, registry.Description{ID: "10-a", Digest: digestOf(module)}},
		{"interpreted", map[string]string{"10-a.wasm": module, "10-a.json": `{"engine": "interpreter"}`},
			registry.Description{ID: "10-a", Digest: digestOf(module), Interpret: true}},
		{"engine of the host's choice", map[string]string{"10-a.wasm": module, "10-a.json": `{"engine": "auto"}`},
			registry.Description{ID: "10-a", Digest: digestOf(module)}},
		{"limits", map[string]string{"10-a.wasm": module, "10-a.json": `{"limits": {"fuel": 7, "memory": "64Mi"}}`},
			registry.Description{ID: "10-a", Digest: digestOf(module), Limits: abi.Limits{Fuel: 7, Memory: 64 << 20}}},
		{"matched and ordered", map[string]string{"10-a.wasm": module, "10-a.json": `{"match": {"namespaces": ["prod"]}, "order": "05"}`},
			registry.Description{ID: "10-a", Digest: digestOf(module), Order: "05", Match: abi.Match{Namespaces: []string{"prod"}}}},
		{"allowed and tried out", map[string]string{"10-a.wasm": module, "10-a.json": `{"grant": ["env", "image"], "state": "instance",
			"limits": {"fuel": 1000, "memory": "64Ki", "host-calls": 5}, "failure-policy": "Fail", "dry-run": true}`},
			registry.Description{
				ID: "10-a", Digest: digestOf(module), Grant: abi.CapabilitySetOf(abi.Env, abi.WriteImage), State: abi.StateInstance,
				Limits: abi.Limits{Fuel: 1000, Memory: 65536, HostCalls: 5}, DryRun: true, Policy: plugin.Ignore,
			}},
		{"no hooks wanted", map[string]string{"10-a.wasm": module, "10-a.json": `{"runtime-hooks": []}`},
			registry.Description{ID: "10-a", Digest: digestOf(module), HooksNamed: true}},
		{"hook server", map[string]string{"10-a.json": `{"remote-endpoint": "/x.sock", "timeout": "1s", "runtime-hooks": ["PreRunPodSandbox", "Other"]}`},
			registry.Description{
				ID: "10-a", Endpoint: "/x.sock", HooksNamed: true, Timeout: time.Second,
				Hooks: abi.HookSetOf(abi.PreRunPodSandbox), UnknownHooks: []string{"Other"},
			}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dirs := newDirs(t)
			for name, content := range test.files {
				write(t, dirs.Plugins, name, content)
			}
			if diff := cmp.Diff(test.want, one(t, dirs), anySettings); diff != "" {
				t.Errorf("description differs (-want +got):\n%s", diff)
			}
		})
	}
}

// anySettings leaves out the digest of the JSON, which TestSettingsDigest has.
var anySettings = cmpopts.IgnoreFields(registry.Description{}, "Settings", "Text")

// TestSettingsDigest wants the digest of the JSON as sha256sum tells it, also of a hook server; none without a JSON.
func TestSettingsDigest(t *testing.T) {
	const server, beside = `{"remote-endpoint": "/x.sock"}`, `{ "dry-run": true }`
	for text, files := range map[string]map[string]string{
		"": {"10-a.wasm": module}, beside: {"10-a.wasm": module, "10-a.json": beside}, server: {"10-a.json": server},
	} {
		dirs := newDirs(t)
		for name, content := range files {
			write(t, dirs.Plugins, name, content)
		}
		want := ""
		if text != "" {
			want = digestOf(text)
		}
		if got := one(t, dirs).Settings; got != want {
			t.Errorf("the digest of %q is %q, want %q", text, got, want)
		}
	}
}

// TestBadPluginFiles wants the plugin to be refused, with the file and the
// reason, and nothing of it to count.
func TestBadPluginFiles(t *testing.T) {
	for _, test := range []struct {
		name, json, want string
	}{
		{"empty", "", "10-a.json: is empty"},
		{"truncated", `{"failure-`, "10-a.json: is not JSON"},
		{"list", `[]`, "10-a.json: is a JSON array, not an object"},
		{"policy", `{"failure-policy": "ignore"}`, `10-a.json: failure-policy: "ignore" is neither`},
		{"policy of a dry run", `{"failure-policy": "fail", "dry-run": true}`, `10-a.json: failure-policy: "fail" is neither`},
		{"unknown key", `{"failure-policy": "Ignore", "timeuot": "1s"}`, `10-a.json: unknown key "timeuot"; known are remote-endpoint, failure-policy,`},
		{"case of a key", `{"failure-policy": "Fail", "Timeout": "1s"}`, `10-a.json: unknown key "Timeout" (did you mean "timeout"?)`},
		{"no capability", `{"grant": ["env", "root"]}`, `10-a.json: grant: unknown capability "root"; known are store.read, `},
		{"empty name of a capability", `{"grant": ["env", "", "credentials"]}`, `10-a.json: grant: unknown capability ""`},
		{"a grant that cannot be bound", `{"grant": [{"env": ["A"]}]}`, `10-a.json: grant: "env" cannot be bound: mounts, devices and cdi can`},
		{"a grant bound to nothing", `{"grant": [{"mounts": []}]}`, `10-a.json: grant: mounts: want host paths such as "/opt/tools"`},
		{"a grant bound to no path", `{"grant": [{"mounts": ["opt/tools"]}]}`, `10-a.json: grant: mounts: "opt/tools" is not an absolute, clean path: want host paths such as "/opt/tools"`},
		{"a grant bound to no pattern", `{"grant": [{"devices": ["/dev/[a"]}]}`, `10-a.json: grant: devices: "/dev/[a" is no pattern: want host paths such as "/dev/nvidia*"`},
		{"a grant bound to a device", `{"grant": [{"cdi": ["nvidia.com/gpu=0"]}]}`, `10-a.json: grant: cdi: "nvidia.com/gpu=0" is not the kind of a CDI device, which is before the =: want kinds such as "nvidia.com/gpu"`},
		{"a grant that is there twice", `{"grant": ["mounts", {"mounts": ["/opt"]}]}`, `10-a.json: grant: mounts is there twice`},
		{"no capability in a list", `{"grant": [7]}`, `10-a.json: grant: 7 is not a capability such as "env", or one with what it is bound to, such as {"mounts": ["/opt/tools"]}`},
		{"no list of capabilities", `{"grant": "env"}`, `10-a.json: grant: "env" is not a list of capabilities`},
		{"no mode of state", `{"state": "all"}`, `10-a.json: state: "all" is neither "none" nor "instance"`},
		{"dry run that is no truth", `{"dry-run": "yes"}`, `10-a.json: dry-run: "yes" is not true or false`},
		{"limits no object", `{"limits": 5}`, `10-a.json: limits: 5 is not an object such as {"memory": "64Mi"}`},
		{"limits of an unknown key", `{"limits": {"cpu": 1}}`, `10-a.json: limits: unknown key "cpu"; known are fuel, host-calls, memory`},
		{"limits with a timeout", `{"limits": {"timeout": "1s"}}`, `10-a.json: limits: timeout: is a key beside limits, not in it`},
		{"limits of no fuel", `{"limits": {"fuel": 0}}`, `10-a.json: limits: fuel: 0 is not between 1 and 1000000000000000`},
		{"limits of no calls", `{"limits": {"host-calls": 0}}`, `10-a.json: limits: host-calls: 0 is not between 1 and 100000`},
		{"limits of fuel as text", `{"limits": {"fuel": "1"}}`, `10-a.json: limits: fuel: "1" is not a whole number`},
		{"limits of memory as number", `{"limits": {"memory": 64}}`, `10-a.json: limits: memory: 64 is not a size such as "64Mi"`},
		{"limits of memory in MB", `{"limits": {"memory": "64MB"}}`, `10-a.json: limits: memory: "64MB" is not a size such as "64Mi"`},
		{"limits of memory of two billion digits", `{"limits": {"memory": "1e-2000000000"}}`, `10-a.json: limits: memory: "1e-2000000000" is not a size such as "64Mi"`},
		{"limits of memory, part of a page", `{"limits": {"memory": "65537"}}`, `10-a.json: limits: memory: "65537" is not a multiple of 64Ki up to 1Gi`},
		{"limits of memory, too much", `{"limits": {"memory": "2Gi"}}`, `10-a.json: limits: memory: "2Gi" is not a multiple of 64Ki up to 1Gi`},
		{"timeout of an hour", `{"timeout": "1h"}`, `10-a.json: timeout: "1h" is more than 1m0s, the most that a plugin can have`},
		{"match", `{"match": {"namespace": ["a"]}, "failure-policy": "Fail"}`, `10-a.json: match: unknown key "namespace"; known are namespaces, `},
		{"hook", `{"runtime-hooks": ["PreCreateContaine"]}`, `10-a.json: runtime-hooks: unknown hook "PreCreateContaine"; known are PreRunPodSandbox, `},
		{"case of a hook", `{"runtime-hooks": ["preCreateContainer"]}`, `10-a.json: runtime-hooks: unknown hook "preCreateContainer" (did you mean "PreCreateContainer"?)`},
		{"timeout number", `{"timeout": 5}`, `10-a.json: timeout: 5 is not a duration such as "500ms"`},
		{"timeout text", `{"timeout": "5"}`, `10-a.json: timeout: "5" is not a duration such as "500ms"`},
		{"timeout negative", `{"timeout": "-5s"}`, `10-a.json: timeout: "-5s" is not greater than 0`},
		{"enabled", `{"enabled": "no"}`, `10-a.json: enabled: "no" is not true or false`},
		{"engine", `{"engine": "Interpreter"}`, `10-a.json: engine: "Interpreter" is neither "auto" nor "interpreter"`},
		{"sha256", `{"sha256": "12"}`, `10-a.json: sha256: "12" is not a SHA-256 in hex`},
		{"other sha256", `{"sha256": "` + strings.Repeat("0", 64) + `", "failure-policy": "Fail"}`, "10-a.json: sha256: " + strings.Repeat("0", 64) + " is wanted, and 10-a.wasm has " + digestOf(module)},
		{"hook server too", `{"remote-endpoint": "/x.sock"}`, "10-a.json: remote-endpoint: 10-a.wasm beside it is a plugin too"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dirs := newDirs(t)
			write(t, dirs.Plugins, "10-a.wasm", module)
			write(t, dirs.Plugins, "10-a.json", test.json)
			d := one(t, dirs)
			if d.Problem == nil || !strings.HasPrefix(d.Problem.Error(), filepath.Join(dirs.Plugins, test.want)) {
				t.Errorf("problem %v, want %s", d.Problem, test.want)
			}
			if want := (registry.Description{ID: "10-a", Problem: d.Problem}); !d.Same(want) {
				t.Errorf("description %+v, want %+v", d, want)
			}
		})
	}
}

func TestBadModules(t *testing.T) {
	for want, content := range map[string]string{
		"is not a WebAssembly module":            "",
		"is not a WebAssembly module ":           "\x00as",
		"is not a WebAssembly module  ":          "#!/bin/sh\n",
		"more than the 8388608 that are allowed": module + strings.Repeat("x", 8<<20),
	} {
		dirs := newDirs(t)
		path := write(t, dirs.Plugins, "10-a.wasm", content)
		if err := one(t, dirs).Problem; err == nil || !strings.Contains(err.Error(), path+": ") || !strings.Contains(err.Error(), strings.TrimSpace(want)) {
			t.Errorf("problem %v, want %s", err, want)
		}
	}
}

// TestHookServersInThePluginDirectory keep to its rules.
func TestHookServersInThePluginDirectory(t *testing.T) {
	for want, content := range map[string]string{
		"config: is for modules": `{"remote-endpoint": "/x", "config": {}}`,
		"sha256: is for modules": `{"remote-endpoint": "/x", "sha256": "` + digestOf(module) + `"}`,
		"engine: is for modules": `{"remote-endpoint": "/x", "engine": "interpreter"}`,
		"grant: is for modules":  `{"remote-endpoint": "/x", "grant": ["env"]}`,
		"limits: is for modules": `{"remote-endpoint": "/x", "limits": {"fuel": 1}}`,
		"state: is for modules":  `{"remote-endpoint": "/x", "state": "none"}`,

		"tick-timeout: is for modules":                                    `{"remote-endpoint": "/x", "tick-timeout": "1s"}`,
		"tick-period: is for modules":                                     `{"remote-endpoint": "/x", "tick-period": "10s"}`,
		"shadow: is for modules":                                          `{"remote-endpoint": "/x", "shadow": {"wasm-module": "next.wasm"}}`,
		`unknown key "Remote-endpoint" (did you mean "remote-endpoint"?)`: `{"Remote-endpoint": "/x"}`,
		"describes no plugin: it has no remote-endpoint":                  `{"failure-policy": "Fail"}`,
		"is not JSON": `{`,
	} {
		dirs := newDirs(t)
		path := write(t, dirs.Plugins, "10-a.json", content)
		list, errs := registry.Read(dirs)
		if len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), path+": "+want) {
			t.Errorf("%q, errors %v, want %s", ids(list), errs, want)
		}
	}
}
