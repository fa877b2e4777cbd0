package node

import (
	"path/filepath"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/artifact"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/image"
)

const containerdID = "containerd"

// containerd is that of the pinned module.
func containerd() Kind {
	return Kind{
		ID: containerdID, Name: "containerd", Version: "v2.4.",
		Endpoint: "unix:///run/containerd/containerd.sock", ProxyEndpoint: "unix:///run/wasmproxy/wasmproxy.sock",
		scopePrefix: "cri-containerd-",
		install:     (*artifact.Builder).Containerd,
		configure:   func(dir string) error { return configureContainerd(dir, "containerd.toml", "runc") },
		parts:       []part{{program: "containerd", args: containerdArgs}},
		state:       []string{"/run/containerd", "/var/lib/containerd"},
		cgroups:     []string{"k8s.io"},
	}
}

// debianContainerd is Debian 12's.
func debianContainerd() Kind {
	kind := containerd()
	kind.ID, kind.Version, kind.NoRuntimeConfig = "containerd-1.6", "1.6.", true
	kind.install = (*artifact.Builder).DebianContainerd
	kind.configure = func(dir string) error { return configureContainerd(dir, "containerd-1.6.toml", "runc") }
	return kind
}

// debianCrun is the same with Debian's crun. Later runtimes ask for a version of the OCI's specification that this one
// does not know.
func debianCrun() Kind {
	kind := debianContainerd()
	kind.ID, kind.Weights = "containerd-1.6-crun", map[string]string{"17": "4", "8": "14", "35": "10"}
	kind.install = (*artifact.Builder).DebianCrun
	kind.configure = func(dir string) error { return configureContainerd(dir, "containerd-1.6.toml", "crun") }
	return kind
}

func configureContainerd(dir, config, ociRuntime string) error {
	files := map[string]string{containerdConfig: config}
	for _, registry := range image.Registries { // where to pull from instead
		files[filepath.Join("certs.d", registry, "hosts.toml")] = "hosts.toml"
	}
	return writeConfigs(dir, ociRuntime, files)
}

const containerdConfig = "containerd.toml"

func containerdArgs(dir string) []string {
	return []string{"--config", filepath.Join(dir, containerdConfig)}
}
