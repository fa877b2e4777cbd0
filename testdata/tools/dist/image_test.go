package dist

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// image: the layout is whole, the program of its layer runs as the image's user, and its SPDX
// document is the program's.
func image(t *testing.T, file string, document []byte) {
	img := readImage(t, file, "localhost/wasmproxy:"+version)
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if c := config.Config; c.User != "65532:65532" || len(c.Entrypoint) != 1 || config.Created.Unix() != 1700000000 {
		t.Errorf("its user is %s, its entrypoint %q, its time %v", c.User, c.Entrypoint, config.Created)
	}
	layers, err := img.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, error %v", len(layers), err)
	}
	root := t.TempDir()
	for dir := root; strings.HasPrefix(dir, os.TempDir()+"/"); dir = filepath.Dir(dir) { // for the image's user
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	unpack := exec.CommandContext(t.Context(), "tar", "-C", root, "-xpf", "-")
	unpack.Stdin = content
	if out, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	run := exec.CommandContext(t.Context(), filepath.Join(root, config.Config.Entrypoint[0]), "version")
	if os.Geteuid() == 0 {
		run.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	}
	if out, err := run.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "wasmproxy v"+version+"\n") {
		t.Errorf("the program prints %q, error %v", out, err)
	}
	for _, command := range []string{"wasmproxy-fleet controller", "wasmproxy-fleet verify", "wasmproxy-fleet-agent", "wasmproxy-fleet-verify"} {
		args := strings.Fields(command)
		fleet := exec.CommandContext(t.Context(), filepath.Join(root, "usr/bin", args[0]), append(args[1:], "--help")...)
		fleet.SysProcAttr = run.SysProcAttr
		if out, err := fleet.CombinedOutput(); err != nil || !strings.Contains(string(out), "Flags:") {
			t.Errorf("%s prints %q, error %v", command, out, err)
		}
	}
	for _, name := range []string{"wasmproxy-fleet", "wasmproxy-fleet-agent"} {
		out, err := exec.CommandContext(t.Context(), filepath.Join(root, "usr/bin", name), "--version").CombinedOutput()
		if err != nil || string(out) != name+" version v"+version+"\n" {
			t.Errorf("%s prints %q, error %v", name, out, err)
		}
	}
	if got, err := os.ReadFile(filepath.Join(root, "usr/share/doc/wasmproxy/wasmproxy.spdx.json")); err != nil || !bytes.Equal(got, document) {
		t.Errorf("its SPDX document is another, error %v", err)
	}
}

// readImage reads the image of this machine's architecture from a layout in a tar file. All
// digests and sizes must be right, and the image must have this name.
func readImage(t *testing.T, file, name string) v1.Image {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "tar", "-C", dir, "-xf", file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	outer, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(outer); err != nil {
		t.Error(err)
	}
	all, err := outer.IndexManifest()
	if err != nil || len(all.Manifests) != 1 || all.Manifests[0].Annotations["io.containerd.image.name"] != name {
		t.Fatalf("the layout has %+v, error %v", all, err)
	}
	index, err := outer.ImageIndex(all.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	images, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range images.Manifests {
		if m.Platform.OS == "linux" && m.Platform.Architecture == runtime.GOARCH {
			img, err := index.Image(m.Digest)
			if err != nil {
				t.Fatal(err)
			}
			return img
		}
	}
	t.Fatalf("no image for %s: %+v", runtime.GOARCH, images)
	return nil
}

// kustomization: the manifests have the name of this release's image.
func kustomization(t *testing.T, file string) {
	for _, name := range []string{"plugins/daemonset.yaml", "node/install.yaml", "fleet/agent.yaml", "fleet/controller.yaml"} {
		out, err := exec.CommandContext(t.Context(), "tar", "-xzOf", file, "wasmproxy-kustomize/"+name).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "image: localhost/wasmproxy:"+version+" ") || strings.Contains(string(out), ":dev") {
			t.Errorf("error %v, %s is\n%s", err, name, out)
		}
	}
}

// chart: Helm reads it, and it has the version and the name of the image of this release.
func chart(t *testing.T, file string) {
	home := t.TempDir()
	helm := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "go", append([]string{"tool", "helm"}, args...)...)
		cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("helm %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	helm("lint", "--strict", file)
	for _, want := range []string{"\nname: wasmproxy-fleet\n", "\nversion: " + version + "\n", "appVersion: " + version + "\n"} {
		if about := "\n" + helm("show", "chart", file); !strings.Contains(about, want) {
			t.Errorf("the chart does not have %q:\n%s", want, about)
		}
	}
	objects := helm("template", "release", file)
	if n := strings.Count(objects, "image: localhost/wasmproxy:"+version+"\n"); n != 2 || strings.Contains(objects, ":dev") {
		t.Errorf("%d pods have the image of this release:\n%s", n, objects)
	}
}
