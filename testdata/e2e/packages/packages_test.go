// Package packages_test is `make e2e-packages`: a node of Debian with systemd, in a virtual
// machine, on which a real dpkg installs, upgrades and purges the .deb packages of make dist. Then
// the pods of deploy/kustomize install the proxy and take it back.
package packages_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/artifact"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/guest"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/settings"
)

// The releases: a second one replaces the first.
const oldVersion, newVersion = "1.0.0", "1.0.1"

// host is a node with a pod that no part may restart.
type host struct {
	*guest.Node
	pod *core.Pod
	id  string // of its container
}

// TestPackages boots one guest for all. Its parts build on each other, so the first that fails
// ends it.
func TestPackages(t *testing.T) {
	b, err := artifact.NewBuilder(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	payload := t.TempDir()
	var images []string
	for _, version := range []string{oldVersion, newVersion} {
		dist := guest.Release(t, b, version)
		images = append(images, filepath.Join(dist, "wasmproxy-image.tar"))
		copyFile(t, filepath.Join(dist, "wasmproxy_"+version+"_amd64.deb"), payload)
	}
	copyFile(t, b.ProjectFile("plugins-wasm/qos/qos.wasm"), payload)
	h := &host{Node: guest.StartPlainNode(t, b, payload), pod: settings.Pod(t)}
	h.Push(t, images[1], "wasmproxy:"+newVersion)
	h.pod.Name = "witness"
	h.Apply(t, h.pod)
	h.id = guest.ContainerID(t, h.AwaitReady(t, h.pod), "main")
	for _, part := range []struct {
		name string
		test func(*host, *testing.T)
	}{
		{"package", (*host).testPackage},
		{"install", (*host).testInstall},
		{"restart", (*host).testRestart},
		{"upgrade", (*host).testUpgrade},
		{"reboot", (*host).testReboot},
		{"reboot with a bad file", (*host).testBadFile},
		{"purge", (*host).testPurge},
		{"daemonset", (*host).testDaemonSet},
		{"uninstall by daemonset", (*host).testUninstall},
	} {
		start := time.Now()
		if !t.Run(part.name, func(t *testing.T) { part.test(h, t) }) {
			return
		}
		t.Logf("%s: %.0f s", part.name, time.Since(start).Seconds())
	}
}

func copyFile(t *testing.T, file, dir string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, filepath.Base(file)), content, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// prints runs commands, and compares what they print.
func (h *host) prints(t *testing.T, want map[string]string) {
	t.Helper()
	for command, text := range want {
		if got := h.Run(t, command); got != text {
			t.Errorf("%s prints %q, want %q", command, got, text)
		}
	}
}

// says runs a command, which must print this text.
func (h *host) says(t *testing.T, command, text string) {
	t.Helper()
	if out := h.Run(t, command); !strings.Contains(out, text) {
		t.Errorf("%s does not print %q:\n%s", command, text, out)
	}
}

// throughProxy requires that kubelet is a client of the proxy, whose version is this one, and that
// the pod's container is the one from before.
func (h *host) throughProxy(t *testing.T, version string) {
	t.Helper()
	h.prints(t, map[string]string{
		"systemctl is-active wasmproxy.socket wasmproxy.service kubelet": "active\nactive\nactive",
		"grep ^containerRuntimeEndpoint: /var/lib/kubelet/config.yaml":   "containerRuntimeEndpoint: unix://" + guest.ProxySocket,
	})
	h.Await(t, "wasmproxy status | grep -q '^ *peers .*kubelet (PID'")
	var status struct{ Version string }
	if err := json.Unmarshal([]byte(h.Run(t, "wasmproxy status -o json")), &status); err != nil || status.Version != "v"+version {
		t.Errorf("the proxy that serves is %s, want v%s, error %v", status.Version, version, err)
	}
	h.sameContainer(t)
}

func (h *host) sameContainer(t *testing.T) {
	t.Helper()
	if id := guest.ContainerID(t, h.AwaitReady(t, h.pod), "main"); id != h.id {
		t.Errorf("the pod's container is %s, and was %s", id, h.id)
	}
}

// onRuntime requires that kubelet uses the runtime's socket, and that nothing of the proxy's is
// left but these files.
func (h *host) onRuntime(t *testing.T, left string) {
	t.Helper()
	h.prints(t, map[string]string{
		"grep ^containerRuntimeEndpoint: /var/lib/kubelet/config.yaml": "containerRuntimeEndpoint: unix://" + guest.ContainerdSocket,
		"systemctl is-active kubelet":                                  "active",
		"systemctl list-unit-files --no-legend 'wasmproxy*'; true":     "",
		"pidof wasmproxy; true":                                        "",
		"find / /run -xdev -path '*wasmproxy*' -not -path '/var/lib/kubelet/*' -not -path '/var/log/pods/*' -not -path '/var/log/containers/*' -not -path '/var/lib/containerd/*' | sort": left,
	})
	h.sameContainer(t)
}
