package crifield

import (
	"cmp"
	"iter"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

func containerImage() access {
	return access{
		text: func(o Object) (string, bool) { return imageOf(o.Container.Config.GetImage()) },
		set: func(o Object, c *plugin.Change) {
			spec := config.make(o)
			spec.Image = withImage(spec.Image, c.Text)
		},
	}
}

// imageOf returns the image as its user wrote it. kubelet asks for an image by the id that the runtime has told before, and
// names it beside that. A caller that gives the id alone has told no name.
func imageOf(spec *runtimeapi.ImageSpec) (name string, told bool) {
	switch image := spec.GetImage(); {
	case spec.GetUserSpecifiedImage() != "":
		return spec.GetUserSpecifiedImage(), true
	case pods.IsImageID(image):
		return "", false
	default:
		return image, true
	}
}

// imageID is the image's id, if the caller has asked for the image by that.
func imageID() access {
	return access{
		text: func(o Object) (string, bool) {
			if image := o.Container.Config.GetImage().GetImage(); pods.IsImageID(image) {
				return image, true
			}
			return "", true
		},
		set: func(o Object, c *plugin.Change) {
			spec := config.make(o)
			if spec.Image == nil {
				spec.Image = &runtimeapi.ImageSpec{}
			}
			spec.Image.UserSpecifiedImage = cmp.Or(spec.Image.UserSpecifiedImage, spec.Image.Image)
			spec.Image.Image = c.Text
		},
	}
}

// imageVolumes are the mounts of images, by their paths in the container.
func imageVolumes() access {
	entries := func(o Object) iter.Seq2[string, string] {
		return func(yield func(string, string) bool) {
			for _, m := range o.Container.Config.GetMounts() {
				if m.GetImage() == nil {
					continue
				}
				if name, _ := imageOf(m.Image); !yield(m.ContainerPath, name) {
					return
				}
			}
		}
	}
	return access{
		entries: entries,
		lookup: func(o Object, key string) (string, bool) {
			for path, name := range entries(o) {
				if path == key {
					return name, true
				}
			}
			return "", false
		},
		size: func(o Object) int { return len(o.Container.Config.GetMounts()) },
		set: func(o Object, c *plugin.Change) {
			mounts := &config.make(o).Mounts
			*mounts = append(*mounts, &runtimeapi.Mount{ContainerPath: c.Key, Image: &runtimeapi.ImageSpec{Image: c.Text}})
		},
	}
}

// withImage makes another image of the spec: the digest that came with the old
// one is not the new one's. Who reads it finds what was set, wherever the caller
// had put it.
func withImage(spec *runtimeapi.ImageSpec, name string) *runtimeapi.ImageSpec {
	if spec == nil {
		spec = &runtimeapi.ImageSpec{}
	}
	if spec.UserSpecifiedImage != "" {
		spec.UserSpecifiedImage = name
	}
	spec.Image, spec.ImageRef = name, ""
	return spec
}

// registryOf tells the host of an image's name as runtimes do: what stands before the
// first slash, if it cannot be part of a path.
func registryOf(image string) string {
	host, _, ok := strings.Cut(image, "/")
	inPath := !strings.ContainsAny(host, ".:") && host != "localhost" && host == strings.ToLower(host)
	if !ok || inPath {
		return "docker.io"
	}
	return host
}
