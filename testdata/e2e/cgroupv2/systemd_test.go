package cgroupv2_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// unitTests are tests of package cgroup that prove something else on cgroup v2 than on v1, with the
// guest's systemd and kernel.
var unitTests = []string{
	"TestKernelRefusals", "TestKernelUndoesTheCpusetOfARunningGroup",
	"TestSystemdKeepsValuesOverAReload", "TestSystemdPropertyLeavesOOMGroup", "TestSystemdUnitsThatAreNotThere", "TestSystemdRetriesWhatItRefused",
}

// testSystemd runs tests of package cgroup in the guest. kubelet has to end first: it would remove the
// slices of their pods.
func (l *limited) testSystemd(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cgroup.test")
	if err := l.builder.Tests(t.Context(), file, "./runtime/cgroup"); err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	l.WriteFile(t, "/tmp/cgroup.test", program)
	l.Run(t, "systemctl stop kubelet && chmod +x /tmp/cgroup.test")
	for _, name := range unitTests {
		t.Run(name, func(t *testing.T) {
			out := l.Run(t, "cd /tmp && CI=true WASMPROXY_TEST_IN_SYSTEMD=1 ./cgroup.test -test.v -test.run '^"+name+"$'")
			if !strings.Contains(out, "--- PASS: "+name+" ") {
				t.Error(out)
			}
		})
	}
}
