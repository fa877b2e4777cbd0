package registry_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
)

// both returns the directories one after the other, empty: what is said of
// modules holds in either.
func both(t *testing.T, test func(t *testing.T, dirs registry.Dirs, dir string)) {
	for name, dir := range map[string]func(registry.Dirs) string{
		"plugin directory": func(d registry.Dirs) string { return d.Plugins },
		"hookserver.d":     func(d registry.Dirs) string { return d.Hooks },
	} {
		t.Run(name, func(t *testing.T) {
			dirs := newDirs(t)
			test(t, dirs, dir(dirs))
		})
	}
}

func TestModuleByItself(t *testing.T) {
	both(t, func(t *testing.T, dirs registry.Dirs, dir string) {
		write(t, dir, "10-a.wasm", module)
		if diff := cmp.Diff(registry.Description{ID: "10-a", Digest: digestOf(module)}, one(t, dirs)); diff != "" {
			t.Errorf("description differs (-want +got):\n%s", diff)
		}
		write(t, dir, "10-a.json", `{"failure-policy": "Fail", "config": {"a": 1}}`)
		if d := one(t, dirs); d.Policy != plugin.Fail || string(d.Config) != `{"a":1}` || d.Digest == "" {
			t.Errorf("described by the file beside it: %+v", d)
		}
	})
}

// TestNamedModule is one plugin, by the file that names it.
func TestNamedModule(t *testing.T) {
	both(t, func(t *testing.T, dirs registry.Dirs, dir string) {
		write(t, dir, "qos.wasm", module)
		write(t, dir, "10-a.json", `{"wasm-module": "qos.wasm", "failure-policy": "Fail", "runtime-hooks": ["PreCreateContainer"], "timeout": "50ms"}`)
		want := registry.Description{
			ID: "10-a", Module: "qos.wasm", Digest: digestOf(module), Policy: plugin.Fail, HooksNamed: true,
			Hooks: abi.HookSetOf(abi.PreCreateContainer), Timeout: 50 * time.Millisecond,
		}
		if diff := cmp.Diff(want, one(t, dirs), anySettings); diff != "" {
			t.Errorf("description differs (-want +got):\n%s", diff)
		}
		list, _ := registry.Read(dirs)
		if b, err := list[0].ReadModule(); err != nil || string(b) != module {
			t.Errorf("module %q, %v", b, err)
		}
		write(t, dir, "20-b.json", `{"wasm-module": "qos.wasm", "config": {"other": true}}`)
		if list, errs := registry.Read(dirs); ids(list) != "10-a 20-b" || len(errs) > 0 {
			t.Errorf("one module, two plugins: %q, %v", ids(list), errs)
		}
	})
}

// TestNamedModuleWithItsOwnFile: a file that names the module of another plugin takes that one's file out of effect, which
// is a problem.
func TestNamedModuleWithItsOwnFile(t *testing.T) {
	both(t, func(t *testing.T, dirs registry.Dirs, dir string) {
		write(t, dir, "qos.wasm", module)
		own := write(t, dir, "qos.json", `{"failure-policy": "Fail"}`)
		if list, errs := registry.Read(dirs); ids(list) != "qos" || len(errs) > 0 {
			t.Fatalf("%q, errors %v", ids(list), errs)
		}
		write(t, dir, "10-a.json", `{"wasm-module": "qos.wasm"}`)
		const want = ": describes no plugin: 10-a.json names qos.wasm as its wasm-module"
		list, errs := registry.Read(dirs)
		if ids(list) != "10-a" || len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), own+want) {
			t.Fatalf("%q, errors %v, want %s", ids(list), errs, want)
		}
		if id, is := registry.Alone(errs[0]); id != "qos" || !is {
			t.Errorf("of plugin %q, without a plugin: %v", id, is)
		}
	})
}

// TestModulesDirectory: a module in .modules is none by itself, and code and settings change with the one file that names
// it.
func TestModulesDirectory(t *testing.T) {
	both(t, func(t *testing.T, dirs registry.Dirs, dir string) {
		const another = module + "\x00\x02\x01a"
		modules := filepath.Join(dir, registry.Modules)
		must(t, os.Mkdir(modules, 0o755))
		write(t, modules, "a.wasm", module)
		write(t, modules, "b.wasm", another)
		if list, errs := registry.Read(dirs); len(list) > 0 || len(errs) > 0 {
			t.Errorf("nothing names them: %q, %v", ids(list), errs)
		}
		for name, content := range map[string]string{"a": module, "b": another} {
			replace(t, filepath.Join(dir, "10-qos.json"), `{"wasm-module": ".modules/`+name+`.wasm", "sha256": "`+digestOf(content)+`"}`)
			want := registry.Description{ID: "10-qos", Module: ".modules/" + name + ".wasm", Digest: digestOf(content)}
			if diff := cmp.Diff(want, one(t, dirs), anySettings); diff != "" {
				t.Errorf("description differs (-want +got):\n%s", diff)
			}
			list, _ := registry.Read(dirs)
			if b, err := list[0].ReadModule(); err != nil || string(b) != content {
				t.Errorf("module %q, %v", b, err)
			}
		}
		must(t, os.Chmod(modules, 0o777))
		if d := one(t, dirs); d.Problem == nil || !strings.Contains(d.Problem.Error(), ".modules, which is writable by everyone (mode 0777)") {
			t.Errorf("in a directory that everyone may write: %v", d.Problem)
		}
		must(t, os.Chmod(modules, 0o755))
		must(t, os.Chmod(filepath.Join(modules, "b.wasm"), 0o666))
		replace(t, filepath.Join(dir, "10-qos.json"), `{"wasm-module": ".modules/b.wasm"}`)
		if d := one(t, dirs); d.Problem == nil || !strings.Contains(d.Problem.Error(), "b.wasm: is writable by everyone (mode 0666)") {
			t.Errorf("a module that everyone may write: %v", d.Problem)
		}
	})
}

