package registry_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
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

// one reads a directory that holds one plugin, and returns it without its File.
func one(t *testing.T, dirs registry.Dirs) registry.Description {
	t.Helper()
	list, errs := registry.Read(dirs)
	if len(list) != 1 {
		t.Fatalf("%d plugins, want 1; errors %v", len(list), errs)
	}
	if problem := list[0].Problem; problem == nil && len(errs) > 0 || problem != nil && len(errs) != 1 {
		t.Errorf("problem %v, errors %v", problem, errs)
	}
	list[0].File = ""
	return list[0]
}

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
		{"unknown keys", "a.json", `{"remote-endpoint": "/x.sock", "timeout": 5, "config": [], "match": null}`, registry.Description{ID: "a", Endpoint: "/x.sock"}},
		{"empty values", "a.json", `{"remote-endpoint": "/x.sock", "failure-policy": "", "runtime-hooks": null}`, registry.Description{ID: "a", Endpoint: "/x.sock"}},
		{"case of a hook's name", "a.json", `{"remote-endpoint": "/x.sock", "runtime-hooks": ["prerunpodsandbox", ""]}`,
			registry.Description{ID: "a", Endpoint: "/x.sock", UnknownHooks: []string{"prerunpodsandbox", ""}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dirs := newDirs(t)
			write(t, dirs.Hooks, test.file, test.content)
			test.want.HooksNamed = true
			if diff := cmp.Diff(test.want, one(t, dirs), cmpopts.EquateErrors()); diff != "" {
				t.Errorf("description differs (-want +got):\n%s", diff)
			}
		})
	}
}

// TestHarmlessFiles are of no plugin and no error.
func TestHarmlessFiles(t *testing.T) {
	dirs := newDirs(t)
	for name, content := range map[string]string{
		"empty-object.json": `{}`, "null.json": `null`, "nothing-set.json": ` {"remote-endpoint": "", "failure-policy": "Ignore", "runtime-hooks": []}`,
		"other-keys.json": `{"kind": "List"}`, "README.md": "#", "a.json.bak": "{", "b.JSON": "{",
	} {
		write(t, dirs.Hooks, name, content)
	}
	for name, content := range map[string]string{
		"README.md": "#", "10-a.wasm.bak": "", ".10-a.wasm": "", ".10-a.json": "{", "10-a.json~": "{",
		"20-off.json": `{"remote-endpoint": "/x.sock", "enabled": false}`, "30-off.json": `{"enabled": false}`, "30-off.wasm": module,
	} {
		write(t, dirs.Plugins, name, content)
	}
	for _, dir := range []string{dirs.Hooks, dirs.Plugins} {
		must(t, os.Mkdir(filepath.Join(dir, "dir.json"), 0o755))
		must(t, os.Mkdir(filepath.Join(dir, "dir.wasm"), 0o755))
	}
	if list, errs := registry.Read(dirs); len(list) > 0 || len(errs) > 0 {
		t.Errorf("%q, %v", ids(list), errs)
	}
}

// TestMissingDirectories hold no plugin; Read makes none.
func TestMissingDirectories(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	if list, errs := registry.Read(registry.Dirs{Plugins: missing, Hooks: missing + "2"}); len(list) > 0 || len(errs) > 0 {
		t.Errorf("%q, %v", ids(list), errs)
	}
	if _, err := os.Stat(missing); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("directory was made: %v", err)
	}
	if list, errs := registry.Read(registry.Dirs{}); len(list) > 0 || len(errs) > 0 {
		t.Errorf("%q, %v", ids(list), errs)
	}
}

