package slots

import (
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

// A thousand reloads leave as much memory, as many goroutines and as many compiled
// modules as a hundred: what is replaced is freed, also what did not load.
func TestThousandReloads(t *testing.T) {
	s := followedBy(t, wasm.Options{CacheDir: filepath.Join(t.TempDir(), "cache")})
	s.put(map[string]string{"20-bad.json": `{"failure-policy":"Fail","engine":"interpreter"}`})
	files := []struct{ first, second string }{{"quota", "trap"}, {"noop", "start-recursion"}, {"everything", "wrong-signature"}, {"fickle", "manifest-exit"}}
	var memory, goroutines [2]int64
	for i := range 1000 {
		s.put(map[string]string{"10-good.wasm": files[i%len(files)].first, "20-bad.wasm": files[i%len(files)].second})
		if i == 99 || i == 999 {
			memory[i/500], goroutines[i/500] = resting(t), int64(runtime.NumGoroutine())
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

// resting is how much memory is resident when what ends in the background has ended.
func resting(t *testing.T) int64 {
	t.Helper()
	time.Sleep(500 * time.Millisecond)
	runtime.GC()
	debug.FreeOSMemory()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}
