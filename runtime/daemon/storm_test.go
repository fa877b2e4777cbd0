package daemon_test

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// A node that starts all its pods at once asks more of its plugins than they can do at a
// time. They wait for each other, and none fails for it.
func TestManyCallsAtOnce(t *testing.T) {
	callers, limit := 256, "500ms"
	if !wallClock() { // a call may wait 5 s in all, and a busy machine is ten times as slow
		callers, limit = 48, "20s"
	}
	files := map[string]string{}
	var names []string
	for i := range 8 {
		name := fmt.Sprintf("%d0-noop", i+1)
		files[name+".wasm"], files[name+".json"] = "noop", `{"failure-policy":"Fail","engine":"interpreter","timeout":"`+limit+`"}`
		names = append(names, name)
	}
	n := serving(t, files)
	n.await("plugins active", `plugins="[`+names[0], names[7], "refusing=[]")
	var calls sync.WaitGroup
	var mu sync.Mutex
	var longest time.Duration
	for i := range callers {
		calls.Go(func() {
			for round := range 4 {
				start := time.Now()
				if _, err := n.runPod(t.Context(), fmt.Sprintf("web-%d-%d", i, round)); err != nil {
					t.Error(err)
				}
				mu.Lock()
				longest = max(longest, time.Since(start))
				mu.Unlock()
			}
		})
	}
	calls.Wait()
	t.Logf("the longest of %d calls took %v", 4*callers, longest)
}
