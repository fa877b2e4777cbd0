package intercept_test

import (
	"errors"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// An update of the host's own leaves a container's memory.oom.group as it was, also if the runtime
// fails.
func TestOwnUpdateLeavesOOMGroup(t *testing.T) {
	for _, refuses := range []error{nil, errors.New("refused")} {
		fs, _, dir := scratchGroup(t)
		put(t, dir, "memory.oom.group", "1")
		n := newNode(t, []plugin.Member{doubling(abi.HookSetOf(abi.PreCreateContainer), abi.AllCapabilities)}, withCgroups(fs))
		n.runPod()
		n.begin()
		n.backend.refuses = refuses
		n.backend.hear = func() { put(t, dir, "memory.oom.group", "0") }
		n.withdraw("10-doubling")
		n.must(n.queue.Drain(t.Context()))
		if got := content(t, dir, "memory.oom.group"); got != "1" || len(n.backend.updates) != 1 {
			t.Errorf("after %d updates memory.oom.group is %s", len(n.backend.updates), got)
		}
	}
}
