package host

import (
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/deploy/systemd"
)

// TestRuntimeOrder: systemd starts the proxy after the runtime of this node and no other one, and before the unit that
// starts kubelet. The order follows backend, and goes with the proxy.
func TestRuntimeOrder(t *testing.T) {
	if unit := systemd.Service(); !strings.Contains(unit, "\nAfter=wasmproxy.socket dbus.service\n") || strings.Count(unit, "After=") != 1 {
		t.Errorf("the unit has another order:\n%s", unit)
	}
	const other = "unix:///run/other.sock"
	for endpoint, after := range map[string]string{
		containerd: "After=containerd.service\n", crio: "After=crio.service\n", "unix:///var/run/cri-dockerd.sock": "After=cri-docker.service\n", other: "",
	} {
		before := tree{configFile: kubeletConfig(endpoint)}
		h, _ := newHost(t, before)
		h.install(t)
		text, has := h.files(t)[runtimeDropIn]
		if has != (after != "") || has && !strings.HasSuffix(text, "\n[Unit]\n"+after) {
			t.Errorf("%s: the drop-in is %q", endpoint, text)
		}
		h.put(SettingsFile, "listen: "+h.listens(t)+"\nbackend: "+other+"\n")
		h.install(t)
		if text, has := h.files(t)[runtimeDropIn]; has {
			t.Errorf("%s: with another backend the drop-in is %q", endpoint, text)
		}
		h, _ = newHost(t, before)
		h.install(t)
		h.uninstall(t)
		h.same(t, before)
	}
	h, _ := newHost(t, tree{"/etc/systemd/system/rke2-agent.service": "[Service]\nExecStart=/usr/bin/rke2 agent\n"})
	h.Backend = other
	h.install(t)
	if text := h.files(t)[runtimeDropIn]; !strings.HasSuffix(text, "\n[Unit]\nBefore=rke2-agent.service\n") {
		t.Errorf("with RKE2 the drop-in is %q", text)
	}
}

// listens returns the proxy's endpoint.
func (h *Host) listens(t *testing.T) string {
	t.Helper()
	r, err := loadRecord(h.Root)
	if err != nil {
		t.Fatal(err)
	}
	return r.Listen
}
