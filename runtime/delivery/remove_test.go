package delivery

import (
	"maps"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wasmproxy/wasmproxy/runtime/registry"
)

// TestRemove: what a delivery has brought is refused with all that was to go with it. By force it goes, but not a module that
// another plugin names, and then a plugin of that name can be anybody's.
func TestRemove(t *testing.T) {
	d := Directory(t.TempDir())
	deliver(t, d, plugins{"10-a": "same {}", "11-a": "a1 {}"}.delivery(t, "a"))
	deliver(t, d, plugins{"20-b": "same {}"}.delivery(t, "b"))
	write(t, d.path("30-hand.wasm"), header+"hand")
	write(t, d.path("30-hand.json"), "{}")
	before := files(t, d)
	removed, err := d.Remove(t.Context(), []string{"30-hand", "10-a"}, false)
	if err == nil || !strings.Contains(err.Error(), `10-a.json belongs to the owner "a"`) || len(removed) > 0 || !maps.Equal(before, files(t, d)) {
		t.Errorf("%q is removed, error %v", removed, err)
	}
	if removed, err = d.Remove(t.Context(), []string{"30-hand", "10-a"}, true); err != nil || len(removed) != 3 {
		t.Errorf("%q is removed, error %v", removed, err)
	}
	plugins{"11-a": "a1 {}", "20-b": "same {}"}.has(t, d)
	deliver(t, d, plugins{"10-a": "b1 {}", "20-b": "same {}"}.delivery(t, "b"))
	plugins{"10-a": "b1 {}", "11-a": "a1 {}", "20-b": "same {}"}.has(t, d)
	for range 2 { // the second time there is nothing
		if _, err := d.Remove(t.Context(), []string{"20-b"}, true); err != nil {
			t.Error(err)
		}
		plugins{"10-a": "b1 {}", "11-a": "a1 {}"}.has(t, d)
	}
}

// TestRemoveKeepsAnothersModule: the module stays that has a JSON file of its own, beside the one that is removed.
func TestRemoveKeepsAnothersModule(t *testing.T) {
	d := Directory(t.TempDir())
	write(t, d.path("10-a.wasm"), header)
	write(t, d.path("10-a.json"), `{"failure-policy": "Ignore"}`)
	write(t, d.path("20-b.json"), `{"wasm-module": "10-a.wasm"}`)
	if removed, err := d.Remove(t.Context(), []string{"20-b"}, false); err != nil || len(removed) != 1 {
		t.Errorf("%q is removed, error %v", removed, err)
	}
}

// TestRemoveUnreadable: the files of a plugin go that cannot be read. While one of another plugin cannot be, modules stay.
func TestRemoveUnreadable(t *testing.T) {
	d := Directory(t.TempDir())
	if err := os.Mkdir(d.path(registry.Modules), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, d.path(registry.Modules, "code.wasm"), header+"hand")
	write(t, d.path("10-named.json"), `{"wasm-module": "`+registry.Modules+`/code.wasm"}`)
	write(t, d.path("20-bad.json"), "{")
	write(t, d.path("20-bad.wasm"), header)
	for _, id := range []string{"10-named", "20-bad"} {
		if _, err := d.Remove(t.Context(), []string{id}, false); err != nil {
			t.Error(err)
		}
	}
	if got := files(t, d); len(got) != 1 || got[d.path(modulePath("code"))] == "" {
		t.Errorf("%q is left", got)
	}
}

// TestRemoveKeepsAShadow: the module of a plugin stays that another plugin's shadow names.
func TestRemoveKeepsAShadow(t *testing.T) {
	d := Directory(t.TempDir())
	deliver(t, d, plugins{"10-a": "next {}"}.delivery(t, "a"))
	found, _ := registry.Read(registry.Dirs{Plugins: string(d)})
	module := found[0].Module
	write(t, d.path("20-b.wasm"), header+"hand")
	write(t, d.path("20-b.json"), `{"shadow": {"wasm-module": "`+module+`"}}`)
	removed, err := d.Remove(t.Context(), []string{"10-a"}, true)
	if err != nil || len(removed) != 1 {
		t.Errorf("%q is removed, error %v", removed, err)
	}
	if _, there := files(t, d)[d.path(module)]; !there {
		t.Errorf("%s is gone, which the shadow of 20-b names", module)
	}
}

// TestDirectoryThatCannotBeRead: which modules its plugins name is not known then, and all stay.
func TestDirectoryThatCannotBeRead(t *testing.T) {
	d := Directory(t.TempDir())
	deliver(t, d, plugins{"10-a": "a1 {}"}.delivery(t, "a"))
	r, err := d.record()
	if err != nil {
		t.Fatal(err)
	}
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Max: was.Max}); err != nil { // nothing can be opened any more
		t.Fatal(err)
	}
	collected := d.collect(&r)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	if collected != nil || len(r.Modules) != 1 {
		t.Errorf("%q are left, error %v", r.Modules, collected)
	}
	plugins{"10-a": "a1 {}"}.has(t, d)
}
