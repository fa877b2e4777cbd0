package koord_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestW24Removal removes a registration. koord-runtime-proxy looks for files
// that are gone once a minute; wasmproxy at once.
func TestW24Removal(t *testing.T) {
	scenario{incumbent: "hooks after the file was removed: got 1, want 0", run: func(n *node) error {
		server := n.serve("10-a.json", nil, "Ignore", "PreRunPodSandbox")
		n.start()
		n.must(os.Remove(filepath.Join(n.hookDir, "10-a.json")))
		time.Sleep(time.Second)
		if _, err := n.runPod(podConfig()); err != nil {
			return n.well(err)
		}
		return want("hooks after the file was removed", len(server.toldOf("PreRunPodSandbox")), 0)
	}}.test(t)
}
