package node

import (
	"context"
	"path/filepath"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/artifact"
)

func crio() Kind { return crioWith("crio", artifact.ClampedRunc, (*artifact.Builder).CRIO) }

// crioCrun is CRI-O with crun, its default. It is for the virtual machine: crun gives no OOM score that needs more than
// the rights of a container.
func crioCrun() Kind { return crioWith("crio-crun", "crun", (*artifact.Builder).CRIOCrun) }

func crioWith(id, ociRuntime string, install func(*artifact.Builder, context.Context, string) error) Kind {
	return Kind{
		ID: id, Name: "cri-o", Version: "1.36.",
		// kubelet and its cAdvisor expect CRI-O at a path that ends so.
		Endpoint: "unix:///run/crio/crio.sock", ProxyEndpoint: "unix:///run/wasmproxy/run/crio/crio.sock",
		cgroupPrefix: "crio-", scopePrefix: "crio-",
		NoHandlerInList: true,
		NoEnv:           true, // it adds variables of its own
		install:         install,
		configure: func(dir string) error {
			return writeConfigs(dir, ociRuntime, map[string]string{
				"crio.conf": "crio.conf", "registries.conf": "registries.conf", "policy.json": "policy.json",
			})
		},
		parts: []part{{program: "crio", args: func(dir string) []string {
			return []string{"--config", filepath.Join(dir, "crio.conf"), "--config-dir", "", "--registries-conf", filepath.Join(dir, "registries.conf"), "--registries-conf-dir", filepath.Join(dir, "registries.conf.d")}
		}}},
		state: []string{"/run/crio", "/run/containers", "/var/lib/containers", "/var/lib/crio", "/var/log/crio"},
	}
}