func TestBadNamedModules(t *testing.T) {
	for want, content := range map[string]string{
		`wasm-module: "../qos.wasm" is not the name of a .wasm file beside this one`:              `{"wasm-module": "../qos.wasm"}`,
		`wasm-module: "/lib/qos.wasm" is not the name of`:                                         `{"wasm-module": "/lib/qos.wasm"}`,
		`wasm-module: "qos" is not the name of`:                                                   `{"wasm-module": "qos"}`,
		`wasm-module: ".modules/../qos.wasm" is not the name of`:                                  `{"wasm-module": ".modules/../qos.wasm"}`,
		`wasm-module: ".modules/.wasm" is not the name of`:                                        `{"wasm-module": ".modules/.wasm"}`,
		`wasm-module: "other/qos.wasm" is not the name of`:                                        `{"wasm-module": "other/qos.wasm"}`,
		`wasm-module: there is no .modules/other.wasm beside it`:                                  `{"wasm-module": ".modules/other.wasm"}`,
		`wasm-module: {} is not a string`:                                                         `{"wasm-module": {}}`,
		`wasm-module: there is no other.wasm beside it`:                                           `{"wasm-module": "other.wasm"}`,
		`remote-endpoint: qos.wasm beside it is a plugin too`:                                     `{"wasm-module": "qos.wasm", "remote-endpoint": "/x.sock"}`,
		`runtime-hooks: unknown hook "Pre"`:                                                       `{"wasm-module": "qos.wasm", "runtime-hooks": ["Pre"]}`,
		`sha256: ` + strings.Repeat("0", 64) + ` is wanted, and qos.wasm has ` + digestOf(module): `{"wasm-module": "qos.wasm", "sha256": "` + strings.Repeat("0", 64) + `"}`,
		`unknown key "retries"`:                                                                   `{"wasm-module": "qos.wasm", "retries": 3}`,
	} {
		both(t, func(t *testing.T, dirs registry.Dirs, dir string) {
			write(t, dir, "qos.wasm", module)
			path := write(t, dir, "10-a.json", content)
			list, errs := registry.Read(dirs)
			if len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), path+": "+want) || !strings.Contains(ids(list), "10-a!") {
				t.Errorf("%q, errors %v, want %s", ids(list), errs, want)
			}
		})
	}
}

// TestHookserverWithModulesIsTrustedLess: a process may be registered where a
// module must not be.
func TestHookserverWithModulesIsTrustedLess(t *testing.T) {
	dirs := newDirs(t)
	write(t, dirs.Hooks, "koordlet.json", hookServer("/x.sock"))
	write(t, dirs.Hooks, "qos.wasm", module)
	named := write(t, dirs.Hooks, "10-a.json", `{"wasm-module": "qos.wasm"}`)
	must(t, os.Chmod(named, 0o664))
	list, errs := registry.Read(dirs)
	if ids(list) != "10-a! koordlet" || !strings.Contains(list[0].Problem.Error(), "10-a.json: is writable by its group") {
		t.Errorf("%q, %v", ids(list), errs)
	}
	must(t, os.Chmod(named, 0o644))
	must(t, os.Chmod(dirs.Hooks, 0o775))
	list, errs = registry.Read(dirs)
	if ids(list) != "10-a! koordlet" || !strings.Contains(list[0].Problem.Error(), "qos.wasm: is a module in "+dirs.Hooks+", which is writable by its group") {
		t.Errorf("%q, %v", ids(list), errs)
	}
}

// TestNamedModuleWhileItsFileIsBad stays one plugin, and does not become another
// that nobody described.
func TestNamedModuleWhileItsFileIsBad(t *testing.T) {
	dirs := newDirs(t)
	write(t, dirs.Hooks, "qos.wasm", module)
	path := write(t, dirs.Hooks, "10-a.json", `{"wasm-module": "qos.wasm"}`)
	w := watch(t, dirs)
	w.untilIDs(t, "10-a")
	write(t, dirs.Hooks, "10-a.json", `{"wasm-mod`)
	w.untilLogged(t, "10-a.json: is not JSON")
	w.untilIDs(t, "10-a!")
	w.quiet(t, 300*time.Millisecond)
	must(t, os.Remove(filepath.Clean(path)))
	w.untilIDs(t, "qos")
}
