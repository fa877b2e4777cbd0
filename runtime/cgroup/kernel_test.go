package cgroup

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
	"github.com/wasmproxy/wasmproxy/runtime/dialect"
)

const mount = "/sys/fs/cgroup"

// kernel is a group of this machine's own, made for one test. It writes the
// files that a container runtime writes, as runc does.
type kernel struct {
	*FS
	group string
}

// newKernel needs root and the cpu controller with its burst and idle files. A
// machine without them skips the test and says what it lacks; CI, and root on
// a machine with the controller, fail instead.
func newKernel(t testing.TB) *kernel {
	t.Helper()
	f, err := Open(mount, "auto")
	if err != nil {
		lack(t, os.Getuid() == 0, err)
	}
	t.Cleanup(func() { f.Close() })
	if os.Getuid() != 0 {
		lack(t, false, errors.New("root is needed to make a cgroup"))
	}
	k := &kernel{f, fmt.Sprintf("/wasmproxy-test-%d-%d", os.Getpid(), rand.Uint32())}
	if err := os.Mkdir(k.dir("cpu"), 0o755); err != nil {
		lack(t, true, err)
	}
	t.Cleanup(func() {
		if err := os.Remove(k.dir("cpu")); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	})
	for _, file := range suspendedFiles {
		if _, err := k.Read(k.group, file); err != nil {
			lack(t, true, err)
		}
	}
	return k
}

func lack(t testing.TB, expected bool, err error) {
	t.Helper()
	if expected || os.Getenv("CI") == "true" {
		t.Fatal(err)
	}
	t.Skip(err)
}

// dir is the group's directory in a v1 hierarchy, or in v2 its only one.
func (k *kernel) dir(controller string) string {
	if k.Version() == 2 {
		controller = ""
	}
	return filepath.Join(mount, controller, k.group)
}

func (k *kernel) raw(name, value string) error {
	return os.WriteFile(filepath.Join(k.dir("cpu"), name), []byte(value), 0)
}

// shares writes CPU shares; v2 takes their weight.
func (k *kernel) shares(shares int) error {
	if k.Version() == 2 {
		return k.raw("cpu.weight", strconv.FormatUint(dialect.Weight(uint64(shares)), 10))
	}
	return k.raw("cpu.shares", strconv.Itoa(shares))
}

// share reads back what shares wrote; it is the kernel's default at 1024.
func (k *kernel) share(t *testing.T) string {
	t.Helper()
	name := map[int]string{1: "cpu.shares", 2: "cpu.weight"}[k.Version()]
	b := must(os.ReadFile(filepath.Join(k.dir("cpu"), name)))(t)
	return strings.TrimSpace(string(b))
}

// quota writes a quota in µs, -1 for none, with the period of 100 ms.
func (k *kernel) quota(quota int) error {
	if k.Version() == 1 {
		return k.raw("cpu.cfs_quota_us", strconv.Itoa(quota))
	}
	return k.raw("cpu.max", strings.Replace(fmt.Sprintf("%d 100000", quota), "-1 ", "max ", 1))
}

// set gives the group its idle and burst under a quota.
func (k *kernel) set(t testing.TB, idle, burst string, quota int) {
	t.Helper()
	err := errors.Join(k.quota(quota), k.Write(t.Context(), k.group, rules.CPUIdle, idle), k.Write(t.Context(), k.group, rules.CPUBurst, burst))
	if err != nil {
		t.Fatal(err)
	}
}

func (k *kernel) want(t *testing.T, idle, burst string) {
	t.Helper()
	for file, want := range map[string]string{rules.CPUIdle: idle, rules.CPUBurst: burst} {
		if got, err := k.Read(k.group, file); err != nil || got != want {
			t.Errorf("%s holds %q, %v; want %q", file, got, err, want)
		}
	}
}

func TestKernelErrors(t *testing.T) {
	k := newKernel(t)
	k.set(t, "0", "0", 50000)
	wantCode(t, k.Write(t.Context(), k.group, rules.CPUBurst, "50001"), abi.Invalid)
	wantCode(t, k.Write(t.Context(), k.group, rules.CPUBurst, "50000"), abi.OK)
	wantCode(t, k.Write(t.Context(), "/", rules.CPUIdle, "1"), abi.Invalid)
	wantCode(t, k.Write(t.Context(), k.group+"/none", rules.CPUIdle, "1"), abi.NotFound)
	if _, err := os.Stat(filepath.Join(k.dir("cpu"), "cpu.bvt_warp_ns")); errors.Is(err, os.ErrNotExist) {
		wantCode(t, k.Write(t.Context(), k.group, "cpu.bvt_warp_ns", "2"), abi.Unsupported)
	}
}

