package daemon_test

import (
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/daemon"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// A thousand reloads leave as much memory, as many goroutines and as many compiled
// modules as a hundred: what is replaced is freed, also what did not load.
func TestThousandReloads(t *testing.T) {
	n := newNode(t)
	n.config.CacheDir = filepath.Join(n.dir, "cache")
	reload, closeAll, err := daemon.Reloader(t.Context(), n.config, observe.Discard())
	n.must(err)
	defer closeAll()
	n.put("20-bad.json", `{"failure-policy":"Fail","engine":"interpreter"}`)
	files := []struct{ first, second string }{{"quota", "trap"}, {"noop", "start-recursion"}, {"everything", "wrong-signature"}, {"fickle", "manifest-exit"}}
	k := kit{node: n}
	var memory, goroutines [2]int64
	for i := range 1000 {
		n.put("10-good.wasm", files[i%len(files)].first)
		n.put("20-bad.wasm", files[i%len(files)].second)
		reload()
		if i == 99 || i == 999 {
			memory[i/500], goroutines[i/500] = k.resting(), int64(runtime.NumGoroutine())
		}
	}
	t.Logf("after 100 reloads %.1f MiB and %d goroutines, after 1,000 %.1f and %d",
		float64(memory[0])/(1<<20), goroutines[0], float64(memory[1])/(1<<20), goroutines[1])
	if goroutines[1] > goroutines[0]+5 {
		t.Errorf("%d goroutines became %d", goroutines[0], goroutines[1])
	}
	if grown := memory[1] - memory[0]; grown > 8<<20 && !underRace {
		t.Errorf("resident memory grew by %.1f MiB", float64(grown)/(1<<20))
	}
}

// resting is how much is resident when what ends in the background has ended.
func (k *kit) resting() int64 {
	time.Sleep(500 * time.Millisecond)
	runtime.GC()
	debug.FreeOSMemory()
	return k.resident("VmRSS:")
}
