package host

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestPackagePurge: dpkg's purge leaves no drop-in of a unit, not even an operator's.
func TestPackagePurge(t *testing.T) {
	h, _ := newHost(t, tree{
		"/etc/hostname": "node\n",
		"/etc/systemd/system/wasmproxy.service.d/override.conf": "[Service]\nLimitNOFILE=1\n",
		listenDropIn:                    "[Socket]\n",
		SettingsFile:                    "listen: " + ours + "\n",
		"/var/log/wasmproxy/audit.log":  "{}\n",
		"/var/cache/wasmproxy/x":        "",
		RecordFile:                      "{}",
		"/etc/systemd/system/k.service": "[Service]\n",
	})
	cmd := exec.CommandContext(t.Context(), "sh", "../../deploy/packages/postremove.sh", "purge")
	cmd.Env = append(os.Environ(), "DPKG_ROOT="+string(h.Root))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("error %v: %s", err, out)
	}
	h.same(t, tree{"/etc/hostname": "node\n", "/etc/systemd/system/k.service": "[Service]\n"})
	if _, err := os.Stat(filepath.Join(string(h.Root), "/etc/systemd/system/wasmproxy.service.d")); err == nil {
		t.Error("the directory of drop-ins is left")
	}
}
