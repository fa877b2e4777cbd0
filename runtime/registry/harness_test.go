package registry_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/observe/slogsink"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
)

// module is the smallest module there is.
const module = "\x00asm\x01\x00\x00\x00"

func digestOf(module string) string {
	sum := sha256.Sum256([]byte(module))
	return hex.EncodeToString(sum[:])
}

// newDirs returns two empty directories.
func newDirs(t testing.TB) registry.Dirs {
	t.Helper()
	root := t.TempDir()
	dirs := registry.Dirs{Plugins: filepath.Join(root, "plugins.d"), Hooks: filepath.Join(root, "hookserver.d")}
	for _, dir := range []string{dirs.Plugins, dirs.Hooks} {
		must(t, os.Mkdir(dir, 0o755))
	}
	return dirs
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// write writes a file as koordlet does: in place, empty first.
func write(t testing.TB, dir, name, content string) (path string) {
	t.Helper()
	path = filepath.Join(dir, name)
	must(t, os.WriteFile(path, []byte(content), 0o644))
	return path
}

// hookServer is the content of a file of a hook server.
func hookServer(endpoint string) string {
	return `{"remote-endpoint": "` + endpoint + `", "failure-policy": "Ignore", "runtime-hooks": ["PreRunPodSandbox"]}`
}

// ids returns the ids of a list, with "!" at those that have a problem.
func ids(list []registry.Description) string {
	var all []string
	for _, d := range list {
		if d.Problem != nil {
			d.ID += "!"
		}
		all = append(all, d.ID)
	}
	return strings.Join(all, " ")
}

// logBuffer is a log to look into while it is written.
type logBuffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *logBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(b)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// watched is a Watcher at work.
type watched struct {
	*registry.Watcher
	log   *logBuffer
	lists chan []registry.Description
}

// watch runs a Watcher until the test ends.
func watch(t *testing.T, dirs registry.Dirs) *watched {
	t.Helper()
	w := &watched{log: &logBuffer{}, lists: make(chan []registry.Description, 10_000)}
	var err error
	w.Watcher, err = registry.Open(t.Context(), slogsink.New(slog.New(slog.NewTextHandler(w.log, nil))), dirs, nil)
	must(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(t.Context(), func(list registry.List) {
			w.lists <- slices.DeleteFunc(list.Plugins, func(d registry.Description) bool { return d.Disabled && d.Problem == nil })
		})
	}()
	t.Cleanup(func() { <-done }) // the test's context ends before
	return w
}

// until returns the first list that is as wanted and how long it took.
func (w *watched) until(t *testing.T, what string, wanted func([]registry.Description) bool) ([]registry.Description, time.Duration) {
	t.Helper()
	start := time.Now()
	var list []registry.Description
	for {
		select {
		case list = <-w.lists:
			if wanted(list) {
				return list, time.Since(start)
			}
		case <-time.After(time.Minute):
			t.Fatalf("never %s; the last list was %q; log:\n%s", what, ids(list), w.log)
		}
	}
}

// within holds what took so long to its bound where make hostile measures time. Elsewhere other processes decide, but the look of
// each ten seconds is not what found it.
func within(t *testing.T, what string, took, most time.Duration) {
	t.Helper()
	if os.Getenv("WASMPROXY_WALL_CLOCK") == "" {
		most = 8 * time.Second
	}
	if took > most {
		t.Errorf("%s counts after %v, and should within %v", what, took, most)
	}
}

// untilIDs waits for these ids.
func (w *watched) untilIDs(t *testing.T, want string) ([]registry.Description, time.Duration) {
	t.Helper()
	return w.until(t, want, func(list []registry.Description) bool { return ids(list) == want })
}

// quiet checks that no list comes for a while.
func (w *watched) quiet(t *testing.T, for_ time.Duration) {
	t.Helper()
	select {
	case list := <-w.lists:
		t.Fatalf("a list that nobody asked for: %q %+v", ids(list), list)
	case <-time.After(for_):
	}
}

// untilLogged waits for a text in the log.
func (w *watched) untilLogged(t *testing.T, text string) {
	t.Helper()
	for start := time.Now(); !strings.Contains(w.log.String(), text); time.Sleep(10 * time.Millisecond) {
		if time.Since(start) > time.Minute {
			t.Fatalf("never logged: %s; log:\n%s", text, w.log)
		}
	}
}
