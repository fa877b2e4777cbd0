// Package nrihost_test runs the second host of the plugin ABI, which is an NRI plugin, in a real containerd without
// wasmproxy before it, with modules that were built for wasmproxy.
package nrihost_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/artifact"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/cgroupfs"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/isolation"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

func TestMain(m *testing.M) { node.Main(m, hostAndModule) }

func hostAndModule(ctx context.Context, b *artifact.Builder, w isolation.Workspace) error {
	return errors.Join(
		b.NRIHost(ctx, w.Bin()),
		os.Symlink(b.ProjectFile("testdata/wat/quota.wasm"), w.Program("quota.wasm")), // qos.wasm is there
	)
}

// TestConformance has the host pass the core of the kit.
func TestConformance(t *testing.T) {
	w := isolation.Current()
	kit := exec.CommandContext(t.Context(), w.Program("wasmproxy"), "abi", "test", "--timeout", "1m", w.Program("nri-host"), "--conformance")
	out, err := kit.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// TestQuota has a module set the CPU quota of a container, and its annotation, through NRI.
func TestQuota(t *testing.T) {
	runtime := node.StartRuntime(t)
	client := node.DialCRI(t, runtime.Endpoint)
	startHost(t, "quota.wasm")
	id := client.RunContainer(t, node.Workload{Name: "quota", Resources: &cri.LinuxContainerResources{CpuPeriod: 100000, CpuQuota: 50000}})
	group, err := cgroupfs.Find(runtime.CgroupName(id))
	if err != nil {
		t.Fatal(err)
	}
	if err := cgroupfs.Check(group, "cpu/cpu.cfs_quota_us", "200000"); err != nil {
		t.Error(err)
	}
}

// TestBundledPlugin has the bundled plugin qos, as it is committed, set a CPU burst through NRI. The host has neither Synchronize nor
// other pods, so the operator leaves the plugin two hooks.
func TestBundledPlugin(t *testing.T) {
	runtime := node.StartRuntime(t)
	client := node.DialCRI(t, runtime.Endpoint)
	startHost(t, "qos.wasm", "--hooks", "PreCreateContainer,PreUpdateContainerResources")
	id := client.RunContainer(t, node.Workload{
		Name: "burst", Annotations: map[string]string{"qos.wasmproxy.io/cpu-burst": "20000"},
		Resources: &cri.LinuxContainerResources{CpuPeriod: 100000, CpuQuota: 50000},
	})
	group, err := cgroupfs.Find(runtime.CgroupName(id))
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"cpu/cpu.cfs_burst_us": "20000", "cpu/cpu.cfs_quota_us": "50000"} {
		if err := cgroupfs.Check(group, file, want); err != nil {
			t.Error(err)
		}
	}
}

// startHost starts the host with a module, and waits until NRI has taken it.
func startHost(t *testing.T, module string, flags ...string) {
	t.Helper()
	w := isolation.Current()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	host := exec.CommandContext(t.Context(), w.Program("nri-host"), append(flags, w.Program(module))...)
	host.Stderr = log
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		host.Wait() // which the test's context has killed
		if text, err := os.ReadFile(log.Name()); t.Failed() && err == nil {
			t.Logf("%s", text)
		}
	})
	node.Eventually(t, time.Minute, "NRI takes the host", func() error {
		text, err := os.ReadFile(log.Name())
		if err == nil && !strings.Contains(string(text), "serving 1 modules") {
			err = fmt.Errorf("it says %s", text)
		}
		return err
	})
}
