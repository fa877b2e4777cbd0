package koord_test

import (
	"errors"
	"runtime/debug"
	"sync"
	"testing"
	"time"
)

// TestW09Leak removes containers without stopping them, as kubelet does with
// those that have ended. koord-runtime-proxy forgets only what is stopped.
func TestW09Leak(t *testing.T) {
	tests(t, map[string]scenario{
		"hook of a removed container": {incumbent: "hooks of a removed container: got 1, want 0", run: func(n *node) error {
			server := n.serve("10-a.json", nil, "Ignore", "PreStartContainer")
			n.start()
			pod, err := n.runPod(podConfig())
			n.must(err)
			container, err := n.create(pod, containerConfig(), podConfig())
			n.must(err)
			n.must(n.removeContainer(container))
			if err := n.startContainer(container); err == nil {
				n.Fatal("the runtime started a container that it does not have")
			}
			return want("hooks of a removed container", len(server.toldOf("PreStartContainer")), 0)
		}},
		"memory": {incumbent: "(?s)after 20000 containers, all removed, it has.*hooks of removed containers: got 20000", run: func(n *node) error {
			n.program = programs.wasmproxy // the race detector has memory of its own
			server := n.serve("10-a.json", nil, "Ignore", "PreStartContainer")
			n.start()
			n.lives(2000) // the memory that work takes is there
			before := n.settledRSS()
			ids := n.lives(20000)
			after := n.settledRSS()
			n.Logf("resident: %.1f MB before, %.1f MB after", before, after)
			var err error
			if after > before+10 {
				err = wrong("after %d containers, all removed, it has %.0f MB more than before", len(ids), after-before)
			}
			each(n, ids, func(id string) error { // which no hook is called for, if the proxy does not know it
				if n.startContainer(id) == nil {
					return wrong("container %s was started, which does not exist", id)
				}
				return nil
			})
			return join(err, want("hooks of removed containers", len(server.toldOf("PreStartContainer")), 0))
		}},
	})
}

// lives creates containers in a pod and removes them, and returns their ids.
func (n *node) lives(times int) []string {
	n.Helper()
	pod, err := n.runPod(podConfig())
	n.must(err)
	ids, at := make([]string, times), make([]int, times)
	for i := range at {
		at[i] = i
	}
	each(n, at, func(i int) (err error) {
		if ids[i], err = n.create(pod, containerConfig(), podConfig()); err != nil {
			return err
		}
		return n.removeContainer(ids[i])
	})
	return ids
}

// each does something for each, a few at a time. An error ends the test.
func each[T any](n *node, all []T, do func(T) error) {
	n.Helper()
	const atOnce = 4
	errs := make([]error, atOnce)
	var wg sync.WaitGroup
	for i := range atOnce {
		wg.Go(func() {
			for j := i; j < len(all) && errs[i] == nil; j += atOnce {
				errs[i] = do(all[j])
			}
		})
	}
	wg.Wait()
	n.must(errors.Join(errs...))
}

// settledRSS is the memory of the proxy in MB, the least of some seconds: Go
// gives memory back when it has time.
func (n *node) settledRSS() float64 {
	n.runtime.forget()
	debug.FreeOSMemory() // that of the tests themselves
	least := 0.0
	for range 10 {
		time.Sleep(500 * time.Millisecond)
		bytes, err := n.process.Memory("VmRSS")
		n.must(err)
		if mb := float64(bytes) / 1e6; least == 0 || mb < least {
			least = mb
		}
	}
	return least
}

// forget drops what the runtime remembers of calls.
func (r *runtime) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = nil
}
