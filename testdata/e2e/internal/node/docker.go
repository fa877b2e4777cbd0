package node

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/artifact"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/isolation"
)

// docker is Debian's Docker Engine itself, which wasmproxy serves in Docker mode.
func docker() Kind {
	kind := dockerd()
	kind.ID, kind.Endpoint, kind.ProxyEndpoint = "docker", dockerSocket, "unix:///run/wasmproxy/docker.sock"
	kind.install, kind.parts = (*artifact.Builder).Docker, kind.parts[:2]
	kind.program, kind.mode, kind.answers, kind.clear = "wasmproxy-race", "docker", dockerAnswers, removeContainers
	return kind
}

// Docker returns a command of Docker's client for the Engine at an endpoint.
func Docker(ctx context.Context, endpoint string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, isolation.Current().Program("docker"), append([]string{"--host", endpoint}, args...)...)
}

// StartDockerKubelet starts the last kubelet with dockershim, on the Engine at an endpoint, as StartKubelet
// does. It says that it does not know some keys of its configuration, and goes on.
func (r *Runtime) StartDockerKubelet(t testing.TB, endpoint string) *Kubelet {
	t.Helper()
	return StartKubelet(t, "", nil, append([]string{"--container-runtime=docker"}, dockershimFlags(r.config, endpoint)...)...)
}

// dockerAnswers asks an Engine, and through wasmproxy the one behind it.
func dockerAnswers(ctx context.Context, endpoint string) error {
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", strings.TrimPrefix(endpoint, "unix://"))
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

// removeContainers removes every container of the Engine.
func removeContainers(ctx context.Context) error {
	ids, err := Docker(ctx, dockerSocket, "ps", "--all", "--quiet").Output()
	if err != nil || len(ids) == 0 {
		return err
	}
	return Docker(ctx, dockerSocket, append([]string{"rm", "--force"}, strings.Fields(string(ids))...)...).Run()
}
