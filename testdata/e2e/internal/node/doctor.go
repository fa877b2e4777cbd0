package node

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/isolation"
)

// Doctor returns the errors and warnings that wasmproxy doctor finds on the node: the check, and
// where. Notes, such as on the clock, are of the machine.
func (p *Proxy) Doctor(t testing.TB) (found []string) {
	t.Helper()
	var stderr strings.Builder
	cmd := exec.Command(isolation.Current().Program("wasmproxy"), "doctor", "-o", "json", "--config", "",
		"--listen", RuntimeKind().ProxyEndpoint, "--backend", p.backend, "--plugin-dir", p.PluginDir, "--hook-dir", p.HookDir,
		"--cache-dir", p.CacheDir, "--state-dir", p.StateDir, "--data-dir", p.DataDir, "--admin-socket", AdminSocket, "--bypass-file", p.bypassFile())
	cmd.Stderr = &stderr
	out, _ := cmd.Output() // whose exit code tells of findings
	var report struct {
		Findings   []struct{ Check, Severity, Where, Found string }
		NotChecked []struct{ Check, Reason string }
		Passed     []string
	}
	if err := json.Unmarshal(out, &report); err != nil || len(report.Passed) == 0 {
		t.Fatalf("wasmproxy doctor: %s (%v) %s", out, err, stderr.String())
	}
	for _, c := range report.NotChecked {
		t.Logf("doctor does not check %s: %s", c.Check, c.Reason)
		unneeded := c.Check == "plugin-uncalled" || c.Check == "kubelet-restarts" // which systemd tells of, that is not here
		if !unneeded && (strings.HasPrefix(c.Check, "kubelet-") || strings.HasPrefix(c.Check, "plugin-")) {
			t.Errorf("doctor does not check %s: %s", c.Check, c.Reason)
		}
	}
	for _, f := range report.Findings {
		t.Logf("doctor: %s: %s: %s: %s", f.Severity, f.Check, f.Where, f.Found)
		if f.Severity != "note" {
			found = append(found, f.Check+" "+f.Where)
		}
	}
	return found
}
