package cgroup

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

// tableRoots are the cgroup mounts whose files the tests of the table write: that which
// WASMPROXY_CGROUP_ROOT names, and cgroup v2 of a hybrid node.
func tableRoots() []string {
	root := cmp.Or(os.Getenv("WASMPROXY_CGROUP_ROOT"), mount)
	if magic, err := fsMagic(filepath.Join(root, "unified")); err == nil && magic != 0 {
		if f, err := Open(filepath.Join(root, "unified"), "v2"); err == nil {
			f.Close()
			return []string{root, filepath.Join(root, "unified")}
		}
	}
	return []string{root}
}

// group is a group in every hierarchy, made for one test. A group of v2 has each controller that the
// mount's root has.
func testGroup(t *testing.T, f *FS) string {
	t.Helper()
	if os.Getuid() != 0 {
		lack(t, false, errors.New("root is needed to make a cgroup"))
	}
	if f.Version() == 2 {
		enable(t, f.path)
	}
	name := fmt.Sprintf("/wasmproxy-table-%d-%d", os.Getpid(), rand.Uint32())
	for controller := range f.dirs {
		makeGroup(t, filepath.Join(f.path, controller, name))
	}
	return name
}

func makeGroup(t *testing.T, dir string) {
	t.Helper()
	if err := os.Mkdir(dir, 0o755); err != nil {
		if errors.Is(err, os.ErrExist) { // v1 controllers that are mounted together
			return
		}
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	})
}

// enable gives the groups below the root of v2 all of its controllers until the test ends.
func enable(t *testing.T, root string) {
	t.Helper()
	all := strings.Fields(string(must(os.ReadFile(filepath.Join(root, "cgroup.controllers")))(t)))
	control := filepath.Join(root, "cgroup.subtree_control")
	enabled := strings.Fields(string(must(os.ReadFile(control))(t)))
	for _, controller := range all {
		if slices.Contains(enabled, controller) || os.WriteFile(control, []byte("+"+controller), 0) != nil {
			continue // one that the kernel does not give, such as an rt-bound cpu, has no files
		}
		t.Cleanup(func() {
			if err := os.WriteFile(control, []byte("-"+controller), 0); err != nil {
				t.Error(err)
			}
		})
	}
}

// disk is MAJOR:MINOR of a disk of this machine.
func disk(t *testing.T) string {
	t.Helper()
	for _, path := range must(filepath.Glob("/sys/block/*/dev"))(t) {
		if !strings.Contains(path, "/zram") && !strings.Contains(path, "/ram") && !strings.Contains(path, "/loop") {
			return strings.TrimSpace(string(must(os.ReadFile(path))(t)))
		}
	}
	t.Fatal("this machine has no disk in /sys/block")
	return ""
}

// tableValues are values for each file of the table, in the order in which they are written.
func tableValues(disk string) map[string][]string {
	const mib = 1 << 20
	bytes := []string{fmt.Sprint(64*mib + 1), fmt.Sprint(32 * mib), "max"}
	return map[string][]string{
		"cpu.weight": {"50", "1", "10000", "100"}, "cpu.weight.nice": {"5", "-20"}, "cpu.idle": {"1", "0"},
		"cpu.max":       {"50000", "200000 200000", "20000 50000", "max", "30000 100000"},
		"cpu.max.burst": {"20000", "0"}, "cpu.uclamp.min": {"12.5", "0"}, "cpu.uclamp.max": {"50", "99.99", "max"}, "cpu.bvt_warp_ns": {"-1", "2"},
		"memory.min": bytes, "memory.low": bytes, "memory.high": bytes, "memory.swap.high": bytes, "memory.zswap.max": bytes,
		"memory.max": {fmt.Sprint(64*mib + 1), fmt.Sprint(128 * mib), fmt.Sprint(32 * mib)}, "memory.swap.max": {fmt.Sprint(16 * mib), "0", "max"},
		"memory.oom.group": {"1", "0"},
		"io.weight":        {"50", "default 200"}, "io.bfq.weight": {"50", "default 1000"},
		"io.max":     {disk + " rbps=1048576", disk + " wiops=100 wbps=2097152", disk + " riops=7\n" + disk + " rbps=max", disk + " rbps=max wbps=max riops=max wiops=max"},
		"io.latency": {disk + " target=75000", disk + " target=max"}, "io.prio.class": {"idle", "restrict-to-be", "no-change"},
		"pids.max": {"100", "max"}, "cpuset.cpus": {"0"}, "cpuset.mems": {"0"},
		"hugetlb.2MB.max": {"4194305", "0", "max"}, "hugetlb.2MB.rsvd.max": {"4194304", "max"},
		"rdma.max": nil, "misc.max": nil, // no file unless the machine has such a device
	}
}

