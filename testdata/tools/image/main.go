// Command image makes the container image of a release, without Docker: an OCI image layout in
// one tar file, with an image for each architecture.
//
//	image NAME:TAG OUT.tar PROGRAM [PROGRAM]
//
// A PROGRAM is a file PROGRAM-linux-ARCH, with its SPDX document beside it, which the image
// gets, too. Programs of one ARCH are in one image, which runs the first of them. Two runs give the same bytes: SOURCE_DATE_EPOCH is the time of everything.
package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	// nobody is the user unless a pod asks for another, as in other images without a system.
	nobody    = "65532:65532"
	programs  = "usr/bin"
	documents = "usr/share/doc/wasmproxy"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 3 {
		return errors.New("usage: image NAME:TAG OUT.tar PROGRAM [PROGRAM]")
	}
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	created := time.Unix(seconds, 0).UTC()
	index, err := indexOf(args[0], args[2:], created)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "wasmproxy-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	to, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	// containerd takes the name from the first, other tools the tag from the second.
	names := layout.WithAnnotations(map[string]string{"io.containerd.image.name": args[0], "org.opencontainers.image.ref.name": tag(args[0])})
	if err := to.AppendIndex(index, names); err != nil {
		return err
	}
	return archive(dir, args[1], created)
}

func tag(name string) string { return name[strings.LastIndex(name, ":")+1:] }

// indexOf makes an image of the programs of each architecture, and the index that has them.
func indexOf(name string, files []string, created time.Time) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	byArch := map[string][]string{}
	for _, file := range files {
		arch := file[strings.LastIndex(file, "-")+1:]
		byArch[arch] = append(byArch[arch], file)
	}
	for _, arch := range slices.Sorted(maps.Keys(byArch)) {
		img, err := imageOf(byArch[arch], arch, tag(name), created)
		if err != nil {
			return nil, fmt.Errorf("making the image for %s: %w", arch, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}})
	}
	return index, nil
}

func imageOf(files []string, arch, version string, created time.Time) (v1.Image, error) {
	layer, err := layerOf(files, created)
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err := mutate.Append(base, mutate.Addendum{Layer: layer, MediaType: types.OCILayer, History: v1.History{Created: v1.Time{Time: created}, CreatedBy: "make dist"}})
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", arch, v1.Time{Time: created}
	config.Config = v1.Config{
		User: nobody, Entrypoint: []string{"/" + programs + "/" + programOf(files[0])}, Cmd: []string{"--help"}, Env: []string{"PATH=/usr/bin"},
		Labels: map[string]string{
			"org.opencontainers.image.title": "wasmproxy", "org.opencontainers.image.version": version,
			"org.opencontainers.image.licenses": "Apache-2.0", "org.opencontainers.image.source": "https://github.com/wasmproxy/wasmproxy",
		},
	}
	return mutate.ConfigFile(img, config)
}

// programOf is the name of the program in a file.
func programOf(file string) string {
	name, _, _ := strings.Cut(filepath.Base(file), "-linux-")
	return name
}

// layerOf has the programs, their license and their SPDX documents, and no system around them.
func layerOf(programFiles []string, created time.Time) (v1.Layer, error) {
	var content bytes.Buffer
	w := tar.NewWriter(&content)
	for _, dir := range []string{"usr", "usr/bin", "usr/share", "usr/share/doc", documents} {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: created}); err != nil {
			return nil, err
		}
	}
	type file struct {
		name, from string
		mode       int64
	}
	files := []file{{documents + "/copyright", "../../LICENSE", 0o644}}
	for _, from := range programFiles {
		name := programOf(from)
		files = append(files, file{programs + "/" + name, from, 0o755}, file{documents + "/" + name + ".spdx.json", from + ".spdx.json", 0o644})
	}
	for _, f := range files {
		b, err := os.ReadFile(f.from)
		if err != nil {
			return nil, err
		}
		if err := add(w, f.name, b, f.mode, created); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithCompressionLevel(9), tarball.WithMediaType(types.OCILayer))
}

func add(w *tar.Writer, name string, content []byte, mode int64, created time.Time) error {
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content)), ModTime: created}); err != nil {
		return err
	}
	_, err := w.Write(content)
	return err
}

// archive writes the files of a directory to a tar file, in the order of their names.
func archive(dir, to string, created time.Time) error {
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	w := tar.NewWriter(f)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return add(w, strings.TrimPrefix(path, dir+"/"), b, 0o644, created)
	})
	return errors.Join(err, w.Close(), f.Close())
}
