package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/wasmproxy/wasmproxy/fleet/internal/testcluster"
)

// runProgram runs the agent of a node as the program that a release has, built as it is built there.
func (f *fleet) runProgram(n *node, wasmproxy string) *os.Process {
	f.t.Helper()
	agent := filepath.Join(filepath.Dir(wasmproxy), "wasmproxy-fleet-agent")
	testcluster.Run(f.t, "env", "CGO_ENABLED=0", "go", "build", "-C", "..", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", agent, "./cmd/wasmproxy-fleet-agent")
	kubeconfig := filepath.Join(n.dir, "kubeconfig")
	writeKubeconfig(f.t, kubeconfig, f.s, f.s.Token("wasmproxy-agent", "agent-"+n.name))
	cmd := exec.Command(agent, "--node", n.name, "--kubeconfig", kubeconfig, "--dir", n.plugins(), "--wasmproxy", wasmproxy,
		"--status-socket", filepath.Join(n.dir, "status", "s"), "--config", filepath.Join(n.dir, "wasmproxy.yaml"), "--trust", n.trust(),
		"--plain-http", f.registry, "--fetch-jitter", "10ms", "--poll", "200ms", "--report-every", "200ms", "--metrics-listen", "127.0.0.1:0")
	testcluster.Process(f.t, cmd)
	return cmd.Process
}

// writeKubeconfig writes how to reach the API server with a token.
func writeKubeconfig(t *testing.T, file string, s *testcluster.Server, token string) {
	t.Helper()
	write(t, file, fmt.Appendf(nil, `{"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
		"clusters": [{"name": "c", "cluster": {"server": %q, "insecure-skip-tls-verify": true}}], "users": [{"name": "u", "user": {"token": %q}}]}`,
		s.Config("").Host, token))
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
