package guest

import (
	"context"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/artifact"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// StartPlainNode boots a guest whose kubelet runs pods without wasmproxy, and which can reboot.
// The directory payload is /mnt there.
func StartPlainNode(t testing.TB, b *artifact.Builder, payload string) *Node {
	t.Helper()
	img, err := MakeImage(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	m := Boot(t, img, payload, 2048, "-action", "reboot=reset")
	n := &Node{Machine: m, Kubelet: newKubelet(m)}
	n.ServeImages(t, b)
	n.Run(t, "systemctl enable --now kubelet")
	return n
}

// Reboot reboots a plain node in order. What it wrote to its disk stays.
func (n *Node) Reboot(t testing.TB) {
	t.Helper()
	_, _ = n.run("systemctl reboot") // the connection may end before the answer
	if err := n.ssh.Wait(); err != nil {
		t.Logf("the connection to the guest ended: %v", err)
	}
	n.redial()
	n.Kubelet = newKubelet(n.Machine)
	n.forward(t, node.RegistryAddress, n.registry)
}

// Push puts the images of a layout, which is a tar file, into the registry of the images. The
// runtime pulls them as registry.k8s.io/REPOSITORY.
func (n *Node) Push(t testing.TB, file, repository string) {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "tar", "-C", dir, "-xf", file).CombinedOutput(); err != nil {
		t.Fatalf("unpacking %s: %v\n%s", file, err, out)
	}
	if err := push(t.Context(), dir, n.registry+"/"+repository); err != nil {
		t.Fatalf("pushing %s: %v", file, err)
	}
}

func push(ctx context.Context, dir, to string) error {
	reference, err := name.ParseReference(to, name.Insecure)
	if err != nil {
		return err
	}
	outer, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return err
	}
	all, err := outer.IndexManifest()
	if err != nil {
		return err
	}
	index, err := outer.ImageIndex(all.Manifests[0].Digest)
	if err != nil {
		return err
	}
	return remote.WriteIndex(reference, index, remote.WithContext(ctx))
}

// Release makes the packages and the container image of a release for this machine, by make dist,
// and returns their directory.
func Release(t testing.TB, b *artifact.Builder, version string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "dist")
	cmd := exec.CommandContext(t.Context(), b.ProjectFile("deploy/packages/dist.sh"))
	cmd.Env = append(cmd.Environ(), "ARCHES="+runtime.GOARCH, "OUT="+dir, "VERSION="+version)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("making the release %s: %v\n%s", version, err, out)
	}
	return dir
}
