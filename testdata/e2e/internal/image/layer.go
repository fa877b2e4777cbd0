package image

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// epoch is the time of all files and images, so that digests stay the same.
var epoch = time.Unix(1700000000, 0)

// entry is a file, directory or hard link of a layer.
type entry struct {
	header tar.Header
	data   []byte
}

func directory(name string, mode int64) entry {
	return entry{header: tar.Header{Name: name + "/", Typeflag: tar.TypeDir, Mode: mode}}
}

func file(name string, mode int64, data []byte) entry {
	return entry{header: tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: mode, Size: int64(len(data))}, data: data}
}

func hardLink(name, target string) entry {
	return entry{header: tar.Header{Name: name, Typeflag: tar.TypeLink, Linkname: target, Mode: 0o755}}
}

func ownedBy(uid int, e entry) entry {
	e.header.Uid, e.header.Gid = uid, uid
	return e
}

// layer makes an image layer of the entries, in their order.
func layer(entries ...entry) (v1.Layer, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, e := range entries {
		e.header.ModTime = epoch
		if err := w.WriteHeader(&e.header); err != nil {
			return nil, fmt.Errorf("adding %s to a layer: %w", e.header.Name, err)
		}
		if _, err := w.Write(e.data); err != nil {
			return nil, fmt.Errorf("adding %s to a layer: %w", e.header.Name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("closing a layer: %w", err)
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(buf.Bytes())), nil
	})
}

// build makes an image with this configuration; PATH is set unless the configuration has an environment.
func build(config v1.Config, layers ...v1.Layer) (v1.Image, error) {
	img, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		return nil, fmt.Errorf("adding layers to an image: %w", err)
	}
	file, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading an image's configuration: %w", err)
	}
	file = file.DeepCopy()
	file.Architecture, file.OS, file.Created = "amd64", "linux", v1.Time{Time: epoch}
	if config.Env == nil {
		config.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	}
	file.Config = config
	return mutate.ConfigFile(img, file)
}
