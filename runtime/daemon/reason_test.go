package daemon_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/wasmproxy/wasmproxy/runtime/daemon"
)

// A plugin under Fail that lacks a capability refuses its calls. kubelet and the log, in one line,
// get the reason, which tells what to write into which file.
func TestMissingGrantIsNamedWhereItRefuses(t *testing.T) {
	n := serving(t, map[string]string{
		"10-teller.json": `{"grant": ["cri.raw"], "failure-policy": "Fail", "runtime-hooks": ["PreCreateContainer"]}`, "10-teller.wasm": "teller",
	})
	n.await("plugins active", "10-teller")
	pod, err := n.runPod(t.Context(), "web")
	n.must(err)
	err = n.createSecret(pod)
	want := `map_get container.env["PASSWORD"]: denied: the capability env is declared but not granted: add  "grant": ["env", "state.kv", "cri.raw", "credentials"]  to 10-teller.json`
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), want) {
		t.Errorf("kubelet gets %v\nwant … %s", err, want)
	}
	n.end()
	n.discreet(err)
	refused := 0
	for line := range strings.Lines(n.log.String()) {
		if strings.Contains(line, `msg="call refused"`) {
			refused++
			if !containsAll(line, []string{"level=WARN", "plugin=10-teller", "hook=PreCreateContainer", "namespace=", "pod=web", "container=app", "code=Unavailable", `to 10-teller.json`}) {
				t.Errorf("the log has %s", line)
			}
		}
	}
	if refused != 1 {
		t.Errorf("%d lines tell of the refused call", refused)
	}
}

// A capability with a misspelt name is one that the plugin does not get, and nobody misses it
// before a call is denied: so the log names it at once.
func TestMisspeltCapabilityIsNamed(t *testing.T) {
	n := newNode(t)
	n.putRaw("10-greedy.wasm", manifested(t, "noop", `{"name": "greedy", "version": "1.0.0", "hooks": ["PreRunPodSandbox"], "capabilities": ["resource", "labels"]}`))
	n.start(daemon.Run)
	n.await("plugins active", "10-greedy")
	wantNotes(t, n, `msg="plugin declares capabilities that this version does not know, and does not get them" plugin=10-greedy capabilities=[resource]`)
}
