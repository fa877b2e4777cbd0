package daemon_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/daemon"
)

// awaitFeature waits until the node's file has a line, or has it no more.
func (n *node) awaitFeature(line string, there bool) {
	n.t.Helper()
	var text []byte
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if text, _ = os.ReadFile(n.config.NodeFeatures); text != nil && strings.Contains(string(text), "/wasmproxy-"+line+"\n") == there {
			return
		}
	}
	n.t.Fatalf("waiting for %q to be there: %v; the file is\n%s", line, there, text)
}

// The file of the node's features has the runtime and the active plugins, and follows both. It
// stays when the proxy ends.
func TestNodeFeaturesFollowPlugins(t *testing.T) {
	n := newNode(t)
	n.config.NodeFeatures = filepath.Join(n.dir, "features.d", "wasmproxy")
	n.start(daemon.RunRetryingSoon)
	n.awaitFeature("runtime.name=fakeRuntime", true) // without a plugin that asked for it
	n.put("10-noop.wasm", "noop")
	n.awaitFeature("plugin.10-noop=1.0.0", true)
	n.must(os.Remove(filepath.Join(n.config.PluginDir, "10-noop.wasm")))
	n.awaitFeature("plugin.10-noop=1.0.0", false)
	n.end()
	n.awaitFeature("runtime.name=fakeRuntime", true)
}

// A file that cannot be written is one warning, and is written once it can be.
func TestNodeFeaturesFail(t *testing.T) {
	n := newNode(t)
	dir := filepath.Join(n.dir, "features.d")
	n.must(os.WriteFile(dir, nil, 0o644))
	n.config.NodeFeatures = filepath.Join(dir, "wasmproxy")
	n.start(daemon.RunRetryingSoon)
	n.await("node features not written, will retry")
	time.Sleep(100 * time.Millisecond) // of attempts
	n.must(os.Remove(dir))
	n.awaitFeature("runtime.name=fakeRuntime", true)
	if log := n.log.String(); strings.Count(log, "node features not written") != 1 || !strings.Contains(log, n.config.NodeFeatures) {
		t.Errorf("the log is\n%s", log)
	}
}
