package image

import (
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// recipe says how an image is made.
type recipe struct {
	config v1.Config
	layers []v1.Layer
	marker string // an empty file that makes the digest differ from that of like images
}

// catalogue is every image of the tests by its full name.
func catalogue(p parts) map[string]recipe {
	const (
		registry = "registry.k8s.io/"
		tests    = "registry.k8s.io/e2e-test-images/"
		criTools = "gcr.io/k8s-staging-cri-tools/"
	)
	shell := v1.Config{Cmd: []string{"sh"}}
	as := func(user string) recipe {
		return recipe{config: v1.Config{Cmd: []string{"sh"}, User: user}, layers: []v1.Layer{p.base}}
	}
	marked := func(marker string) recipe {
		return recipe{config: shell, layers: []v1.Layer{p.base}, marker: marker}
	}
	pause := recipe{config: v1.Config{Entrypoint: []string{"/pause"}, User: "65535:65535"}, layers: []v1.Layer{p.pause}}
	nginx := recipe{config: v1.Config{Entrypoint: []string{"/usr/sbin/nginx"}, ExposedPorts: port80}, layers: []v1.Layer{p.base, p.nginx}}
	hostNginx := nginx
	hostNginx.config = v1.Config{Entrypoint: []string{"/usr/sbin/nginx"}, Env: []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "PORT=12003"}}
	// It sleeps: a command that ended at once would race with the removal of its container.
	sleeping := recipe{config: v1.Config{Cmd: []string{"sleep", "3600"}}, layers: []v1.Layer{p.base}, marker: "test-image-tag"}
	images := map[string]recipe{
		Pause:                                       pause,
		registry + "pause:3.10.1":                   pause,
		registry + "pause:3.10.2":                   pause,
		Busybox:                                     {config: shell, layers: []v1.Layer{p.base}},
		Nginx:                                       nginx,
		Short:                                       marked("short"),
		tests + "httpd:2.4.39-4":                    {config: v1.Config{Cmd: []string{"httpd"}, ExposedPorts: port80}, layers: []v1.Layer{p.base, p.httpd}},
		tests + "nonewprivs:1.3":                    {config: v1.Config{Entrypoint: []string{"/nonewprivs"}}, layers: []v1.Layer{p.base, p.nonewprivs}},
		criTools + "test-image-1":                   marked("test-image-1"),
		criTools + "test-image-2":                   marked("test-image-2"),
		criTools + "test-image-3":                   marked("test-image-3"),
		criTools + "test-image-latest":              marked("test-image-latest"),
		criTools + "test-image-digest":              marked("test-image-digest"),
		criTools + "test-image-tags:1":              marked("test-image-tags"),
		criTools + "test-image-tags:2":              marked("test-image-tags"),
		criTools + "test-image-tags:3":              marked("test-image-tags"),
		criTools + "test-image-tag:test":            sleeping,
		criTools + "test-image-tag:all":             sleeping,
		criTools + "test-image-user-uid":            as("1002"),
		criTools + "test-image-user-username":       as("www-data"),
		criTools + "test-image-user-uid-group":      as("1003:1004"),
		criTools + "test-image-user-username-group": as("www-data:1004"),
		criTools + "test-image-predefined-group":    {config: v1.Config{Cmd: []string{"sh"}, User: "1000"}, layers: []v1.Layer{p.base, p.groups}},
		criTools + "hostnet-nginx-amd64":            hostNginx,
		tests + "busybox:1.37.0-1":                  {config: shell, layers: []v1.Layer{p.base}}, // of Kubernetes 1.36
		tests + "busybox:1.36.1-1":                  {config: shell, layers: []v1.Layer{p.base}}, // of its MemoryQoS
	}
	if p.agnhost != nil { // 1.36 has both
		config := v1.Config{Entrypoint: []string{"/agnhost"}, Cmd: []string{"pause"}}
		agnhost := recipe{config: config, layers: []v1.Layer{p.base, p.agnhost}}
		images[tests+"agnhost:2.55"], images[tests+"agnhost:2.63.0"] = agnhost, agnhost
	}
	return images
}

var port80 = map[string]struct{}{"80/tcp": {}}

// image makes the image.
func (r recipe) image() (v1.Image, error) {
	layers := r.layers
	if r.marker != "" {
		marker, err := layer(file(r.marker, 0o644, nil))
		if err != nil {
			return nil, fmt.Errorf("making the marker %s: %w", r.marker, err)
		}
		layers = append(layers[:len(layers):len(layers)], marker)
	}
	return build(r.config, layers...)
}
