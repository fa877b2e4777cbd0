package e2enode_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/isolation"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/specs"
)

// suite is the program of the specs. It starts etcd, an API server and kubelet itself.
const suite = "e2e_node.test"

// system is what the suite demands of a machine before it starts, in the place of its list of kernel options and packages:
// the options of a running kernel cannot always be read.
const system = `{"os": "Linux", "kernelSpec": {"versions": [".*"]}}`

// flags are of kubelet. The suite has it move all processes of the root cgroup to another one, once a minute. That takes
// a container that is just being started out of its own cgroup, and its specs fail.
const flags = "--node-ip=" + isolation.NodeAddress + " --system-cgroups="

// procs is how many specs run at a time: a spec waits most of its time, such as for a command in a container of 20 milliCPU.
// On a machine of its own, the specs that change the node come one after another, and an emulated one is slow.
func procs() string {
	if isolation.OnOwnMachine() {
		return "1"
	}
	return "16"
}

// run runs specs of the suite.
func run(t *testing.T, endpoint string, c chosen) specs.Results {
	t.Helper()
	hideSystemd(t)
	start, w := time.Now(), isolation.Current()
	reports := filepath.Join(w.Log, strings.NewReplacer("/", "-", " ", "-").Replace(t.Name()))
	dir := t.TempDir() // where ginkgo starts the suite, and the suite writes its files
	program, spec := filepath.Join(dir, suite), filepath.Join(dir, "system.json")
	if err := errors.Join(os.Symlink(w.Program(suite), program), os.WriteFile(spec, []byte(system), 0o644)); err != nil {
		t.Fatalf("preparing the suite: %v", err)
	}
	config := node.ConfigureKubelet(t, t.TempDir(), endpoint, func(c *kubeletconfig.KubeletConfiguration) {
		c.CgroupRoot = "/"
		c.Address = "0.0.0.0" // for the API server
	})
	cmd := node.KubeletCommand("ginkgo", "--procs="+procs(), "--timeout=10h", "--no-color", "--focus="+c.focus, "--skip="+c.skip, program, "--",
		"--container-runtime-endpoint="+endpoint, "--node-name="+node.NodeName, "--prepull-images=false",
		"--k8s-bin-dir="+w.Bin(), "--kubelet-config-file="+config, "--kubelet-flags="+flags,
		"--server-start-timeout="+node.Slowly(2*time.Minute).String(), "--system-spec-file="+spec, "--report-dir="+reports)
	log, failure := node.Run(t, "ginkgo", cmd) // it fails when a spec does; the report says which
	got, err := specs.Read(filepath.Join(reports, "junit_01.xml"))
	if err != nil {
		t.Fatalf("%v; the suite ended with %v, its output is in %s, and logs of kubelet and the API server in %s", err, failure, log, reports)
	}
	t.Logf("%d passed, %d failed, %d skipped in %.0f s; output in %s, logs in %s", got.Count(specs.Passed), got.Count(specs.Failed),
		got.Count(specs.Skipped), time.Since(start).Seconds(), log, reports)
	return got
}

// hideSystemd has the suite start kubelet as its own process, in which it gets the run's namespaces. The machine may
// have the program that it would start it by else, but no systemd is in these namespaces. A machine of the run's own has one.
func hideSystemd(t *testing.T) {
	t.Helper()
	program, err := exec.LookPath("systemd-run")
	if err != nil || isolation.OnOwnMachine() {
		return
	}
	if err := unix.Mount(os.DevNull, program, "", unix.MS_BIND, ""); err != nil {
		t.Fatalf("hiding %s: %v", program, err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(program, unix.MNT_DETACH); err != nil {
			t.Errorf("showing %s again: %v", program, err)
		}
	})
}