// TestBadHookserverFiles wants file, key, value and reason in the error, and the
// policy that was meant, so that it counts while the file is bad.
func TestBadHookserverFiles(t *testing.T) {
	long := "/" + strings.Repeat("d", 107)
	for _, test := range []struct {
		name, content, want string
		policy              plugin.FailurePolicy
	}{
		{"empty", "", "is empty", plugin.Ignore},
		{"blank", " \n", "is empty", plugin.Ignore},
		{"truncated", koordlet[:40], "is not JSON: line 2, column 38: unexpected end of JSON input", plugin.Ignore},
		{"syntax", "{\n\t\"remote-endpoint\": /x.sock\n}", "is not JSON: line 2, column 21: invalid character '/' looking for beginning of value", plugin.Ignore},
		{"trailing", `{} {}`, "is not JSON: line 1, column 4: invalid character '{' after top-level value", plugin.Ignore},
		{"list", `[{}]`, "is a JSON array, not an object", plugin.Ignore},
		{"string", `"x"`, "is a JSON string, not an object", plugin.Ignore},
		{"hooks no list", `{"remote-endpoint": "/x", "runtime-hooks": "PreRunPodSandbox"}`, `runtime-hooks: "PreRunPodSandbox" is not a list of hook names`, plugin.Ignore},
		{"hooks no strings", `{"remote-endpoint": "/x", "failure-policy": "Fail", "runtime-hooks": [1]}`, "runtime-hooks: [1] is not a list of hook names", plugin.Fail},
		{"endpoint no string", `{"remote-endpoint": {"path":  "/x"}}`, `remote-endpoint: {"path":"/x"} is not a string`, plugin.Ignore},
		{"endpoint relative", `{"remote-endpoint": "x.sock", "failure-policy": "Fail"}`, `remote-endpoint: "x.sock" is not the absolute path of a unix socket`, plugin.Fail},
		{"endpoint of another kind", `{"remote-endpoint": "tcp://127.0.0.1:80"}`, `remote-endpoint: "tcp://127.0.0.1:80" is not the absolute path of a unix socket`, plugin.Ignore},
		{"endpoint too long", `{"remote-endpoint": "` + long + `"}`, "is longer than the 107 bytes", plugin.Ignore},
		{"endpoint with NUL", `{"remote-endpoint": "/x\u0000"}`, `"/x\x00" holds a NUL`, plugin.Ignore},
		{"endpoint missing", `{"failure-policy": "Fail", "runtime-hooks": ["PreRunPodSandbox"]}`, "remote-endpoint: is missing", plugin.Fail},
		{"policy in small letters", `{"remote-endpoint": "/x", "failure-policy": "fail"}`, `failure-policy: "fail" is neither "Ignore" nor "Fail"; "Fail" was meant, it seems`, plugin.Fail},
		{"policy in capitals", `{"remote-endpoint": "/x", "failure-policy": "IGNORE"}`, `failure-policy: "IGNORE" is neither "Ignore" nor "Fail"; "Ignore" was meant, it seems`, plugin.Ignore},
		{"policy of another kind", `{"remote-endpoint": "/x", "failure-policy": "Abort"}`, `failure-policy: "Abort" is neither "Ignore" nor "Fail"`, plugin.Ignore},
		{"policy no string", `{"remote-endpoint": "/x", "failure-policy": true}`, `failure-policy: "true" is neither "Ignore" nor "Fail"`, plugin.Ignore},
		{"too large", `{"remote-endpoint": "/x", "pad": "` + strings.Repeat("x", 1<<20) + `"}`, "more than the 1048576 that are allowed", plugin.Ignore},
	} {
		t.Run(test.name, func(t *testing.T) {
			dirs := newDirs(t)
			path := write(t, dirs.Hooks, "koordlet.json", test.content)
			d := one(t, dirs)
			if d.Problem == nil || !strings.HasPrefix(d.Problem.Error(), path+": ") || !strings.Contains(d.Problem.Error(), test.want) {
				t.Errorf("problem %v, want %s: … %s", d.Problem, path, test.want)
			}
			if d.ID != "koordlet" || d.Policy != test.policy {
				t.Errorf("plugin %s under %v, want koordlet under %v", d.ID, d.Policy, test.policy)
			}
		})
	}
}

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
		"grant: is not supported yet":                    `{"remote-endpoint": "/x", "grant": []}`,
		`"Remote-endpoint" is no key; "remote-endpoint"`: `{"Remote-endpoint": "/x"}`,
		"describes no plugin: it has no remote-endpoint": `{"failure-policy": "Fail"}`,
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

