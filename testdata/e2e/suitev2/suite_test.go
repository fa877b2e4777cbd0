// Package suitev2_test is `make e2e-v2-suite` and `make e2e-node-v2`: the tests of packages suite and e2enode, in a virtual
// machine with cgroup v2 alone and systemd. They have the machine for themselves, one after another.
package suitev2_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/artifact"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/guest"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/isolation"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// testTimeout is how long a test may take. Most take two minutes on two idle CPUs.
const testTimeout = time.Hour

// specsTimeout is how long both runs of the specs may take.
const specsTimeout = 4 * time.Hour

// lacks are the tests that have nothing to test on some runtimes. No other may skip: the suite would pass without it.
var lacks = map[string]func(node.Kind) bool{
	"TestResize":         func(k node.Kind) bool { return k.NoResources },
	"TestRuntimeClass":   func(k node.Kind) bool { return k.NoRuntimeHandlers },
	"TestRuntimeHandler": func(k node.Kind) bool { return k.NoRuntimeHandlers },
}

func TestSuite(t *testing.T) {
	payload := build(t, "./suite", node.Whole()...)
	tests := list(t, filepath.Join(payload, program))
	m, environment := boot(t, payload, 4096)
	for _, test := range tests {
		t.Run(test, func(t *testing.T) {
			out, err := m.RunFor(testTimeout, nil, environment+" ./"+program+" -test.v -test.timeout=0 -test.skip='"+elsewhere+"' -test.run='^"+test+"$' 2>&1")
			switch {
			case err != nil:
				t.Error(err)
				logged, err := m.RunFor(time.Minute, nil, "cd /e2e/log-"+node.RuntimeKind().ID+" && grep --no-messages --invert-match '\"route\":\"passed\"' "+test+"-wasmproxy*.log | tail --bytes=60000")
				t.Logf("what the proxies have logged, without the calls that pass (%v):\n%s", err, logged)
			case lacks[test] != nil && lacks[test](node.RuntimeKind()) && strings.Contains(out, "--- SKIP: "+test+" "):
				t.Skip(out)
			case strings.Contains(out, "--- SKIP: "):
				t.Errorf("a test skips in the machine:\n%s", out)
			case !strings.Contains(out, "--- PASS: "+test+" "):
				t.Error(out)
			default:
				t.Log(out)
			}
		})
	}
}

// elsewhere is a test that needs git, which the machine lacks, and no cgroup.
const elsewhere = "^TestResize$/^none$/^manifests$"

// TestE2ENode runs specs of Kubernetes' own suite. FOCUS and SKIP choose them, as they do for `make e2e-node`.
func TestE2ENode(t *testing.T) {
	payload := build(t, "./e2enode", node.Programs(append(artifact.E2ENode(), artifact.Kubelet())...), node.Bundled("audit", "default-annotations", "memory-qos"))
	m, environment := boot(t, payload, 6144, artifact.E2ENode()...)
	m.WriteFile(t, "/usr/local/bin/sudo", []byte("#!/bin/sh\nexec \"$@\"\n")) // with it the specs restart kubelet
	m.Run(t, "chmod +x /usr/local/bin/sudo")
	out, err := m.RunFor(specsTimeout, nil, environment+" FOCUS='"+os.Getenv("FOCUS")+"' SKIP='"+os.Getenv("SKIP")+"' ./"+program+" -test.v -test.timeout=0 2>&1")
	if err != nil {
		t.Error(err)
		logged, err := m.RunFor(time.Minute, nil, "tail --bytes=60000 /e2e/log-"+node.RuntimeKind().ID+"/*-ginkgo.log")
		t.Logf("what the specs have logged (%v):\n%s", err, logged)
		return
	}
	t.Log(out)
}

// boot boots the machine, whose images have these programs, too. A command line that runs the program begins with environment.
func boot(t *testing.T, payload string, memory int, programs ...artifact.Program) (m *guest.Machine, environment string) {
	t.Helper()
	builder, err := artifact.NewBuilder(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	image, err := guest.MakeImage(t.Context(), builder)
	if err != nil {
		t.Fatal(err)
	}
	m = guest.Boot(t, image, payload, memory)
	m.ServeImages(t, builder, programs...)
	workspace := "/e2e/run-" + node.RuntimeKind().ID
	m.Run(t, `set -e
		systemctl stop containerd
		modprobe -a bfq overlay
		dd if=/dev/zero of=/swap bs=1M count=64 status=none
		chmod 600 /swap && mkswap /swap >/dev/null && swapon /swap # for TestSwap
		echo nameserver 127.0.0.1 > /etc/resolv.conf # containerd wants the file
		test /var/run -ef /run || { mkdir -p /var/run; mount --bind /run /var/run; } # where kubelet's cAdvisor looks for CRI-O
		ip link add node0 type bridge
		ip address add `+isolation.NodeAddress+`/24 dev node0
		ip link set node0 up
		mkdir -p `+workspace+`/tmp /e2e/log-`+node.RuntimeKind().ID+`
		ln -s /mnt/bin `+workspace+`/bin`)
	environment = strings.Join(append(isolation.OwnMachine(workspace), "TMPDIR="+workspace+"/tmp", node.SlownessVariable+"=10",
		node.CgroupDriverVariable+"="+strings.ToLower(guest.Driver().String()), "E2E_RUNTIME="+node.RuntimeKind().ID), " ")
	return m, "cd /mnt && " + environment
}

// program is that of the tests.
const program = "suite.test"

// build makes the files of the machine: programs, plugins and the tests of a package.
func build(t *testing.T, pkg string, parts ...node.Part) (payload string) {
	t.Helper()
	builder, err := artifact.NewBuilder(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	links := isolation.Workspace{Dir: t.TempDir()}
	if err := os.Mkdir(links.Bin(), 0o755); err != nil {
		t.Fatal(err)
	}
	unlock, err := isolation.LockCache(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if err := node.Prepare(t.Context(), builder, links, parts...); err != nil {
		t.Fatal(err)
	}
	payload = t.TempDir()
	if err := builder.OwnTests(t.Context(), filepath.Join(payload, program), pkg); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cp", "--recursive", "--dereference", links.Bin(), payload).CombinedOutput(); err != nil {
		t.Fatalf("copying the programs: %v: %s", err, out)
	}
	return payload
}

// list returns the names of the suite's tests.
func list(t *testing.T, file string) []string {
	t.Helper()
	cmd := exec.Command(file, "-test.list=.")
	cmd.Env = append(os.Environ(), isolation.OwnMachine(t.TempDir())...)
	out, err := cmd.Output()
	tests := strings.Fields(string(out))
	if err != nil || len(tests) == 0 {
		t.Fatalf("the suite has no tests: %s (%v)", out, err)
	}
	return tests
}
