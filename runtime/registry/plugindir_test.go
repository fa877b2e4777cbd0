package registry_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
			if diff := cmp.Diff(test.want, one(t, dirs)); diff != "" {
				t.Errorf("description differs (-want +got):\n%s", diff)
			}
		})
	}
}

// TestBadPluginFiles wants the plugin to be refused, with the file and the
// reason, and under Fail where nobody can know that it may be passed by.
func TestBadPluginFiles(t *testing.T) {
	for _, test := range []struct {
		name, json, want string
		policy           plugin.FailurePolicy
	}{
		{"empty", "", "10-a.json: is empty", plugin.Fail},
		{"truncated", `{"failure-`, "10-a.json: is not JSON", plugin.Fail},
		{"list", `[]`, "10-a.json: is a JSON array, not an object", plugin.Fail},
		{"policy", `{"failure-policy": "ignore"}`, `10-a.json: failure-policy: "ignore" is neither`, plugin.Fail},
		{"unknown key", `{"failure-policy": "Ignore", "timeuot": "1s"}`, `10-a.json: "timeuot" is no key; there are remote-endpoint, failure-policy,`, plugin.Ignore},
		{"case of a key", `{"failure-policy": "Fail", "Timeout": "1s"}`, `10-a.json: "Timeout" is no key; "timeout" was meant`, plugin.Fail},
		{"planned key", `{"match": {}}`, "10-a.json: match: is not supported yet", plugin.Ignore},
		{"hook", `{"runtime-hooks": ["PreCreateContaine"]}`, `10-a.json: runtime-hooks: "PreCreateContaine" is no hook; there are PreRunPodSandbox, `, plugin.Ignore},
		{"case of a hook", `{"runtime-hooks": ["preCreateContainer"]}`, `10-a.json: runtime-hooks: "preCreateContainer" is no hook; "PreCreateContainer" was meant`, plugin.Ignore},
		{"timeout number", `{"timeout": 5}`, `10-a.json: timeout: 5 is not a duration such as "500ms"`, plugin.Ignore},
		{"timeout text", `{"timeout": "5"}`, `10-a.json: timeout: "5" is not a duration such as "500ms"`, plugin.Ignore},
		{"timeout negative", `{"timeout": "-5s"}`, `10-a.json: timeout: "-5s" is not more than nothing`, plugin.Ignore},
		{"enabled", `{"enabled": "no"}`, `10-a.json: enabled: "no" is not true or false`, plugin.Ignore},
		{"engine", `{"engine": "Interpreter"}`, `10-a.json: engine: "Interpreter" is neither "auto" nor "interpreter"`, plugin.Ignore},
		{"sha256", `{"sha256": "12"}`, `10-a.json: sha256: "12" is not a SHA-256 in hex`, plugin.Ignore},
		{"other sha256", `{"sha256": "` + strings.Repeat("0", 64) + `", "failure-policy": "Fail"}`, "10-a.json: sha256: " + strings.Repeat("0", 64) + " is wanted, and 10-a.wasm has " + digestOf(module), plugin.Fail},
		{"hook server too", `{"remote-endpoint": "/x.sock"}`, "10-a.json: remote-endpoint: 10-a.wasm beside it is a plugin too", plugin.Ignore},
	} {
		t.Run(test.name, func(t *testing.T) {
			dirs := newDirs(t)
			write(t, dirs.Plugins, "10-a.wasm", module)
			write(t, dirs.Plugins, "10-a.json", test.json)
			d := one(t, dirs)
			if d.Problem == nil || !strings.HasPrefix(d.Problem.Error(), filepath.Join(dirs.Plugins, test.want)) {
				t.Errorf("problem %v, want %s", d.Problem, test.want)
			}
			if d.Policy != test.policy || d.Endpoint != "" {
				t.Errorf("under %v with endpoint %q, want %v and none", d.Policy, d.Endpoint, test.policy)
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
		"config: is for modules":                         `{"remote-endpoint": "/x", "config": {}}`,
		"sha256: is for modules":                         `{"remote-endpoint": "/x", "sha256": "` + digestOf(module) + `"}`,
		"engine: is for modules":                         `{"remote-endpoint": "/x", "engine": "interpreter"}`,
		"grant: is not supported yet":                    `{"remote-endpoint": "/x", "grant": []}`,
		`"Remote-endpoint" is no key; "remote-endpoint"`: `{"Remote-endpoint": "/x"}`,
		"describes no plugin: it has no remote-endpoint": `{"failure-policy": "Fail"}`,
		"is not JSON":                                    `{`,
	} {
		dirs := newDirs(t)
		path := write(t, dirs.Plugins, "10-a.json", content)
		list, errs := registry.Read(dirs)
		if len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), path+": "+want) {
			t.Errorf("%q, errors %v, want %s", ids(list), errs, want)
		}
	}
}
