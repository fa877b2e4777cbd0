package dockermode_test

import (
	"testing"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/cgroupfs"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// expectLifted has the plugin setter take the limit of memory from containers, and give them a quota of a
// hundred CPUs. The Engine refuses the limit -1, and --cpus above the CPUs of the node.
func expectLifted(t *testing.T, engine *node.Runtime) {
	t.Helper()
	sandbox := docker(t, engine.ProxyEndpoint, "run", "--detach", "--name", "k8s_POD_lifted_default_uid-lifted_0", "--network", "none",
		"--label", "io.kubernetes.docker.type=podsandbox", "--label", "annotation.set.wasmproxy.io/main.field.memory_limit=-1",
		"--label", "annotation.set.wasmproxy.io/main.field.cpu_quota=10000000", "busybox", "sleep", "1000")
	run := func(endpoint, attempt string) string {
		return docker(t, endpoint, "run", "--detach", "--name", "k8s_main_lifted_default_uid-lifted_"+attempt, "--network", "none",
			"--label", "io.kubernetes.docker.type=container", "--label", "io.kubernetes.sandbox.id="+sandbox,
			"--cpus", "0.5", "--memory", "64m", "--memory-swap", "64m", "busybox", "sleep", "1000")
	}
	expect := func(when, container, file, want string) {
		t.Helper()
		group, err := cgroupfs.Find(container)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := cgroupfs.Read(group, file); got != want {
			t.Errorf("%s %s is %s, want %s (%v)", when, file, got, want, err)
		}
	}
	const unlimited = "9223372036854771712"
	made := run(engine.ProxyEndpoint, "0")
	expect("after the creation", made, "memory/memory.limit_in_bytes", unlimited)
	expect("after the creation", made, "cpu/cpu.cfs_quota_us", "10000000")

	docker(t, engine.Endpoint, "update", "--memory", "32m", "--memory-swap", "32m", made)
	expect("after an update without wasmproxy", made, "memory/memory.limit_in_bytes", "33554432")
	old := run(engine.Endpoint, "1")
	cpus := docker(t, engine.Endpoint, "info", "--format", "{{.NCPU}}00000")
	for _, container := range []string{made, old} {
		docker(t, engine.ProxyEndpoint, "update", "--cpu-shares", "300", container)
		expect("after an update", container, "memory/memory.limit_in_bytes", unlimited)
	}
	expect("after an update", old, "cpu/cpu.cfs_quota_us", cpus)
	docker(t, engine.Endpoint, "rm", "--force", made, old, sandbox)
}
