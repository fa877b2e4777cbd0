package crifield

import (
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

func containerImage() access {
	return access{
		text: func(o Object) (string, bool) { return imageOf(o.Container.Config.GetImage()), true },
		set: func(o Object, c *plugin.Change) {
			spec := config.make(o)
			spec.Image = withImage(spec.Image, c.Text)
		},
	}
}

// imageOf returns the image as its user wrote it, where the caller says so.
func imageOf(spec *runtimeapi.ImageSpec) string {
	if asked := spec.GetUserSpecifiedImage(); asked != "" {
		return asked
	}
	return spec.GetImage()
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
