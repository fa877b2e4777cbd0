package daemon_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/runtime/daemon"
)

// The audit log of a real daemon has what plugins changed and refused, the call's trace and no
// secret.
func TestAuditLog(t *testing.T) {
	n := newNode(t)
	n.config.AdminSocket = filepath.Join(n.dir, "admin.sock")
	n.config.AuditLog, n.config.BypassFile = filepath.Join(n.dir, "audit.json"), filepath.Join(n.dir, "bypass")
	n.put("10-quota.wasm", "quota")
	n.start(daemon.Run)
	n.awaitActive("10-quota")
	n.must(n.createTraced(tracedBy(t.Context(), sampled)))
	n.put("20-reject.wasm", "reject")
	n.awaitActive("10-quota", "20-reject")
	if err := n.createTraced(t.Context()); err == nil {
		t.Error("the plugin does not refuse")
	}
	n.awaitSocket()
	n.awaitMetric("wasmproxy_audit_lines_lost_total 0")
	n.put("20-reject.json", `{"enabled": false}`)
	n.await("plugin removed", "20-reject")
	n.put("10-quota.json", `{"match": {"containers": ["main"]}}`)
	n.await("plugin settings changed", "10-quota")
	n.put("30-trap.wasm", "trap")
	n.awaitActive("10-quota", "30-trap")
	n.must(n.createTraced(t.Context()))
	n.must(os.WriteFile(n.config.BypassFile, []byte("INC 4711"), 0o644))
	n.awaitMetric("wasmproxy_bypass 1")
	n.must(os.Remove(n.config.BypassFile))
	n.awaitMetric("wasmproxy_bypass 0")
	n.end() // which writes all
	text, err := os.ReadFile(n.config.AuditLog)
	n.must(err)
	for _, words := range [][]string{
		{`"event":"changed"`, `"trace_id":"` + callersTrace + `"`, `"pod":"web"`, `"container":"main"`, `"plugin":"10-quota"`, `"hook":"PreCreateContainer"`, `"field":"container.resources.cpu_quota"`, `"new":"200000"`},
		{`"event":"changed"`, `annotations`, `"trace_id":"` + callersTrace + `"`},
		{`"event":"refused"`, `"plugin":"20-reject"`, `"digest":"`, `"code":"FailedPrecondition"`},
		{`"event":"loaded"`, `"plugin":"10-quota"`, `"digest":"`, `"new":"1.0.0"`},
		{`"event":"settings_changed"`, `"plugin":"10-quota"`, `"digest":"`, `"settings_digest":"`},
		{`"event":"disabled"`, `"plugin":"20-reject"`, `"digest":"`},
		{`"event":"failed"`, `"plugin":"30-trap"`, `"pod":"web"`, `"hook":"PreCreateContainer"`, `"reason":"`},
		{`"event":"bypass_on"`, `"reason":"INC 4711"`},
		{`"event":"bypass_off"`},
	} {
		found := false
		for line := range strings.Lines(string(text)) {
			found = found || containsAll(line, words)
		}
		if !found {
			t.Errorf("no line has %q:\n%s", words, text)
		}
	}
	if strings.Contains(string(text), "hunter2") {
		t.Errorf("the log has a secret:\n%s", text)
	}
	if info, err := os.Stat(n.config.AuditLog); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, error %v", info.Mode(), err)
	}
}
