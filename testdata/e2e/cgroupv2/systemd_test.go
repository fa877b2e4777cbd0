package cgroupv2_test

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// unitTests are tests that prove something else on cgroup v2 than on v1, with the guest's systemd and
// kernel, by package.
var unitTests = []struct {
	pkg   string
	names []string
}{
	{"./runtime/cgroup", []string{
		"TestKernelRefusals", "TestKernelUndoesTheCpusetOfARunningGroup",
		"TestKernelStats", "TestKernelStatistics", "TestReadFromTheKernel", "TestKernelHasEveryFileOfTheTable",
		"TestSystemdKeepsValuesOverAReload", "TestSystemdPropertyLeavesOOMGroup", "TestSystemdRoundsQuotas", "TestSystemdUnitsThatAreNotThere", "TestSystemdRetriesWhatItRefused",
	}},
	{"./runtime/intercept", []string{"TestAnySequenceOnTheKernel"}},
}

// testSystemd runs tests of units in the guest. kubelet has to end first: it would remove the
// slices of their pods.
func (l *limited) testSystemd(t *testing.T) {
	l.Run(t, "systemctl stop kubelet && echo +cpu +memory +pids > /sys/fs/cgroup/cgroup.subtree_control")
	for _, of := range unitTests {
		file := filepath.Join(t.TempDir(), path.Base(of.pkg)+".test")
		if err := l.builder.Tests(t.Context(), file, of.pkg); err != nil {
			t.Fatal(err)
		}
		program, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		inGuest := "/tmp/" + filepath.Base(file)
		l.WriteFile(t, inGuest, program)
		l.Run(t, "chmod +x "+inGuest)
		for _, name := range of.names {
			t.Run(name, func(t *testing.T) {
				out := l.Run(t, "cd /tmp && CI=true WASMPROXY_TEST_IN_SYSTEMD=1 "+inGuest+" -test.v -test.run '^"+name+"$'")
				if !strings.Contains(out, "--- PASS: "+name+" ") {
					t.Error(out)
				}
			})
		}
	}
}
