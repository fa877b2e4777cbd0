package registry_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
)

// koordlet is what koordlet v1.8.0 writes, with a stage that no proxy dispatches.
const koordlet = `{
	"remote-endpoint": "/var/run/koordlet//koordlet.sock",
	"failure-policy": "Ignore",
	"runtime-hooks": [
		"PreUpdateContainerResources",
		"PreRemoveRunPodSandbox",
		"PreRunPodSandbox",
		"PreCreateContainer"
	]
}`

func TestHookserverFiles(t *testing.T) {
	hooks := abi.HookSetOf(abi.PreRunPodSandbox)
	for _, test := range []struct {
		name, file, content string
		want                registry.Description
	}{
		{"koordlet's", "koordlet.json", koordlet, registry.Description{
			ID: "koordlet", Endpoint: "/var/run/koordlet/koordlet.sock", UnknownHooks: []string{"PreRemoveRunPodSandbox"},
			Hooks: abi.HookSetOf(abi.PreRunPodSandbox, abi.PreCreateContainer, abi.PreUpdateContainerResources),
		}},
		{"scheme", "a.json", hookServer("unix:///x.sock"), registry.Description{ID: "a", Endpoint: "/x.sock", Hooks: hooks}},
		{"no dot", "xjson", hookServer("/x.sock"), registry.Description{ID: "xjson", Endpoint: "/x.sock", Hooks: hooks}},
		{"two dots", "a.b.json", hookServer("/x.sock"), registry.Description{ID: "a.b", Endpoint: "/x.sock", Hooks: hooks}},
		{"all extension", ".json", hookServer("/x.sock"), registry.Description{ID: ".json", Endpoint: "/x.sock", Hooks: hooks}},
		{"case of keys", "a.json", `{"Remote-Endpoint": "/x.sock", "FAILURE-POLICY": "Fail", "Runtime-hooks": ["PreRunPodSandbox"]}`,
			registry.Description{ID: "a", Endpoint: "/x.sock", Policy: plugin.Fail, Hooks: hooks}},
		{"unknown keys", "a.json", `{"remote-endpoint": "/x.sock", "retries": 5, "config": [], "match": null}`, registry.Description{ID: "a", Endpoint: "/x.sock"}},
		{"keys that Koordinator has not", "a.json", `{"remote-endpoint": "/x.sock", "timeout": "300ms", "order": "15", "match": {
			"namespaces": ["prod-*", "!prod-bank"], "labels": {"tier": "gold"}, "annotations": {"example.com/x": "*"},
			"qos": ["Burstable"], "runtime-handlers": ["kata"], "containers": ["app"]}}`,
			registry.Description{ID: "a", Endpoint: "/x.sock", Timeout: 300 * time.Millisecond, Order: "15", Match: abi.Match{
				Namespaces: []string{"prod-*", "!prod-bank"}, Labels: map[string]string{"tier": "gold"}, Annotations: map[string]string{"example.com/x": "*"},
				QoS: []string{"Burstable"}, RuntimeHandlers: []string{"kata"}, Containers: []string{"app"},
			}}},
		{"empty values", "a.json", `{"remote-endpoint": "/x.sock", "failure-policy": "", "runtime-hooks": null}`, registry.Description{ID: "a", Endpoint: "/x.sock"}},
		{"case of a hook's name", "a.json", `{"remote-endpoint": "/x.sock", "runtime-hooks": ["prerunpodsandbox", ""]}`,
			registry.Description{ID: "a", Endpoint: "/x.sock", UnknownHooks: []string{"prerunpodsandbox", ""}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dirs := newDirs(t)
			write(t, dirs.Hooks, test.file, test.content)
			test.want.HooksNamed = true
			if diff := cmp.Diff(test.want, one(t, dirs), cmpopts.EquateErrors(), anySettings); diff != "" {
				t.Errorf("description differs (-want +got):\n%s", diff)
			}
		})
	}
}

