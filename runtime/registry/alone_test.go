package registry_test

import (
	"os"
	"strings"
	"testing"
	"time"
)

// A JSON file whose module was removed is a warning that says what to do, and once: it does no harm.
// With the file the matter is over.
func TestJSONWithoutItsModule(t *testing.T) {
	t.Parallel()
	dirs := newDirs(t)
	path := write(t, dirs.Plugins, "10-a.wasm", module)
	description := write(t, dirs.Plugins, "10-a.json", `{"failure-policy": "Fail"}`)
	w := watch(t, dirs)
	w.untilIDs(t, "10-a")
	must(t, os.Remove(path))
	w.untilIDs(t, "")
	w.untilLogged(t, "remove the file, or put 10-a.wasm beside it")
	const warning = `level=WARN msg="plugin file describes no plugin"`
	if log := w.log.String(); strings.Count(log, warning) != 1 || strings.Contains(log, "level=ERROR") {
		t.Errorf("log:\n%s", log)
	}
	write(t, dirs.Plugins, "10-a.wasm", module)
	w.untilIDs(t, "10-a")
	must(t, os.Remove(description))
	must(t, os.Remove(path))
	w.untilIDs(t, "")
	write(t, dirs.Plugins, "20-b.wasm", module)
	w.untilIDs(t, "20-b")
	time.Sleep(2 * soon) // a warning comes within half of that
	if log := w.log.String(); strings.Count(log, "msg=") != 1 {
		t.Errorf("log:\n%s", log)
	}
}
