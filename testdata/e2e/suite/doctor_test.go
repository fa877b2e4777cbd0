package suite_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// testDoctor: wasmproxy doctor finds nothing on a healthy node, and then what is wrong: kubelet's
// file has the runtime's own endpoint again, and everyone may call the proxy.
func testDoctor(t *testing.T, proxy *node.Proxy, kubelet *node.Kubelet) {
	if found := proxy.Doctor(t); len(found) > 0 {
		t.Errorf("on a healthy node doctor finds %q", found)
	}
	kind := node.RuntimeKind()
	socket := strings.TrimPrefix(kind.ProxyEndpoint, "unix://")
	config, err := os.ReadFile(kubelet.ConfigFile)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(kubelet.ConfigFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(socket, mode); err != nil {
			t.Fatal(err)
		}
	}
	write(strings.ReplaceAll(string(config), kind.ProxyEndpoint, kind.Endpoint), 0o666)
	defer write(string(config), 0o660)
	want := []string{"kubelet-endpoint " + kubelet.ConfigFile, "socket-permissions " + socket}
	if found := proxy.Doctor(t); !slices.Equal(found, want) {
		t.Errorf("doctor finds %q, want %q", found, want)
	}
}