// TestUntrustedFiles can be written by more people than may decide what runs
// here, or are no files. None is read, and none makes the reader wait.
func TestUntrustedFiles(t *testing.T) {
	nobody := 65534
	outside := t.TempDir()
	must(t, os.Chmod(outside, 0o777))
	write(t, outside, "a.wasm", module)
	for _, test := range []struct {
		name, want string
		spoil      func(t *testing.T, path string) error
		wasm, json bool
	}{
		{"group-writable", "is writable by its group (mode 0664)", func(_ *testing.T, path string) error { return os.Chmod(path, 0o664) }, true, false},
		{"world-writable", "is writable by everyone (mode 0666)", func(_ *testing.T, path string) error { return os.Chmod(path, 0o666) }, true, true},
		{"someone's", "belongs to user 65534", func(t *testing.T, path string) error {
			if os.Geteuid() != 0 {
				t.Skip("only root can give a file away")
			}
			return os.Chown(path, nobody, nobody)
		}, true, false},
		{"pipe", "is not a regular file", func(_ *testing.T, path string) error {
			return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o644))
		}, true, true},
		{"device", "is not a regular file", func(_ *testing.T, path string) error {
			return errors.Join(os.Remove(path), os.Symlink("/dev/zero", path))
		}, true, true},
		{"link into an open directory", "which is writable by everyone (mode 0777)", func(_ *testing.T, path string) error {
			return errors.Join(os.Remove(path), os.Symlink(filepath.Join(outside, "a.wasm"), path))
		}, true, true},
		{"link to nothing", "no such file or directory", func(_ *testing.T, path string) error {
			return errors.Join(os.Remove(path), os.Symlink("nothing", path))
		}, true, true},
		{"link to itself", "too many levels of symbolic links", func(_ *testing.T, path string) error {
			return errors.Join(os.Remove(path), os.Symlink(path, path))
		}, true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			dirs := newDirs(t)
			files := map[string]bool{
				write(t, dirs.Plugins, "10-a.wasm", module):           test.wasm,
				write(t, dirs.Hooks, "b.json", hookServer("/x.sock")): test.json,
			}
			for path := range files {
				must(t, test.spoil(t, path))
			}
			list, _ := registry.Read(dirs)
			for _, d := range list {
				refused := d.Problem != nil && strings.HasPrefix(d.Problem.Error(), d.File+": ") && strings.Contains(d.Problem.Error(), test.want)
				if refused != files[d.File] {
					t.Errorf("%s: problem %v, want %q: %v", d.File, d.Problem, test.want, files[d.File])
				}
			}
		})
	}
}

// TestUntrustedDirectories are not read at all.
func TestUntrustedDirectories(t *testing.T) {
	for mode, want := range map[os.FileMode][2]bool{0o755: {true, true}, 0o775: {false, true}, 0o777: {false, false}, os.ModeSticky | 0o777: {false, false}} {
		dirs := newDirs(t)
		write(t, dirs.Plugins, "a.wasm", module)
		write(t, dirs.Hooks, "b.json", hookServer("/x.sock"))
		var wantIDs []string
		for i, dir := range []string{dirs.Plugins, dirs.Hooks} {
			must(t, os.Chmod(dir, mode))
			if want[i] {
				wantIDs = append(wantIDs, string("ab"[i]))
			}
		}
		list, errs := registry.Read(dirs)
		if ids(list) != strings.Join(wantIDs, " ") || len(errs) != 2-len(wantIDs) {
			t.Errorf("mode %v: %q, %v, want %q", mode, ids(list), errs, wantIDs)
		}
		for _, err := range errs {
			if !strings.Contains(err.Error(), ".d: is writable by ") || !strings.Contains(err.Error(), fmt.Sprintf("(mode %04o)", mode.Perm())) {
				t.Errorf("error %v", err)
			}
		}
	}
}

