package cgroup

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

// statistics are how the files look in a group of a process that has used the CPU, memory and, on v2,
// a disk.
var statistics = map[string]string{
	"cpu.stat": `(?m)^usage_usec [1-9]\d*$`, "memory.stat": `(?m)^anon \d+$`, "memory.events": `(?m)^max \d+$`,
	"memory.current": `^[1-9]\d*$`, "memory.peak": `^[1-9]\d*$`, "memory.swap.current": `^\d+$`,
	"io.stat":      `(?m)^\d+:\d+ rbytes=[1-9]\d* wbytes=\d+ rios=[1-9]\d* wios=\d+`,
	"pids.current": `^[1-9]\d*$`, "pids.peak": `^[1-9]\d*$`, "pids.events": `^max 0$`,
	"cpuset.cpus.effective": `^\d+([-,]\d+)*$`, "cpuset.mems.effective": `^\d+([-,]\d+)*$`,
	"cpu.pressure":    `^some avg10=\d+\.\d+ avg60=\d+\.\d+ avg300=\d+\.\d+ total=\d+`,
	"memory.pressure": `^some avg10=\d+\.\d+ avg60=\d+\.\d+ avg300=\d+\.\d+ total=\d+\nfull avg10=`,
	"io.pressure":     `^some avg10=\d+\.\d+ avg60=\d+\.\d+ avg300=\d+\.\d+ total=\d+\nfull avg10=`,
}

// Each file of the statistics that this kernel has is read. On v2, one that is not read is not there.
func TestKernelStatistics(t *testing.T) {
	all := newKernel(t)
	k := &kernel{all.FS, testGroup(t, all.FS)} // with every controller
	busy(t, k)
	readDisk(t, k)
	shows := func(file string) bool {
		return regexp.MustCompile(statistics[file]).MatchString(must(k.Read(k.group, file))(t))
	}
	for end := time.Now().Add(time.Minute); !(shows("cpu.stat") && shows("memory.current")) && time.Now().Before(end); time.Sleep(time.Millisecond) {
		// the process has not begun
	}
	for i := range rules.Statistics {
		name := rules.Statistics[i].Name
		got, err := k.Read(k.group, name)
		_, statErr := os.Stat(filepath.Join(k.dir("none"), name))
		switch there := k.Version() == 2 && statErr == nil; {
		case errors.Is(err, abi.Unsupported) && !there:
			t.Logf("left out: %v", err)
		case err != nil:
			t.Error(err)
		case k.Version() == 1 && got == "" && (name == "io.stat" || strings.HasPrefix(name, "cpuset.")): // a disk may not be there, and a new group has no cpuset
		case !regexp.MustCompile(statistics[name]).MatchString(got) || statistics[name] == "":
			t.Errorf("%s reads %q, want %s", name, got, statistics[name])
		}
	}
}

// The root group tells of the whole node. What the kernel does not have there is unsupported.
func TestKernelStatisticsOfTheNode(t *testing.T) {
	k := newKernel(t)
	node := k.Node()
	defer node.Close()
	if got, err := node.Read("cpu.stat"); err != nil || !regexp.MustCompile(statistics["cpu.stat"]).MatchString(got) {
		t.Errorf("cpu.stat reads %q, %v", got, err)
	}
	if k.Version() == 2 {
		if got, err := node.Read("cpu.pressure"); err != nil || !regexp.MustCompile(statistics["cpu.pressure"]).MatchString(got) {
			t.Errorf("cpu.pressure reads %q, %v", got, err)
		}
		if got, err := node.Read("pids.max"); !errors.Is(err, abi.Unsupported) {
			t.Errorf("pids.max reads %q, %v", got, err)
		}
	}
}

// readDisk has a process in the group read from a disk, past the cache.
func readDisk(t *testing.T, k *kernel) {
	t.Helper()
	name, err := filepath.EvalSymlinks("/sys/dev/block/" + disk(t))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", "read go; exec dd if=/dev/"+filepath.Base(name)+" of=/dev/null bs=64k count=4 iflag=direct")
	stdin := must(cmd.StdinPipe())(t)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(k.dir("blkio"), "cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)), 0); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(stdin, "\n")
	if err := cmd.Wait(); err != nil && k.Version() == 2 {
		t.Fatalf("reading /dev/%s: %v", filepath.Base(name), err)
	}
}
