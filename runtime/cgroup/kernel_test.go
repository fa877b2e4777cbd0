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
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
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
	for _, file := range heldFiles {
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
		return k.raw("cpu.weight", strconv.Itoa(1+(shares-2)*9999/262142))
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
	err := errors.Join(k.quota(quota), k.Write(k.group, cpuIdle, idle), k.Write(k.group, cpuBurst, burst))
	if err != nil {
		t.Fatal(err)
	}
}

func (k *kernel) want(t *testing.T, idle, burst string) {
	t.Helper()
	for file, want := range map[string]string{cpuIdle: idle, cpuBurst: burst} {
		if got, err := k.Read(k.group, file); err != nil || got != want {
			t.Errorf("%s holds %q, %v; want %q", file, got, err, want)
		}
	}
}

func wantInvalid(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, syscall.EINVAL) {
		t.Errorf("the kernel answered %v, not EINVAL: is holding back still needed?", err)
	}
}

// runc writes the shares it knows at every update, whatever the update names.
func TestKernelTakesSharesOfAnIdleGroup(t *testing.T) {
	k := newKernel(t)
	k.set(t, "1", "0", -1)
	wantInvalid(t, k.shares(256))

	h := must(k.Hold(k.group, Update{}))(t)
	if err := k.shares(256); err != nil {
		t.Error(err)
	}
	if err := h.Restore(true); err != nil {
		t.Fatal(err)
	}
	k.want(t, "1", "0")
	wantForgotten(t, k.FS)
}

func TestKernelTakesQuotaBelowTheBurst(t *testing.T) {
	for _, before := range []int{50000, -1} {
		k := newKernel(t)
		k.set(t, "1", "40000", before)
		wantInvalid(t, k.quota(25000))

		h := must(k.Hold(k.group, Update{Quota: 25000}))(t)
		if err := errors.Join(k.shares(256), k.quota(25000)); err != nil {
			t.Error(err)
		}
		if err := h.Restore(true); err != nil {
			t.Fatal(err)
		}
		k.want(t, "1", "25000")
	}
}

// A burst that the update leaves room for is not touched, and need not be.
func TestKernelTakesQuotaAboveTheBurst(t *testing.T) {
	for _, quota := range []int{40000, 80000, -1} {
		k := newKernel(t)
		k.set(t, "0", "40000", 50000)
		h := must(k.Hold(k.group, Update{Quota: int64(quota)}))(t)
		k.want(t, "0", "40000")
		if err := errors.Join(k.quota(quota), h.Restore(true)); err != nil {
			t.Error(err)
		}
		k.want(t, "0", "40000")
	}
}

func TestKernelRestoresAfterRefusal(t *testing.T) {
	k := newKernel(t)
	k.set(t, "1", "40000", 50000)
	share := k.share(t)
	h := must(k.Hold(k.group, Update{Quota: 25000}))(t)
	if err := h.Restore(false); err != nil {
		t.Fatal(err)
	}
	k.want(t, "1", "40000")
	if got := k.share(t); got != share {
		t.Errorf("share %s, was %s", got, share)
	}
}

// A group that stops being idle gets the default share. Within an update it
// keeps the one that the update brings.
func TestKernelShareWhenIdleEnds(t *testing.T) {
	k := newKernel(t)
	unset := k.share(t)
	if err := k.shares(256); err != nil {
		t.Fatal(err)
	}
	asked := k.share(t)
	k.set(t, "1", "0", -1)
	k.set(t, "0", "0", -1)
	if got := k.share(t); got != unset || got == asked {
		t.Errorf("share after idle %s; want the default %s, not %s: the note at Write is out of date", got, unset, asked)
	}

	k.set(t, "1", "0", -1)
	h := must(k.Hold(k.group, Update{}))(t)
	err := errors.Join(k.shares(256), k.Write(k.group, cpuIdle, "0"), h.Restore(true))
	if err != nil {
		t.Fatal(err)
	}
	k.want(t, "0", "0")
	if got := k.share(t); got != asked {
		t.Errorf("share %s, want %s", got, asked)
	}
}