// TestDuplicateIDs: the plugin directory comes first, then the order of names;
// but a good file comes before a bad one.
func TestDuplicateIDs(t *testing.T) {
	dirs := newDirs(t)
	write(t, dirs.Plugins, "10-a.wasm", module)
	write(t, dirs.Hooks, "10-a.json", hookServer("/x.sock"))
	write(t, dirs.Hooks, "20-b.json", hookServer("/1.sock"))
	write(t, dirs.Hooks, "20-b.xjson", hookServer("/2.sock"))
	write(t, dirs.Plugins, "30-c.wasm", "")
	write(t, dirs.Hooks, "30-c.json", hookServer("/3.sock"))
	list, errs := registry.Read(dirs)
	var got []string
	for _, d := range list {
		got = append(got, d.ID+" "+d.Endpoint)
	}
	if diff := cmp.Diff([]string{"10-a ", "20-b /1.sock", "30-c /3.sock"}, got); diff != "" {
		t.Errorf("list differs (-want +got):\n%s", diff)
	}
	for _, want := range []string{
		filepath.Join(dirs.Hooks, "10-a.json") + `: id "10-a" is taken by ` + filepath.Join(dirs.Plugins, "10-a.wasm"),
		filepath.Join(dirs.Hooks, "20-b.xjson") + `: id "20-b" is taken by ` + filepath.Join(dirs.Hooks, "20-b.json"),
		filepath.Join(dirs.Plugins, "30-c.wasm") + `: id "30-c" is taken by ` + filepath.Join(dirs.Hooks, "30-c.json"),
	} {
		if !strings.Contains(errors.Join(errs...).Error(), want) {
			t.Errorf("no error %s in %v", want, errs)
		}
	}
}

// TestReadModule returns the bytes that the description was made for, or none.
func TestReadModule(t *testing.T) {
	dirs := newDirs(t)
	path := write(t, dirs.Plugins, "10-a.wasm", module)
	list, _ := registry.Read(dirs)
	if b, err := list[0].ReadModule(); err != nil || string(b) != module {
		t.Errorf("%q, %v", b, err)
	}
	write(t, dirs.Plugins, "10-a.wasm", module+"\x00")
	if b, err := list[0].ReadModule(); err == nil || !strings.Contains(err.Error(), path+": the file has changed") {
		t.Errorf("%q, %v", b, err)
	}
}

// TestSource is equal exactly where one loaded plugin can serve both.
func TestSource(t *testing.T) {
	a := registry.Description{Digest: "d", Config: []byte("{}")}
	b := registry.Description{Endpoint: "/x", Hooks: abi.HookSetOf(abi.PreRunPodSandbox)}
	for _, test := range []struct {
		x, y registry.Description
		same bool
	}{
		{a, registry.Description{Digest: "d", Config: []byte("{}"), Policy: plugin.Fail, Timeout: 1, Hooks: 2, HooksNamed: true}, true},
		{a, registry.Description{Digest: "e", Config: []byte("{}")}, false},
		{a, registry.Description{Digest: "d", Config: []byte("[]")}, false},
		{a, b, false},
		{b, registry.Description{Endpoint: "/x", Hooks: b.Hooks, Policy: plugin.Fail}, true},
		{b, registry.Description{Endpoint: "/y", Hooks: b.Hooks}, false},
		{b, registry.Description{Endpoint: "/x"}, false},
	} {
		if same := test.x.Source() == test.y.Source(); same != test.same {
			t.Errorf("%q and %q", test.x.Source(), test.y.Source())
		}
	}
}