// Every file of the table that this kernel has is written, and reads as the table says; what
// it held comes back. Of one that it lacks the error says which kernel has it.
func TestKernelHasEveryFileOfTheTable(t *testing.T) {
	for _, root := range tableRoots() {
		f := must(Open(root, "auto"))(t)
		t.Cleanup(func() { f.Close() })
		group := testGroup(t, f)
		for name, values := range tableValues(disk(t)) {
			t.Run(fmt.Sprintf("v%d %s", f.Version(), name), func(t *testing.T) { writeAndUndo(t, f, group, name, values) })
		}
		values := tableValues("8:0")
		for i := range rules.Files {
			name := strings.Replace(rules.Files[i].Name, "<size>", "2MB", 1)
			if _, tested := values[name]; !tested {
				t.Errorf("%s is not tested", name)
			}
		}
	}
}

// hasFile reports whether the kernel has the file of a group, by a look at the file system.
func hasFile(t *testing.T, f *FS, group, name string) bool {
	t.Helper()
	x := must(rules.Lookup(name))(t)
	path := filepath.Join(f.path, group, name)
	if f.Version() == 1 {
		if x.V1 == nil {
			return false
		}
		path = v1Path(f, group, x.V1.Names[0])
		if name == "memory.swap.max" {
			path = v1Path(f, group, x.V1.Names[1])
		}
	}
	_, err := os.Stat(path)
	return err == nil
}

