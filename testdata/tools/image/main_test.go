package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// TestIndex: the image of each architecture has that architecture's program.
func TestIndex(t *testing.T) {
	t.Chdir("..") // as dist.sh runs it
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	dir := t.TempDir()
	var files []string
	for _, arch := range []string{"amd64", "arm64"} {
		for _, name := range []string{"wasmproxy", "wasmproxy-fleet"} {
			file := filepath.Join(dir, name+"-linux-"+arch)
			for _, path := range []string{file, file + ".spdx.json"} {
				if err := os.WriteFile(path, []byte(name+" "+arch), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			files = append(files, file)
		}
	}
	if err := run(append([]string{"registry.example:5000/a/wasmproxy:1.2.3", filepath.Join(dir, "image.tar")}, files...)); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "tar", "-C", dir, "-xf", filepath.Join(dir, "image.tar")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	outer, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(outer); err != nil {
		t.Fatal(err)
	}
	names, err := outer.IndexManifest()
	if err != nil || names.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "1.2.3" {
		t.Fatalf("the layout has %+v, error %v", names, err)
	}
	index, err := outer.ImageIndex(names.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	images, err := index.IndexManifest()
	if err != nil || len(images.Manifests) != 2 {
		t.Fatalf("the index has %+v, error %v", images, err)
	}
	for i, arch := range []string{"amd64", "arm64"} {
		m := images.Manifests[i]
		img, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := img.ConfigFile()
		if err != nil || m.Platform.Architecture != arch || config.Architecture != arch {
			t.Errorf("image %d is for %s, its configuration for %s, error %v", i, m.Platform.Architecture, config.Architecture, err)
		}
		layers, err := img.Layers()
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"wasmproxy", "wasmproxy-fleet"} {
			content, err := layers[0].Uncompressed()
			if err != nil {
				t.Fatal(err)
			}
			read := exec.CommandContext(t.Context(), "tar", "-xOf", "-", "usr/bin/"+name, "usr/share/doc/wasmproxy/"+name+".spdx.json")
			read.Stdin = content
			if out, err := read.CombinedOutput(); err != nil || string(out) != strings.Repeat(name+" "+arch, 2) {
				t.Errorf("%s for %s and its document are %q, error %v", name, arch, out, err)
			}
		}
		if entry := config.Config.Entrypoint; len(entry) != 1 || entry[0] != "/usr/bin/wasmproxy" {
			t.Errorf("the image for %s runs %q", arch, entry)
		}
	}
}
