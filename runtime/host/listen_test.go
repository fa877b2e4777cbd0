package host

import (
	"strings"
	"testing"
)

const otherListen = "unix:///run/wasmproxy/other.sock"

// TestListenChanges: another listen in the settings is kubelet's next endpoint. The former one is not taken for a
// container runtime, wherever the installation ends.
func TestListenChanges(t *testing.T) {
	before := nodes()["kubeadm 1.34, instance configuration"].files
	settings := tree{SettingsFile: "listen: " + otherListen + "\nbackend: " + containerd + "\n"}
	for n := 1; ; n++ {
		h, _ := newHost(t, before)
		h.install(t)
		h.put(SettingsFile, settings[SettingsFile])
		_, err := h.crashAt(n, h.Install, t.Context())
		h.install(t)
		if got, _ := effective(t, h.files(t)); got != otherListen {
			t.Errorf("ended at step %d: kubelet's endpoint is %s", n, got)
		}
		h.uninstall(t)
		h.same(t, before.with(settings))
		if err == nil {
			return
		}
	}
}

// TestListenChangesBack: the socket unit listens at its own path again.
func TestListenChangesBack(t *testing.T) {
	before := nodes()["kubeadm 1.36, CRI-O"].files
	for content, stays := range map[string]bool{"": false, "# edited\n[Socket]\nBacklog=1\n": true} {
		h, _ := newHost(t, before)
		h.install(t)
		if content != "" {
			h.put(listenDropIn, content)
		}
		h.put(SettingsFile, "listen: "+ours+"\nbackend: "+crio+"\n")
		h.install(t)
		if got, has := h.files(t)[listenDropIn]; has != stays || got != content {
			t.Errorf("%s is %q", listenDropIn, got)
		}
		h.put(SettingsFile, "listen: "+crioListen+"\nbackend: "+crio+"\n")
		h.install(t)
		proxySettings(t, h, crio, crioListen, "")
	}
}

// TestListenChangesErrors: whichever step shows that the sockets' unit still has the former path, the error has the
// commands.
func TestListenChangesErrors(t *testing.T) {
	for name, c := range map[string]struct{ script, socket, want string }{
		"the service does not start": {"[ \"$3\" != wasmproxy.service ] || exit 5\n", ours, "enable --now wasmproxy.service: exit status 5"},
		"the proxy does not answer":  {"", "tcp://127.0.0.1:9", "waiting for the proxy to serve on tcp://127.0.0.1:9"}, // an error at once
	} {
		t.Run(name, func(t *testing.T) {
			fakeSystemctl(t, c.script)
			h, _ := newHost(t, nil)
			h.Root = "/"
			err := (&installation{host: h, socket: c.socket}).start(t.Context())
			for _, want := range []string{c.want, "systemctl restart wasmproxy.socket wasmproxy.service"} {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q", err, want)
				}
			}
		})
	}
}

// TestBackendChanged: kubelet's former endpoint is not that of the runtime that has the pods now.
func TestBackendChanged(t *testing.T) {
	before := nodes()["kubeadm 1.34, instance configuration"].files
	h, _ := newHost(t, before)
	h.install(t)
	settings := tree{SettingsFile: "listen: " + ours + "\nbackend: " + crio + "\n"}
	h.put(SettingsFile, settings[SettingsFile])
	h.install(t)
	installed := h.files(t)
	want := "kubelet's endpoint before the installation was " + containerd + ", and backend in " + SettingsFile + " is " + crio
	if err := h.Uninstall(t.Context(), Consent{}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), configFile) || !strings.Contains(err.Error(), instanceConfig) {
		t.Errorf("got %v, want %q", err, want)
	}
	h.same(t, installed)
	byHand := tree{configFile: kubeletConfig(crio), instanceConfig: instance(crio)}
	for path, content := range byHand {
		h.put(path, content)
	}
	h.uninstall(t)
	h.same(t, before.with(byHand).with(settings))
}
