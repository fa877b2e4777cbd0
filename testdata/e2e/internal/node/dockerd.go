package node

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/artifact"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/image"
)

// dockerd is Debian's Docker Engine behind cri-dockerd. Its containerd is a
// process of its own, as Debian has it, and stays when Docker is restarted.
func dockerd() Kind {
	const (
		docker     = "unix:///run/docker.sock"
		criDockerd = "unix:///run/cri-dockerd.sock"
		registry   = "http://" + RegistryAddress
	)
	return Kind{
		ID: "dockerd", Name: "docker", Version: "20.10.",
		Endpoint: criDockerd, ProxyEndpoint: "unix:///run/wasmproxy/wasmproxy.sock",
		NoRuntimeHandlers: true, NoEnv: true, NoResources: true,
		install: (*artifact.Builder).Docker,
		configure: func(dir string) error {
			return writeConfigs(dir, map[string]string{containerdConfig: "containerd-of-docker.toml", "daemon.json": "daemon.json"})
		},
		parts: []part{
			{program: "containerd", args: containerdArgs, answers: answersAt("/run/containerd/containerd.sock"), stays: true},
			{
				program: "dockerd", answers: dockerAnswers,
				args: func(dir string) []string { return []string{"--config-file", filepath.Join(dir, "daemon.json")} },
				// It has no setting that redirects the images' registries.
				env: []string{"HTTP_PROXY=" + registry, "HTTPS_PROXY=" + registry},
			},
			{program: "cri-dockerd", args: func(dir string) []string {
				return []string{
					"--container-runtime-endpoint", criDockerd, "--docker-endpoint", docker,
					"--network-plugin", "cni", "--cni-conf-dir", filepath.Join(dir, "cni"), "--cni-bin-dir", "/usr/lib/cni",
					"--cni-cache-dir", "/var/lib/cni/cache", "--pod-infra-container-image", image.Pause,
				}
			}},
		},
		state: []string{
			"/run/docker", "/run/containerd", "/run/cri-dockerd", "/var/lib/docker", "/var/lib/containerd", "/var/lib/cri-dockerd", "/var/lib/dockershim",
		},
		cgroups: []string{"docker"},
	}
}

// answersAt asks for a connection.
func answersAt(socket string) func(context.Context) error {
	return func(ctx context.Context) error {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
		if err == nil {
			conn.Close()
		}
		return err
	}
}

func dockerAnswers(ctx context.Context) error {
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", "/run/docker.sock")
		},
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://docker/_ping", nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("docker answers %s", resp.Status)
	}
	return nil
}