func TestKernelGroupGoes(t *testing.T) {
	k := newKernel(t)
	k.set(t, "1", "40000", 50000)
	h := must(k.Hold(k.group, Update{}))(t)
	if err := os.Remove(k.dir("cpu")); err != nil {
		t.Fatal(err)
	}
	if err := h.Restore(true); err != nil {
		t.Error(err)
	}
	if err := must(k.Hold(k.group, Update{}))(t).Restore(true); err != nil {
		t.Error(err)
	}
	wantCode(t, k.Write(k.group, cpuIdle, "1"), abi.NotFound)
	wantForgotten(t, k.FS)
}

func TestKernelErrors(t *testing.T) {
	k := newKernel(t)
	k.set(t, "0", "0", 50000)
	wantCode(t, k.Write(k.group, cpuBurst, "50001"), abi.Invalid)
	wantCode(t, k.Write(k.group, cpuBurst, "50000"), abi.OK)
	wantCode(t, k.Write("/", cpuIdle, "1"), abi.Invalid)
	wantCode(t, k.Write(k.group+"/none", cpuIdle, "1"), abi.NotFound)
	if _, err := os.Stat(filepath.Join(k.dir("cpu"), "cpu.bvt_warp_ns")); errors.Is(err, os.ErrNotExist) {
		wantCode(t, k.Write(k.group, "cpu.bvt_warp_ns", "2"), abi.Unsupported)
	}
}

func TestKernelMemoryHigh(t *testing.T) {
	k := newKernel(t)
	err := k.Write(k.group, "memory.high", " 0104857600\n")
	if k.Version() == 1 {
		wantCode(t, err, abi.Unsupported)
		return
	}
	if got, readErr := k.Read(k.group, "memory.high"); err != nil || got != "104857600" {
		t.Errorf("holds %q, %v, %v", got, err, readErr)
	}
}

// Many updates of one group at once: none meets an idle group or a burst, and
// after the last both are as they were.
func TestKernelHammer(t *testing.T) {
	k := newKernel(t)
	k.set(t, "1", "40000", 50000)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 200 {
				h, err := k.Hold(k.group, Update{})
				if err == nil && n%3 != 0 {
					err = errors.Join(k.shares(100+n), k.quota(41000+1000*i))
				}
				if err := errors.Join(err, h.Restore(n%3 != 0)); err != nil {
					t.Errorf("update %d of %d: %v", n, i, err)
					return
				}
			}
		})
	}
	wg.Wait()
	k.want(t, "1", "40000")
	wantForgotten(t, k.FS)
}

// BenchmarkKernelHold is what a resource update pays: for a group with nothing
// to hold back, and for an idle one with a burst.
func BenchmarkKernelHold(b *testing.B) {
	for _, idle := range []string{"0", "1"} {
		b.Run("idle="+idle, func(b *testing.B) {
			k := newKernel(b)
			k.set(b, idle, map[string]string{"0": "0", "1": "40000"}[idle], 50000)
			for b.Loop() {
				h, err := k.Hold(k.group, Update{Quota: 25000})
				if err := errors.Join(err, h.Restore(false)); err != nil {
					b.Fatal(err)
				}
			}
		})
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
	var s Stats
	for deadline := time.Now().Add(10 * time.Second); s.Throttled == 0 && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		s = must(k.Stats(k.group))(t)
	}
	if s.CPU == 0 || s.Periods == 0 || s.ThrottledCount == 0 || s.Throttled == 0 || s.Memory == 0 || s.PIDs == 0 || s.MemoryLimit != 1<<64-1 {
		t.Errorf("got %+v, want all of a busy throttled group, and no memory limit", s)
	}
	_, err := k.Stats(k.group + "/none")
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
