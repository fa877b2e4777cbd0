package node

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// nodeFeatures is the file for Node Feature Discovery.
const nodeFeatures = "node-features"

// NodeLabels waits until the proxy gives the node labels with this one among them, and returns all,
// without what their names begin with.
func (p *Proxy) NodeLabels(t testing.TB, name string) map[string]string {
	t.Helper()
	labels := map[string]string{}
	Eventually(t, readyTimeout, "the node has the label "+name, func() error {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(p.PluginDir), nodeFeatures))
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			if label, ok := strings.CutPrefix(line, "feature.node.kubernetes.io/wasmproxy-"); ok {
				name, value, _ := strings.Cut(strings.TrimSpace(label), "=")
				labels[name] = value
			}
		}
		if labels[name] == "" {
			return fmt.Errorf("the file is %s", text)
		}
		return nil
	})
	return labels
}