func writeAndUndo(t *testing.T, f *FS, group, name string, values []string) {
	x, set := must(rules.Lookup(name))(t), rules.Set(f.Version())
	before, err := f.Read(group, name)
	if !hasFile(t, f, group, name) {
		wantCode(t, err, abi.Unsupported)
		for _, v := range values {
			err := f.Write(t.Context(), group, name, v)
			wantCode(t, err, abi.Unsupported)
			if needs := x.Needs; (f.Version() == 2 || x.V1 == nil) && !strings.Contains(err.Error(), needs) {
				t.Errorf("%v; it does not say %q", err, needs)
			}
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range values {
		held := must(f.Read(group, name))(t)
		if name == "memory.swap.max" && f.Version() == 1 { // limited only with memory
			if err := f.Write(t.Context(), group, "memory.max", "67108864"); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Write(t.Context(), group, name, v); err != nil {
			t.Errorf("%q: %v", v, err)
			continue
		}
		parsed := must(set.Parse(rules.CgroupSet, abi.Container, name, v))(t)
		got := must(f.Read(group, name))(t)
		if !set.Holds(name, parsed, got) {
			t.Errorf("%q on %q reads %q", v, held, got)
		}
	}
	g := f.Group(group)
	defer g.Close()
	if err := g.Restore(t.Context(), name, before, ""); err != nil {
		t.Error(err)
	}
	if got := must(f.Read(group, name))(t); got != before {
		t.Errorf("restored, it reads %q, want %q", got, before)
	}
	if name == "memory.swap.max" && f.Version() == 1 {
		if err := f.Write(t.Context(), group, "memory.max", "max"); err != nil {
			t.Error(err)
		}
	}
}

// A directory for a controller that is not mounted holds no files of cgroups.
func TestKernelControllerThatIsNotMounted(t *testing.T) {
	root := t.TempDir()
	cpu := filepath.Join(mount, "cpu")
	if magic, err := fsMagic(cpu); err != nil || magic != unix.CGROUP_SUPER_MAGIC || os.Getuid() != 0 {
		lack(t, false, errors.New("it takes cgroup v1, and root to mount it"))
	}
	for _, name := range []string{"cpu", "hugetlb"} {
		if err := os.Mkdir(filepath.Join(root, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mount(cpu, filepath.Join(root, "cpu"), "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(filepath.Join(root, "cpu"), 0); err != nil {
			t.Error(err)
		}
	})
	f := must(Open(root, "auto"))(t)
	defer f.Close()
	_, err := f.Read(pod, "hugetlb.2MB.max")
	if wantCode(t, err, abi.Unsupported); !strings.Contains(err.Error(), "the hugetlb controller is not mounted") {
		t.Error(err)
	}
}

// The kernel of v1 refuses a child more CPU than its parent has. A quota and its period are two
// files there, and no order of changes of both meets that refusal in between.
func TestKernelCPUMaxBelowItsParents(t *testing.T) {
	f := must(Open(tableRoots()[0], "auto"))(t)
	t.Cleanup(func() { f.Close() })
	parent := testGroup(t, f)
	group := parent + "/child"
	if f.Version() == 2 {
		enable(t, filepath.Join(f.path, parent))
	}
	for controller := range f.dirs {
		makeGroup(t, filepath.Join(f.path, controller, group))
	}
	if err := f.Write(t.Context(), parent, "cpu.max", "50000 100000"); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		period := 1000 * (4 + random.IntN(900))
		value := fmt.Sprintf("%d %d", period/2-random.IntN(period/4), period)
		if random.IntN(10) == 0 {
			value = fmt.Sprintf("max %d", period)
		}
		if err := f.Write(t.Context(), group, "cpu.max", value); err != nil {
			t.Fatal(err)
		}
		if got := must(f.Read(group, "cpu.max"))(t); got != value {
			t.Fatalf("reads %q, want %q", got, value)
		}
	}
}

// A value that the second of two files of v1 refuses leaves the first as it was.
func TestKernelTakesBackHalfAValue(t *testing.T) {
	f := must(Open(tableRoots()[0], "auto"))(t)
	t.Cleanup(func() { f.Close() })
	group := testGroup(t, f)
	for _, w := range []struct{ file, value string }{{"cpu.max", "50000 100000"}, {"cpu.max.burst", "50000"}} {
		if err := f.Write(t.Context(), group, w.file, w.value); err != nil {
			t.Fatal(err)
		}
	}
	wantCode(t, f.Write(t.Context(), group, "cpu.max", "17592186044415 200000"), abi.Invalid) // too much together with the burst, after the period
	if got := must(f.Read(group, "cpu.max"))(t); got != "50000 100000" {
		t.Errorf("reads %q", got)
	}
}

// A memory limit of v1 keeps the swap that the group may use, up and down.
func TestKernelMemoryMaxKeepsTheSwap(t *testing.T) {
	f := must(Open(tableRoots()[0], "auto"))(t)
	t.Cleanup(func() { f.Close() })
	group := testGroup(t, f)
	if !hasFile(t, f, group, "memory.swap.max") {
		lack(t, false, errors.New("this kernel does not count swap"))
	}
	for _, w := range []struct{ file, value, memory, swap string }{
		{"memory.max", "67108864", "67108864", "max"},
		{"memory.swap.max", "16777216", "67108864", "16777216"},
		{"memory.max", "134217728", "134217728", "16777216"},
		{"memory.max", "33554432", "33554432", "16777216"},
		{"memory.swap.max", "0", "33554432", "0"},
		{"memory.max", "67108864", "67108864", "0"},
	} {
		if err := f.Write(t.Context(), group, w.file, w.value); err != nil {
			t.Fatal(err)
		}
		if memory, swap := must(f.Read(group, "memory.max"))(t), must(f.Read(group, "memory.swap.max"))(t); memory != w.memory || swap != w.swap {
			t.Errorf("after %s %s: memory %s and swap %s, want %s and %s", w.file, w.value, memory, swap, w.memory, w.swap)
		}
	}
}
