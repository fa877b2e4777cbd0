package registry_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/wasmproxy/wasmproxy/runtime/registry"
)

// relink replaces a link by one to another target, at once.
func relink(t *testing.T, target, link string) {
	t.Helper()
	must(t, os.Symlink(target, link+".new"))
	must(t, os.Rename(link+".new", link))
}

// replace replaces a file by another one, at once.
func replace(t *testing.T, path, content string) {
	t.Helper()
	write(t, filepath.Dir(path), filepath.Base(path)+".new", content)
	must(t, os.Rename(path+".new", path))
}

// TestChangesThroughLinks count as soon as others, whichever part of the way to a file is a link, and whichever part
// changes.
func TestChangesThroughLinks(t *testing.T) {
	t.Parallel()
	const another = module + "\x00\x02\x01a"
	for name, layout := range map[string]func(t *testing.T, root string) (dir string, change func()){
		"the directory is a link, and a file in its target changes": func(t *testing.T, root string) (string, func()) {
			must(t, os.Symlink("one", filepath.Join(root, "plugins.d")))
			return filepath.Join(root, "plugins.d"), func() { write(t, filepath.Join(root, "one"), "10-a.wasm", another) }
		},
		"the directory is a link, and gets another target": func(t *testing.T, root string) (string, func()) {
			must(t, os.Symlink(filepath.Join(root, "one"), filepath.Join(root, "plugins.d")))
			return filepath.Join(root, "plugins.d"), func() { relink(t, filepath.Join(root, "two"), filepath.Join(root, "plugins.d")) }
		},
		"the directory is a link to a link, and that gets another target": func(t *testing.T, root string) (string, func()) {
			must(t, os.Mkdir(filepath.Join(root, "links"), 0o755))
			must(t, os.Symlink("../one", filepath.Join(root, "links", "current")))
			must(t, os.Symlink("links/current", filepath.Join(root, "plugins.d")))
			return filepath.Join(root, "plugins.d"), func() { relink(t, "../two", filepath.Join(root, "links", "current")) }
		},
		"a parent is a link, and a file changes": func(t *testing.T, root string) (string, func()) {
			must(t, os.Mkdir(filepath.Join(root, "real"), 0o755))
			must(t, os.Rename(filepath.Join(root, "one"), filepath.Join(root, "real", "plugins.d")))
			must(t, os.Symlink("real", filepath.Join(root, "parent")))
			return filepath.Join(root, "parent", "plugins.d"), func() { write(t, filepath.Join(root, "real", "plugins.d"), "10-a.wasm", another) }
		},
		"a parent is a link, and gets another target": func(t *testing.T, root string) (string, func()) {
			for _, from := range []string{"one", "two"} {
				must(t, os.MkdirAll(filepath.Join(root, "real", from), 0o755))
				must(t, os.Rename(filepath.Join(root, from), filepath.Join(root, "real", from, "plugins.d")))
			}
			must(t, os.Symlink("real/one", filepath.Join(root, "parent")))
			return filepath.Join(root, "parent", "plugins.d"), func() { relink(t, "real/two", filepath.Join(root, "parent")) }
		},
		"a parent is replaced": func(t *testing.T, root string) (string, func()) {
			for _, parent := range []string{"one", "two"} {
				must(t, os.Mkdir(filepath.Join(root, parent, "plugins.d"), 0o755))
				must(t, os.Rename(filepath.Join(root, parent, "10-a.wasm"), filepath.Join(root, parent, "plugins.d", "10-a.wasm")))
			}
			return filepath.Join(root, "one", "plugins.d"), func() {
				must(t, os.Rename(filepath.Join(root, "one"), filepath.Join(root, "old")))
				must(t, os.Rename(filepath.Join(root, "two"), filepath.Join(root, "one")))
			}
		},
		"a module is a link, and its target is written": func(t *testing.T, root string) (string, func()) {
			relink(t, "../three/b.wasm", filepath.Join(root, "one", "10-a.wasm"))
			return filepath.Join(root, "one"), func() { write(t, filepath.Join(root, "three"), "b.wasm", another) }
		},
		"a module is a link, and its target is replaced": func(t *testing.T, root string) (string, func()) {
			relink(t, filepath.Join(root, "three/b.wasm"), filepath.Join(root, "one", "10-a.wasm"))
			return filepath.Join(root, "one"), func() { replace(t, filepath.Join(root, "three", "b.wasm"), another) }
		},
		"a module is a link, and a directory on its way is a link that gets another target": func(t *testing.T, root string) (string, func()) {
			for _, dir := range []string{"v1", "v2"} {
				must(t, os.Mkdir(filepath.Join(root, dir), 0o755))
			}
			write(t, filepath.Join(root, "v1"), "a.wasm", module)
			write(t, filepath.Join(root, "v2"), "a.wasm", another)
			must(t, os.Symlink("v1", filepath.Join(root, "current")))
			relink(t, "../current/a.wasm", filepath.Join(root, "one", "10-a.wasm"))
			return filepath.Join(root, "one"), func() { relink(t, "v2", filepath.Join(root, "current")) }
		},
		"a module in .modules is replaced": func(t *testing.T, root string) (string, func()) {
			must(t, os.Remove(filepath.Join(root, "one", "10-a.wasm")))
			must(t, os.Mkdir(filepath.Join(root, "one", ".modules"), 0o755))
			write(t, filepath.Join(root, "one", ".modules"), "a.wasm", module)
			write(t, filepath.Join(root, "one"), "10-a.json", `{"wasm-module": ".modules/a.wasm"}`)
			return filepath.Join(root, "one"), func() { replace(t, filepath.Join(root, "one", ".modules", "a.wasm"), another) }
		},
		"the directory .modules is made later, and is a link": func(t *testing.T, root string) (string, func()) {
			must(t, os.Remove(filepath.Join(root, "one", "10-a.wasm")))
			write(t, filepath.Join(root, "one"), "10-a.json", `{"wasm-module": ".modules/10-a.wasm"}`)
			return filepath.Join(root, "one"), func() { relink(t, "../two", filepath.Join(root, "one", ".modules")) }
		},
		"a module is a link that led nowhere": func(t *testing.T, root string) (string, func()) {
			relink(t, "../two/later.wasm", filepath.Join(root, "one", "10-a.wasm"))
			return filepath.Join(root, "one"), func() { replace(t, filepath.Join(root, "two", "later.wasm"), another) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			for _, dir := range []string{"one", "two", "three"} {
				must(t, os.Mkdir(filepath.Join(root, dir), 0o755))
			}
			write(t, filepath.Join(root, "one"), "10-a.wasm", module)
			write(t, filepath.Join(root, "two"), "10-a.wasm", another)
			write(t, filepath.Join(root, "three"), "b.wasm", module)
			dir, change := layout(t, root)
			w := watch(t, registry.Dirs{Plugins: dir})
			w.until(t, "the plugin", func(list []registry.Description) bool { return len(list) == 1 })
			change()
			_, took := w.until(t, "the change", func(list []registry.Description) bool {
				return len(list) == 1 && list[0].Digest == digestOf(another)
			})
			within(t, "the change", took, soon)
		})
	}
}
