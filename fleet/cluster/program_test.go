package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/wasmproxy/wasmproxy/fleet/internal/testcluster"
)

// buildAgent builds the agent's program as a release has it, beside wasmproxy's.
func buildAgent(t *testing.T, wasmproxy string) (agent string) {
	t.Helper()
	agent = filepath.Join(filepath.Dir(wasmproxy), "wasmproxy-fleet-agent")
	testcluster.Run(t, "env", "CGO_ENABLED=0", "go", "build", "-C", "..", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", agent, "./cmd/wasmproxy-fleet-agent")
	return agent
}

// agentCommand is the agent of a node as a program. Each call makes another one, of the same token.
func (n *node) agentCommand(s *testcluster.Server, agent string) func(context.Context) *exec.Cmd {
	kubeconfig, bin := filepath.Join(n.dir, "kubeconfig"), filepath.Dir(agent)
	s.Kubeconfig(kubeconfig, s.Token("wasmproxy-agent", "agent-"+n.name))
	return func(ctx context.Context) *exec.Cmd {
		return exec.CommandContext(ctx, agent, "--node", n.name, "--kubeconfig", kubeconfig, "--plugin-dir", n.plugins(), "--wasmproxy", filepath.Join(bin, "wasmproxy"),
			"--verifier", filepath.Join(bin, "wasmproxy-fleet-verify"), "--status-socket", n.status(), "--config", filepath.Join(n.dir, "wasmproxy.yaml"),
			"--trust", n.trust(), "--plain-http", n.registry,
			"--fetch-jitter", "10ms", "--poll", "200ms", "--report-every", "200ms", "--metrics-listen", "127.0.0.1:0")
	}
}

// resident is the memory of a process, in KiB.
func resident(t *testing.T, p *os.Process) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Pid))
	if err != nil {
		t.Fatal(err)
	}
	of := regexp.MustCompile(`VmRSS:\s+([0-9]+) kB`).FindSubmatch(status)
	if of == nil {
		t.Fatalf("the process has ended:\n%s", status)
	}
	kib, err := strconv.Atoi(string(of[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kib
}
