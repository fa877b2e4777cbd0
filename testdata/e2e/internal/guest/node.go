package guest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/artifact"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/image"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// Sockets of the guest.
const (
	ProxySocket      = "/run/wasmproxy/wasmproxy.sock"
	ContainerdSocket = "/run/containerd/containerd.sock"
)

// Node is a guest in which kubelet runs pods through wasmproxy.
type Node struct {
	*Machine
	Kubelet
	Started time.Time // when the machine was started, with all that it runs built
	plugins []Plugin
}

// Plugin is a plugin of wasmproxy.
type Plugin struct {
	Name   string   // which orders it, such as 10-qos
	Dir    string   // of its source, below the project; the tutorial's plugin if empty
	Grant  []string // capabilities beyond those that a plugin has by default
	Match  any      // for pods, in JSON; nil for all
	Config any      // in JSON; nil for none
}

// StartNode boots a guest and installs wasmproxy in it, with these plugins, as
// docs/install.md says.
func StartNode(t testing.TB, b *artifact.Builder, plugins ...Plugin) *Node {
	t.Helper()
	payload := buildPayload(t, b, plugins)
	img, err := MakeImage(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	started := time.Now()
	m := Boot(t, img, payload, 2048)
	n := &Node{Machine: m, Kubelet: newKubelet(m), Started: started, plugins: plugins}
	n.ServeImages(t, b)
	if Driver() == cri.CgroupDriver_CGROUPFS {
		n.Run(t, `sed -i 's/SystemdCgroup = true/SystemdCgroup = false/' /etc/containerd/config.toml
			sed -i 's/^cgroupDriver: systemd/cgroupDriver: cgroupfs/' /var/lib/kubelet/config.yaml
			systemctl restart containerd`)
	}
	n.Run(t, `mkdir -p /etc/wasmproxy/plugins.d && cp /mnt/plugins/* /etc/wasmproxy/plugins.d/
		install -m 0755 /mnt/wasmproxy /opt/ && /opt/wasmproxy host install --yes`)
	n.AwaitProxy(t)
	n.Run(t, "systemctl enable --now kubelet")
	return n
}

// Driver is the cgroup driver of kubelet and containerd: systemd, or cgroupfs if the variable
// E2E_CGROUP_DRIVER says so.
func Driver() cri.CgroupDriver {
	if os.Getenv("E2E_CGROUP_DRIVER") == "cgroupfs" {
		return cri.CgroupDriver_CGROUPFS
	}
	return cri.CgroupDriver_SYSTEMD
}

// buildPayload makes the files that an operator brings to a node.
func buildPayload(t testing.TB, b *artifact.Builder, plugins []Plugin) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := b.Proxy(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "plugins"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, p := range plugins {
		file := filepath.Join(dir, "plugins", p.Name)
		build := func() error { return b.TinyGoPlugin(t.Context(), file+".wasm", p.Dir) }
		if p.Dir == "" {
			build = func() error { return b.NewPlugin(t.Context(), filepath.Join(dir, "wasmproxy"), file+".wasm") }
		}
		if err := build(); err != nil {
			t.Fatal(err)
		}
		description, err := json.Marshal(p.settings())
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, file+".json", description)
	}
	return dir
}

// settings are the plugin's JSON file. A hook may take longer than elsewhere: the guest is slow, and
// the host may be busy.
func (p Plugin) settings() map[string]any {
	all := map[string]any{"grant": p.Grant, "timeout": "20s"}
	if p.Match != nil {
		all["match"] = p.Match
	}
	if p.Config != nil {
		all["config"] = p.Config
	}
	return all
}

func writeFile(t testing.TB, file string, data []byte) {
	t.Helper()
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// ServeImages serves the images to the runtime in the guest, also those of these programs.
func (m *Machine) ServeImages(t testing.TB, b *artifact.Builder, programs ...artifact.Program) {
	t.Helper()
	bin, here := t.TempDir(), freeAddress(t)
	if err := errors.Join(b.ImagePrograms(t.Context(), bin), b.Programs(t.Context(), bin, programs...)); err != nil {
		t.Fatal(err)
	}
	if err := image.Serve(t.Context(), here, bin); err != nil {
		t.Fatal(err)
	}
	m.registry = here
	m.forward(t, node.RegistryAddress, here)
}

// CRI returns a client for a socket of the guest. It is closed with the test.
func (n *Node) CRI(t testing.TB, socket string) node.CRI {
	t.Helper()
	conn := n.dial(t, socket)
	t.Cleanup(func() { conn.Close() })
	return node.CRI{RuntimeServiceClient: cri.NewRuntimeServiceClient(conn), ImageServiceClient: cri.NewImageServiceClient(conn)}
}

func (n *Node) dial(t testing.TB, socket string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost"),
		grpc.WithContextDialer(func(ctx context.Context, socket string) (net.Conn, error) {
			return n.ssh.DialContext(ctx, "unix", socket)
		}))
	if err != nil {
		t.Fatalf("making a CRI client for %s of the guest: %v", socket, err)
	}
	return conn
}

// AwaitProxy waits until wasmproxy answers, and with it the runtime behind it, and
// until all plugins take part: calls pass while plugins are being loaded.
func (n *Node) AwaitProxy(t testing.TB) {
	t.Helper()
	conn := n.dial(t, ProxySocket)
	defer conn.Close() // host uninstall waits until nobody is connected
	client := cri.NewRuntimeServiceClient(conn)
	node.Eventually(t, commandTimeout, "wasmproxy answers in the guest", func() error {
		_, err := client.Version(t.Context(), &cri.VersionRequest{})
		return err
	})
	node.Eventually(t, commandTimeout, "wasmproxy has loaded its plugins", func() error {
		log, err := n.run("journalctl --output=cat --grep='plugins active' _SYSTEMD_INVOCATION_ID=$(systemctl show --property=InvocationID --value wasmproxy)")
		if err != nil {
			return err
		}
		for _, p := range n.plugins {
			if !strings.Contains(lastLines(log, 1), p.Name) {
				return fmt.Errorf("%s is not among them: %s", p.Name, log)
			}
		}
		return nil
	})
}

// KillProxy ends wasmproxy without warning, and waits until systemd has started it again.
func (n *Node) KillProxy(t testing.TB) {
	t.Helper()
	const pid = "systemctl show --property=MainPID --value wasmproxy"
	before := n.Run(t, pid)
	n.Run(t, "kill -KILL "+before)
	node.Eventually(t, commandTimeout, "systemd starts wasmproxy again", func() error {
		if now := n.Run(t, pid); now == before || now == "0" {
			return fmt.Errorf("its process is %s, and was %s", now, before)
		}
		return nil
	})
	n.AwaitProxy(t)
}
