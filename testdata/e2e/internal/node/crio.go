package node

import (
	"path/filepath"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/artifact"
)

func crio() Kind {
	return Kind{
		ID: "crio", Name: "cri-o", Version: "1.36.",
		// kubelet and its cAdvisor expect CRI-O at a path that ends so.
		Endpoint: "unix:///run/crio/crio.sock", ProxyEndpoint: "unix:///run/wasmproxy/run/crio/crio.sock",
		cgroupPrefix: "crio-", scopePrefix: "crio-",
		NoHandlerInList: true,
		NoEnv:           true, // it adds variables of its own
		install:         (*artifact.Builder).CRIO,
		configure: func(dir string) error {
			return writeConfigs(dir, artifact.ClampedRunc, map[string]string{
				"crio.conf": "crio.conf", "registries.conf": "registries.conf", "policy.json": "policy.json",
			})
		},
		parts: []part{{program: "crio", args: func(dir string) []string {
			return []string{"--config", filepath.Join(dir, "crio.conf"), "--config-dir", "", "--registries-conf", filepath.Join(dir, "registries.conf"), "--registries-conf-dir", filepath.Join(dir, "registries.conf.d")}
		}}},
		state: []string{"/run/crio", "/run/containers", "/var/lib/containers", "/var/lib/crio", "/var/log/crio"},
	}
}
