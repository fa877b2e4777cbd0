package registry_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestNoRefusalIsLost puts bad files among good ones that come, change and go all the
// time. Each bad one is called so, once, when it has lasted.
func TestNoRefusalIsLost(t *testing.T) {
	t.Parallel()
	const files = 200
	dirs := newDirs(t)
	w := watch(t, dirs)
	for i := range files {
		write(t, dirs.Plugins, fmt.Sprintf("20-bad-%d.wasm", i), "#!/bin/sh\n")
		write(t, dirs.Plugins, fmt.Sprintf("10-good-%d.wasm", i%7), module+strings.Repeat("\x00", i))
		write(t, dirs.Hooks, "koordlet.json", hookServer(fmt.Sprintf("/%d.sock", i)))
		time.Sleep(10 * time.Millisecond)
	}
	refusal := func(i int) string {
		return filepath.Join(dirs.Plugins, fmt.Sprintf("20-bad-%d.wasm", i)) + ": is not a WebAssembly module"
	}
	for i := range files {
		w.untilLogged(t, refusal(i))
	}
	time.Sleep(time.Second)
	for i := range files {
		if n := strings.Count(w.log.String(), refusal(i)); n != 1 {
			t.Errorf("20-bad-%d.wasm is refused %d times", i, n)
		}
	}
}
