package registry_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
)

// opens counts how often a file was opened since it was asked last. The kernel tells, and
// makes one event of several that nobody has read.
func opens(t *testing.T, path string) (count func() int) {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	must(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	_, err = unix.InotifyAddWatch(fd, path, unix.IN_OPEN)
	must(t, err)
	return func() int {
		events := make([]byte, 64<<10)
		n, err := unix.Read(fd, events)
		if err == unix.EAGAIN {
			return 0
		}
		must(t, err)
		return n / unix.SizeofInotifyEvent // a file's have no name
	}
}

// A directory that is not there and cannot be made is looked for each second, and nothing is
// read for that. It counts within that second once it is there.
func TestMissingDirectoryCostsNothing(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, "file", "")
	dirs := registry.Dirs{Plugins: filepath.Join(root, "plugins.d"), Hooks: filepath.Join(root, "file/hookserver.d")}
	must(t, os.Mkdir(dirs.Plugins, 0o755))
	path := write(t, dirs.Plugins, "10-a.wasm", module)
	w := watch(t, dirs)
	w.untilIDs(t, "10-a")
	opened, n := opens(t, path), 0
	for end := time.Now().Add(4 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		n += opened()
	}
	if n > 1 { // one may be the first reading's, or that of each ten seconds
		t.Errorf("the module was opened %d times in 4 s", n)
	}
	must(t, os.Remove(filepath.Join(root, "file")))
	must(t, os.MkdirAll(dirs.Hooks, 0o755))
	write(t, dirs.Hooks, "koordlet.json", koordlet)
	_, took := w.untilIDs(t, "10-a koordlet")
	within(t, "the directory", took, 6*time.Second)
}

// Without a hook directory none is made or read.
func TestNoHookDirectory(t *testing.T) {
	t.Parallel()
	dirs := newDirs(t)
	write(t, dirs.Plugins, "10-a.wasm", module)
	w, err := registry.Open(t.Context(), observe.Discard(), registry.Dirs{Plugins: dirs.Plugins}, nil)
	must(t, err)
	if got := ids(w.List().Plugins); got != "10-a" {
		t.Errorf("list %q", got)
	}
}
