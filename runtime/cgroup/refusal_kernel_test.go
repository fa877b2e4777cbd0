package cgroup

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

// refusal is a write that the kernel refuses.
type refusal struct {
	version int // of cgroups; 0: both
	errno   syscall.Errno
	code    abi.Errno
	file    string
	value   string
	prepare func(t *testing.T, f *FS, group string) *FS // returns what writes
}

var refusals = []refusal{
	{0, syscall.EINVAL, abi.Invalid, "cpu.max.burst", "50001", func(t *testing.T, f *FS, group string) *FS {
		return write(t, f, group, "cpu.max", "50000 100000")
	}},
	{0, syscall.ENODEV, abi.NotFound, "io.max", "259:65535 rbps=max wbps=1048576 riops=max wiops=max", nil},
	{0, syscall.ENOENT, abi.NotFound, "pids.max", "7", func(t *testing.T, f *FS, group string) *FS {
		for controller := range f.dirs {
			if err := os.Remove(filepath.Join(f.path, controller, group)); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
		}
		return f
	}},
	{0, syscall.EROFS, abi.Unsupported, "cpu.max", "50000 100000", func(t *testing.T, f *FS, _ string) *FS { return readOnly(t, f) }},
	{0, syscall.ENOSPC, abi.Invalid, "cpuset.cpus", "\n", func(t *testing.T, f *FS, group string) *FS {
		write(t, write(t, f, group, "cpuset.mems", "0"), group, "cpuset.cpus", "0")
		run(t, f, group)
		return f
	}},
	{1, syscall.EBUSY, abi.Invalid, "cpuset.cpus", "0", func(t *testing.T, f *FS, group string) *FS {
		makeGroup(t, filepath.Join(f.path, "cpuset", group, "child"))
		return write(t, write(t, f, group, "cpuset.cpus", "0-1"), group+"/child", "cpuset.cpus", "0-1")
	}},
	{1, syscall.EACCES, abi.Denied, "cpuset.cpus", "0-1", func(t *testing.T, f *FS, group string) *FS {
		makeGroup(t, filepath.Join(f.path, "cpuset", group, "child"))
		return write(t, f, group, "cpuset.cpus", "0")
	}},
}

// What the kernel refuses is an error with the kernel's reason and the code that ABI.md has for it,
// and the file stays as it was.
func TestKernelRefusals(t *testing.T) {
	for _, r := range refusals {
		t.Run(r.errno.Error(), func(t *testing.T) {
			f := must(Open(tableRoots()[0], "auto"))(t)
			t.Cleanup(func() { f.Close() })
			if r.version != 0 && r.version != f.Version() {
				return // the other version takes this value
			}
			group := testGroup(t, f)
			from := f
			if r.prepare != nil {
				from = r.prepare(t, f, group)
			}
			if r.errno == syscall.EACCES { // a child may not exceed its parent
				group += "/child"
			}
			before, _ := f.Read(group, r.file)
			at := from.Group(must(clean(group))(t))
			defer at.Close()
			err := at.put(must(rules.Lookup(r.file))(t), r.value)
			if code := rules.CodeOf(err); code != r.code || !errors.Is(err, r.errno) {
				t.Errorf("the code is %v, the error %v; want %v, %v", code, err, r.code, r.errno)
			}
			if after, _ := f.Read(group, r.file); after != before {
				t.Errorf("it reads %q, and %q before", after, before)
			}
		})
	}
}

// An empty cpuset of a group of v2 cannot come back while the group has processes. It gets its
// parent's list. A group of v1 takes no process before it has a cpuset.
func TestKernelUndoesTheCpusetOfARunningGroup(t *testing.T) {
	f := must(Open(tableRoots()[0], "auto"))(t)
	t.Cleanup(func() { f.Close() })
	group := testGroup(t, f)
	if f.Version() == 1 {
		if err := enter(f, group, os.Getpid()); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("a group of v1 without a cpuset takes a process: %v", err)
		}
		return
	}
	write(t, f, group, "cpuset.cpus", "0")
	run(t, f, group)
	g := f.Group(group)
	defer g.Close()
	if err := g.Restore(t.Context(), "cpuset.cpus", "", ""); err != nil {
		t.Fatal(err)
	}
	want := strings.TrimSpace(string(must(os.ReadFile(filepath.Join(f.path, "cpuset.cpus.effective")))(t)))
	if got := must(f.Read(group, "cpuset.cpus"))(t); got != want || got == "0" {
		t.Errorf("it reads %q, want %q", got, want)
	}
}

func write(t *testing.T, f *FS, group, file, value string) *FS {
	t.Helper()
	if err := f.Write(t.Context(), group, file, value); err != nil {
		t.Fatal(err)
	}
	return f
}

// run runs a process in the group until the test ends.
func run(t *testing.T, f *FS, group string) {
	t.Helper()
	sleep := exec.Command("sleep", "600")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		sleep.Process.Kill()
		sleep.Wait()
	})
	if err := enter(f, group, sleep.Process.Pid); err != nil {
		t.Fatal(err)
	}
}

// enter puts a process into a group, on v1 for its cpuset.
func enter(f *FS, group string, pid int) error {
	controller := map[int]string{1: "cpuset"}[f.Version()]
	return os.WriteFile(filepath.Join(f.path, controller, group, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0)
}

// readOnly returns the FS of a second mount, which is read-only.
func readOnly(t *testing.T, f *FS) *FS {
	t.Helper()
	root := t.TempDir()
	from, to := f.path, root
	if f.Version() == 1 {
		from, to = filepath.Join(f.path, "cpu"), filepath.Join(root, "cpu")
		if err := os.Mkdir(to, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(to, 0); err != nil {
			t.Error(err)
		}
	})
	if err := unix.Mount("", to, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	second := must(Open(root, "auto"))(t)
	t.Cleanup(func() { second.Close() })
	return second
}

// The kernel refuses a quota below the burst, which is cut to it first. If the kernel refuses the
// quota for another reason, the burst comes back.
func TestWriteOfAQuotaCutsTheBurst(t *testing.T) {
	k := newKernel(t)
	k.set(t, "0", "80000", 100_000)
	if err := k.quota(50_000); err == nil {
		t.Fatal("the kernel takes a quota below the burst")
	}
	for _, step := range []struct{ limit, burst string }{{"90000", "80000"}, {"50000 100000", "50000"}, {"max", "50000"}} {
		wantCode(t, k.Write(t.Context(), k.group, rules.CPUMax, step.limit), abi.OK)
		k.want(t, "0", step.burst)
	}
	if k.Version() == 2 { // it does not compare quotas of a parent and a child
		return
	}
	child := k.group + "/child"
	dir := k.dir("cpu") + "/child"
	t.Cleanup(func() { os.Remove(dir) })
	if err := errors.Join(k.quota(50_000), os.Mkdir(dir, 0o755), k.Write(t.Context(), child, rules.CPUBurst, "80000")); err != nil {
		t.Fatal(err)
	}
	wantCode(t, k.Write(t.Context(), child, rules.CPUMax, "60000"), abi.Invalid)
	if got, err := k.Read(child, rules.CPUBurst); err != nil || got != "80000" {
		t.Errorf("after a quota that the kernel refused, the burst is %s, %v", got, err)
	}
}