func TestKernelMemoryHigh(t *testing.T) {
	k := newKernel(t)
	err := k.Write(t.Context(), k.group, "memory.high", " 0104857600\n")
	if k.Version() == 1 {
		wantCode(t, err, abi.Unsupported)
		return
	}
	if got, readErr := k.Read(k.group, "memory.high"); err != nil || got != "104857600" {
		t.Errorf("holds %q, %v, %v", got, err, readErr)
	}
}

func TestKernelStats(t *testing.T) {
	k := newKernel(t)
	for _, controller := range []string{"cpuacct", "memory", "pids"} {
		if err := os.Mkdir(k.dir(controller), 0o755); err == nil {
			t.Cleanup(func() { os.Remove(k.dir(controller)) })
		} else if !errors.Is(err, os.ErrExist) {
			t.Fatal(err)
		}
	}
	if err := k.quota(20000); err != nil {
		t.Fatal(err)
	}
	busy(t, k)
	counts := map[string]int64{}
	for deadline := time.Now().Add(time.Minute); counts["throttled_usec"] == 0 && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		for line := range strings.Lines(must(k.Read(k.group, "cpu.stat"))(t)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			counts[name] = must(strconv.ParseInt(value, 10, 64))(t)
		}
	}
	for _, name := range []string{"usage_usec", "nr_periods", "nr_throttled", "throttled_usec"} {
		if counts[name] == 0 {
			t.Errorf("%s is 0 in %v of a busy throttled group", name, counts)
		}
	}
	for _, file := range []string{"memory.current", "pids.current"} {
		if got := must(k.Read(k.group, file))(t); got == "0" {
			t.Errorf("%s of a busy group is 0", file)
		}
	}
	if got := must(k.Read(k.group, "memory.max"))(t); got != "max" {
		t.Errorf("memory.max of a group without a limit is %q", got)
	}
	_, err := k.Read(k.group+"/none", "cpu.stat")
	wantCode(t, err, abi.NotFound)
}

// busy runs a process that uses CPU in the group until the test ends.
func busy(t *testing.T, k *kernel) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "read go; exec sh -c 'while :; do :; done'")
	stdin := must(cmd.StdinPipe())(t)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Wait() }) // the context has ended by then
	dirs := []string{k.dir("cpu"), k.dir("cpuacct"), k.dir("memory"), k.dir("pids")}
	for _, dir := range slices.Compact(dirs) {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)), 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
}

// The kernel's own files are read as v2 has them, whichever version it is.
func TestReadFromTheKernel(t *testing.T) {
	k := newKernel(t)
	for _, controller := range []string{"cpuacct", "memory", "pids"} { // on v1, where they are mounted apart
		if err := os.Mkdir(k.dir(controller), 0o755); err == nil {
			t.Cleanup(func() { os.Remove(k.dir(controller)) })
		} else if !errors.Is(err, os.ErrExist) {
			lack(t, true, err)
		}
	}
	if err := k.shares(512); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"cpu.weight": "59", "cpu.max": "max 100000", "cpu.idle": "0", "memory.current": "0", "memory.max": "max", "pids.current": "0", "pids.max": "max",
	} {
		got, err := k.Read(k.group, file)
		if !k.controls(t, file) {
			if !errors.Is(err, abi.Unsupported) {
				t.Errorf("%s without its controller: %q, %v", file, got, err)
			}
			continue
		}
		if got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", file, got, err, want)
		}
	}
	stat, err := k.Read(k.group, "cpu.stat")
	if err != nil || !strings.HasPrefix(stat, "usage_usec ") || !strings.Contains(stat, "\nnr_throttled 0\n") {
		t.Errorf("cpu.stat: %q, %v", stat, err)
	}
}

// controls reports whether the group has the controller of a file: on v2 its
// parent must give it.
func (k *kernel) controls(t *testing.T, file string) bool {
	if k.Version() == 1 {
		return true
	}
	given := must(os.ReadFile(filepath.Join(mount, "cgroup.subtree_control")))(t)
	controller, _, _ := strings.Cut(file, ".")
	return slices.Contains(strings.Fields(string(given)), controller)
}