// TestBadHookserverFiles wants file, key, value and reason in the error.
func TestBadHookserverFiles(t *testing.T) {
	long := "/" + strings.Repeat("d", 107)
	for _, test := range []struct {
		name, content, want string
	}{
		{"empty", "", "is empty"},
		{"blank", " \n", "is empty"},
		{"truncated", koordlet[:40], "is not JSON: line 2, column 38: unexpected end of JSON input"},
		{"syntax", "{\n\t\"remote-endpoint\": /x.sock\n}", "is not JSON: line 2, column 21: invalid character '/' looking for beginning of value"},
		{"trailing", `{} {}`, "is not JSON: line 1, column 4: invalid character '{' after top-level value"},
		{"list", `[{}]`, "is a JSON array, not an object"},
		{"string", `"x"`, "is a JSON string, not an object"},
		{"hooks no list", `{"remote-endpoint": "/x", "runtime-hooks": "PreRunPodSandbox"}`, `runtime-hooks: "PreRunPodSandbox" is not a list of hook names`},
		{"hooks no strings", `{"remote-endpoint": "/x", "failure-policy": "Fail", "runtime-hooks": [1]}`, "runtime-hooks: [1] is not a list of hook names"},
		{"endpoint no string", `{"remote-endpoint": {"path":  "/x"}}`, `remote-endpoint: {"path":"/x"} is not a string`},
		{"endpoint relative", `{"remote-endpoint": "x.sock", "failure-policy": "Fail"}`, `remote-endpoint: "x.sock" is not the absolute path of a unix socket`},
		{"endpoint of another kind", `{"remote-endpoint": "tcp://127.0.0.1:80"}`, `remote-endpoint: "tcp://127.0.0.1:80" is not the absolute path of a unix socket`},
		{"endpoint too long", `{"remote-endpoint": "` + long + `"}`, "is longer than the 107 bytes"},
		{"endpoint with NUL", `{"remote-endpoint": "/x\u0000"}`, `"/x\x00" holds a NUL`},
		{"endpoint missing", `{"failure-policy": "Fail", "runtime-hooks": ["PreRunPodSandbox"]}`, "remote-endpoint: is missing"},
		{"policy in small letters", `{"remote-endpoint": "/x", "failure-policy": "fail"}`, `failure-policy: "fail" is neither "Ignore" nor "Fail" (did you mean "Fail"?)`},
		{"policy in capitals", `{"remote-endpoint": "/x", "failure-policy": "IGNORE"}`, `failure-policy: "IGNORE" is neither "Ignore" nor "Fail" (did you mean "Ignore"?)`},
		{"policy of another kind", `{"remote-endpoint": "/x", "failure-policy": "Abort"}`, `failure-policy: "Abort" is neither "Ignore" nor "Fail"`},
		{"policy no string", `{"remote-endpoint": "/x", "failure-policy": true}`, `failure-policy: "true" is neither "Ignore" nor "Fail"`},
		{"timeout", `{"remote-endpoint": "/x", "failure-policy": "Fail", "timeout": 5}`, `timeout: 5 is not a duration such as "500ms"`},
		{"order", `{"remote-endpoint": "/x", "order": 5}`, `order: 5 is not a string such as "15"`},
		{"match no object", `{"remote-endpoint": "/x", "failure-policy": "Fail", "match": ["prod-*"]}`, `match: ["prod-*"] is not an object`},
		{"match of an unknown key", `{"remote-endpoint": "/x", "match": {"namespace": "prod"}}`, `match: unknown key "namespace"; known are namespaces, qos, runtime-handlers, containers, labels, annotations`},
		{"match with a manifest's key", `{"remote-endpoint": "/x", "match": {"runtime_handlers": ["kata"], "runtime-handlers": ["runc"]}}`,
			`match: unknown key "runtime_handlers"; known are namespaces, qos, runtime-handlers, containers, labels, annotations`},
		{"match of one namespace", `{"remote-endpoint": "/x", "match": {"namespaces": "prod"}}`, `match: namespaces: "prod" is not a list of globs`},
		{"match of no namespace", `{"remote-endpoint": "/x", "match": {"namespaces": []}}`, `match: namespaces: is empty and would match nothing`},
		{"match of a label's name", `{"remote-endpoint": "/x", "match": {"labels": {"tier": 1}}}`, `match: labels: {"tier":1} is not an object of keys and values`},
		{"match of no glob", `{"remote-endpoint": "/x", "match": {"containers": ["a["]}}`, `match: containers: "a[" is not a glob`},
		{"match of a misspelt class", `{"remote-endpoint": "/x", "match": {"qos": ["burstable"]}}`, `match: qos: "burstable" is none of Guaranteed, Burstable, BestEffort`},
		{"too large", `{"remote-endpoint": "/x", "pad": "` + strings.Repeat("x", 1<<20) + `"}`, "more than the 1048576 that are allowed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dirs := newDirs(t)
			path := write(t, dirs.Hooks, "koordlet.json", test.content)
			d := one(t, dirs)
			if d.Problem == nil || !strings.HasPrefix(d.Problem.Error(), path+": ") || !strings.Contains(d.Problem.Error(), test.want) {
				t.Errorf("problem %v, want %s: … %s", d.Problem, path, test.want)
			}
			if d.ID != "koordlet" {
				t.Errorf("plugin %s, want koordlet", d.ID)
			}
		})
	}
}

// TestDocumentedFiles: what the documents show is understood, key by key.
func TestDocumentedFiles(t *testing.T) {
	found := 0
	for _, doc := range []string{"../../docs/koordinator.md", "../../docs/configuration.md", "../../plugins-wasm/koordlet/README.md"} {
		text, err := os.ReadFile(doc)
		must(t, err)
		for _, example := range regexp.MustCompile("(?s)```json[^\n]*\n(.*?)```|\n({\".*?)\nEND").FindAllStringSubmatch(string(text), -1) {
			found++
			dirs, content := newDirs(t), example[1]+example[2]
			write(t, dirs.Plugins, "10-a.json", content)
			if !strings.Contains(content, "remote-endpoint") {
				write(t, dirs.Plugins, "10-a.wasm", module)
			}
			if d := one(t, dirs); d.Problem != nil {
				t.Errorf("%s: %v in\n%s", doc, d.Problem, content)
			}
		}
	}
	if found < 3 {
		t.Errorf("%d examples, want at least 3", found)
	}
}
