package registry_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
)

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
		"40-off.json": `{"wasm-module": "spare.wasm", "enabled": false}`, "spare.wasm": module,
	} {
		write(t, dirs.Plugins, name, content)
	}
	must(t, os.Mkdir(filepath.Join(dirs.Hooks, "dir.json"), 0o755))
	must(t, os.Mkdir(filepath.Join(dirs.Plugins, "dir.modules"), 0o755))
	list, errs := registry.Read(dirs)
	if ids(list) != "20-off 30-off 40-off" || len(errs) > 0 {
		t.Errorf("%q, %v", ids(list), errs)
	}
	for _, d := range list {
		if !d.Disabled {
			t.Errorf("%s is not disabled", d.ID)
		}
	}
}

// A directory with the name of a plugin's file is a bad file, and does not remove the plugin.
func TestDirectoryWithNameOfFile(t *testing.T) {
	dirs := newDirs(t)
	write(t, dirs.Plugins, "10-a.wasm", module)
	write(t, dirs.Plugins, "30-c.json", `{"remote-endpoint": "/x.sock", "runtime-hooks": ["PreRunPodSandbox"]}`)
	for _, name := range []string{"10-a.json", "20-b.wasm", "40-d.json"} {
		must(t, os.Mkdir(filepath.Join(dirs.Plugins, name), 0o755))
	}
	list, errs := registry.Read(dirs)
	if ids(list) != "10-a! 20-b! 30-c 40-d!" || len(errs) != 3 {
		t.Errorf("%q, %v", ids(list), errs)
	}
	for _, err := range errs {
		if !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("the error is %v", err)
		}
	}
}

// No module is read that its file switches off: its size may be 64 MiB.
func TestDisabledReadsNoModule(t *testing.T) {
	dirs := newDirs(t)
	write(t, dirs.Plugins, "20-off.json", `{"enabled": false}`)
	write(t, dirs.Plugins, "20-off.wasm", module+strings.Repeat("\x00", 4<<20))
	before := bytesRead(t)
	if list, errs := registry.Read(dirs); ids(list) != "20-off" || len(errs) > 0 {
		t.Errorf("%q, %v", ids(list), errs)
	}
	if got := bytesRead(t) - before; got > 1<<20 {
		t.Errorf("it reads %d bytes", got)
	}
}

// bytesRead is how much this process has read from files.
func bytesRead(t *testing.T) (n int) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/io")
	must(t, err)
	if _, err := fmt.Sscanf(string(b), "rchar: %d", &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestIDsAreSafeToPrint has names that a terminal would obey, or take for two lines.
func TestIDsAreSafeToPrint(t *testing.T) {
	dirs := newDirs(t)
	const odd = "10-\x1b[31mred\nFAKE: ok"
	write(t, dirs.Plugins, odd+".wasm", module)
	write(t, dirs.Plugins, odd+".json", `{"config": {}}`)
	write(t, dirs.Plugins, `"10-\x1b[31mred\nFAKE: ok".wasm`, module) // another name
	list, errs := registry.Read(dirs)
	if want := `"10-\x1b[31mred\nFAKE: ok" "\"10-\\x1b[31mred\\nFAKE: ok\""`; ids(list) != want || len(errs) > 0 {
		t.Errorf("%s, %v; want %s", ids(list), errs, want)
	}
	if len(list) == 2 && string(list[0].Config) != "{}" {
		t.Error("the file beside the module was not found")
	}
	write(t, dirs.Plugins, odd+".json", `{`)
	if _, errs := registry.Read(dirs); len(errs) != 1 || strings.ContainsAny(errs[0].Error(), "\x1b\n") {
		t.Errorf("errors %q", errs)
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

// TestOrder is that of names, but for who says otherwise; the same order is
// settled by name.
func TestOrder(t *testing.T) {
	dirs := newDirs(t)
	write(t, dirs.Plugins, "10-a.wasm", module)
	write(t, dirs.Plugins, "30-c.wasm", module)
	write(t, dirs.Hooks, "koordlet.json", hookServer("/1.sock"))
	write(t, dirs.Hooks, "first.json", `{"remote-endpoint": "/2.sock", "order": "00"}`)
	write(t, dirs.Hooks, "between.json", `{"remote-endpoint": "/3.sock", "order": "20"}`)
	write(t, dirs.Hooks, "among.json", `{"remote-endpoint": "/4.sock", "order": "20"}`)
	list, errs := registry.Read(dirs)
	if want := "first 10-a among between 30-c koordlet"; ids(list) != want || len(errs) > 0 {
		t.Errorf("%q, want %q; %v", ids(list), want, errs)
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
		{a, registry.Description{Digest: "d", Config: []byte("{}"), Policy: plugin.Fail, Hooks: 2, HooksNamed: true}, true},
		{a, registry.Description{Digest: "e", Config: []byte("{}")}, false},
		{a, registry.Description{Digest: "d", Config: []byte("[]")}, false},
		{a, registry.Description{Digest: "d", Config: []byte("{}"), Interpret: true}, false},
		{a, registry.Description{Digest: "d", Config: []byte("{}"), Timeout: 1}, false},
		{a, registry.Description{Digest: "d", Config: []byte("{}"), Limits: abi.Limits{Fuel: 1}}, false},
		{a, b, false},
		{b, registry.Description{Endpoint: "/x", Hooks: b.Hooks, Policy: plugin.Fail}, true},
		{b, registry.Description{Endpoint: "/x", Hooks: b.Hooks, Timeout: 1}, false},
		{b, registry.Description{Endpoint: "/y", Hooks: b.Hooks}, false},
		{b, registry.Description{Endpoint: "/x"}, false},
	} {
		if same := test.x.Source() == test.y.Source(); same != test.same {
			t.Errorf("%q and %q", test.x.Source(), test.y.Source())
		}
	}
}
