package dockermode_test

import (
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// pod is what dockershim would have made.
type pod struct{ sandbox, container string } // ids

// runPod runs a pod of one container as dockershim does, with Docker's client, which sets the same fields.
// Its annotations have the plugin setter give the container a quota.
func runPod(t *testing.T, endpoint, name string) (p pod) {
	t.Helper()
	uid := "uid-" + name
	common := []string{
		"run", "--detach", "--cgroup-parent", "/kubepods/burstable/pod" + uid,
		"--label", "io.kubernetes.pod.name=" + name, "--label", "io.kubernetes.pod.namespace=default", "--label", "io.kubernetes.pod.uid=" + uid,
	}
	p.sandbox = docker(t, endpoint, append(common,
		"--name", "k8s_POD_"+name+"_default_"+uid+"_0", "--network", "none", "--label", "io.kubernetes.docker.type=podsandbox",
		"--label", "io.kubernetes.container.name=POD", "--label", "annotation.set.wasmproxy.io/main.field.cpu_quota=30000",
		"busybox", "sleep", "1000")...)
	p.container = docker(t, endpoint, append(common,
		"--name", "k8s_main_"+name+"_default_"+uid+"_0", "--network", "container:"+p.sandbox, "--label", "io.kubernetes.docker.type=container",
		"--label", "io.kubernetes.container.name=main", "--label", "io.kubernetes.sandbox.id="+p.sandbox,
		"--env", "GREETING=hello", "--env", "NOTHING=", "--env", "PATH=/bin", "--cpu-period", "100000", "--cpu-quota", "50000", "--cpu-shares", "512", "--memory", "64m", "--memory-swap", "64m",
		"busybox", "sleep", "1000")...)
	return p
}

// docker runs a command of Docker's client, which must succeed, and returns its output.
func docker(t *testing.T, endpoint string, args ...string) string {
	t.Helper()
	out, err := node.Docker(t.Context(), endpoint, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("docker %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}
