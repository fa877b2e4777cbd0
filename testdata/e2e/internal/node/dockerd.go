package node

import (
	"context"
	"net"
	"path/filepath"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/artifact"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/image"
)

const dockerSocket = "unix:///run/docker.sock"

// dockerd is Debian's Docker Engine behind cri-dockerd. Its containerd is a
// process of its own, as Debian has it, and stays when Docker is restarted.
func dockerd() Kind {
	const (
		criDockerd = "unix:///run/cri-dockerd.sock"
		registry   = "http://" + RegistryAddress
	)
	return Kind{
		ID: "dockerd", Name: "docker", Version: "20.10.",
		Endpoint: criDockerd, ProxyEndpoint: "unix:///run/wasmproxy/wasmproxy.sock",
		NoRuntimeHandlers: true, NoEnv: true, NoResources: true,
		install: (*artifact.Builder).CRIDockerd,
		configure: func(dir string) error {
			return writeConfigs(dir, artifact.ClampedRunc, map[string]string{containerdConfig: "containerd-of-docker.toml", "daemon.json": "daemon.json"})
		},
		parts: []part{
			{program: "containerd", args: containerdArgs, answers: answersAt("/run/containerd/containerd.sock"), stays: true},
			{
				program: "dockerd",
				answers: func(ctx context.Context) error { return dockerAnswers(ctx, dockerSocket) },
				args:    func(dir string) []string { return []string{"--config-file", filepath.Join(dir, "daemon.json")} },
				// It has no setting that redirects the images' registries.
				env: []string{"HTTP_PROXY=" + registry, "HTTPS_PROXY=" + registry},
			},
			{program: "cri-dockerd", args: func(dir string) []string {
				return append([]string{"--container-runtime-endpoint=" + criDockerd}, dockershimFlags(dir, dockerSocket)...)
			}},
		},
		state: []string{
			"/run/docker", "/run/containerd", "/run/cri-dockerd", "/var/lib/docker", "/var/lib/containerd", "/var/lib/cri-dockerd", "/var/lib/dockershim",
		},
		cgroups: []string{"docker"},
	}
}

// dockershimFlags are those that cri-dockerd has kept from the kubelet that it was taken out of. dir has
// what configure wrote.
func dockershimFlags(dir, docker string) []string {
	return []string{
		"--docker-endpoint=" + docker, "--network-plugin=cni", "--cni-conf-dir=" + filepath.Join(dir, "cni"), "--cni-bin-dir=/usr/lib/cni",
		"--cni-cache-dir=/var/lib/cni/cache", "--pod-infra-container-image=" + image.Pause,
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
