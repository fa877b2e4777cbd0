package wasm

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// TestTable holds the implementations against the ABI's table.
func TestTable(t *testing.T) {
	for _, row := range abi.Functions {
		f := hostFunctions[abi.Module][row.Name]
		if f.run == nil {
			t.Errorf("%s has no implementation", row.Name)
		}
		if len(f.Params) != len(row.Params) || (len(f.Results) != 0) != (row.Result != 0) {
			t.Errorf("%s has type %s", row.Name, f.signature)
		}
		for i, p := range row.Params {
			if want := map[abi.ValueType]api.ValueType{abi.I32: api.ValueTypeI32, abi.I64: api.ValueTypeI64}[p.Type]; f.Params[i] != want {
				t.Errorf("%s has type %s", row.Name, f.signature)
			}
		}
	}
	if len(implementations) != len(abi.Functions) {
		t.Errorf("%d functions are implemented, the table has %d", len(implementations), len(abi.Functions))
	}
}

// TestWASITable holds our WASI against wazero's: every function, with its type.
func TestWASITable(t *testing.T) {
	ctx := t.Context()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer r.Close(ctx)
	theirs, err := wasi_snapshot_preview1.NewBuilder(r).Compile(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range theirs.ExportedFunctions() {
		ours, ok := hostFunctions[wasiModule][name]
		if !ok {
			t.Errorf("%s is missing", name)
		}
		if want := (signature{Params: string(f.ParamTypes()), Results: string(f.ResultTypes())}); ours.signature != want {
			t.Errorf("%s has type %s, want %s", name, ours.signature, want)
		}
	}
	if len(hostFunctions[wasiModule]) != len(theirs.ExportedFunctions()) {
		t.Errorf("we have %d functions, wazero %d", len(hostFunctions[wasiModule]), len(theirs.ExportedFunctions()))
	}
}

// caller calls host functions from functions.wat, which hands its arguments on.
type caller struct {
	*testing.T
	g *guest
	c *call
}

func newCaller(t *testing.T, ev plugin.Event, o PluginOptions) *caller {
	return newCallerOf(t, newEngine(t, Options{}), ev, o)
}

func newCallerOf(t *testing.T, e *Engine, ev plugin.Event, o PluginOptions) *caller {
	p := load(t, e, "functions", o).(*guests)
	g, err := p.instantiate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.close)
	var adj *plugin.Adjustment
	if ev != nil {
		adj = (&plugin.Member{Capabilities: abi.AllCapabilities}).NewAdjustment(ev, 2)
	}
	made := g.newCall(t.Context(), "test", nil, ev, adj)
	made.meter.begin()
	return &caller{t, g, made}
}

// at is where arguments are put, and buffer where results are asked for.
const (
	arguments = 0x1000
	buffer    = 0x8000
)

// try calls a host function. A string among the arguments becomes a pointer and a
// length.
func (c *caller) try(name string, args ...any) (int64, error) {
	c.Helper()
	var stack []uint64
	next := uint32(arguments)
	for _, a := range args {
		switch a := a.(type) {
		case string:
			c.g.instance.Memory().WriteString(next, a)
			stack = append(stack, uint64(next), uint64(len(a)))
			next += uint32(len(a))
		case int:
			stack = append(stack, uint64(int64(a)))
		case int64:
			stack = append(stack, uint64(a))
		case abi.Object:
			stack = append(stack, uint64(a))
		case abi.Feature:
			stack = append(stack, uint64(a))
		case abi.Field:
			stack = append(stack, uint64(a))
		}
	}
	f := c.g.instance.ExportedFunction(name)
	results, err := f.Call(c.g.during(c.Context(), c.c), stack...)
	if err != nil || len(results) == 0 {
		return 0, err
	}
	if f.Definition().ResultTypes()[0] == api.ValueTypeI64 {
		return int64(results[0]), nil
	}
	return int64(api.DecodeI32(results[0])), nil
}

// want calls a host function that is to answer this.
func (c *caller) want(want int64, name string, args ...any) {
	c.Helper()
	if got, err := c.try(name, args...); err != nil || got != want {
		c.Errorf("%s%v = %d, %v; want %d", name, args, got, err, want)
	}
}

func (c *caller) wantErrno(want abi.Errno, name string, args ...any) {
	c.Helper()
	c.want(int64(want), name, args...)
}

// wantTrap calls a host function that is to trap.
func (c *caller) wantTrap(want, name string, args ...any) {
	c.Helper()
	if _, err := c.try(name, args...); err == nil || !strings.Contains(err.Error(), want) {
		c.Errorf("%s%v: got error %v, want %q", name, args, err, want)
	}
}

// wantText calls a function that reads a string: with no buffer, with one that
// is a byte too small, and with one that fits.
func (c *caller) wantText(want string, name string, args ...any) {
	c.Helper()
	const untouched = "................................................................................................"
	n := len(want)
	memory := c.g.instance.Memory()
	memory.WriteString(buffer, untouched)
	c.want(int64(n), name, append(slices.Clone(args), 0, 0)...)
	if n > 0 {
		c.want(int64(n), name, append(slices.Clone(args), buffer, n-1)...)
	}
	if got, _ := memory.Read(buffer, uint32(len(untouched))); string(got) != untouched {
		c.Errorf("%s%v wrote %q into a buffer too small", name, args, got)
	}
	c.want(int64(n), name, append(slices.Clone(args), buffer, len(untouched))...)
	if got, _ := memory.Read(buffer, uint32(len(untouched))); string(got) != want+untouched[n:] {
		c.Errorf("%s%v wrote %q, want %q and nothing behind it", name, args, got, want)
	}
}

func TestRead(t *testing.T) {
	ev := newEvent()
	granted := abi.DefaultGrant() | abi.CapabilitySetOf(abi.Env, abi.ReadRaw, abi.CgroupRead)
	c := newCaller(t, ev, PluginOptions{Config: []byte("tier: gold"), Granted: granted})
	for s, v := range ev.texts {
		c.wantText(v, "get", s.object, s.field)
	}
	for s, v := range ev.ints {
		c.want(0, "get_i64", s.object, s.field, buffer)
		if got, _ := c.g.instance.Memory().ReadUint64Le(buffer); int64(got) != v {
			t.Errorf("get_i64 of %v wrote %d, want %d", s, int64(got), v)
		}
	}
	for s, m := range ev.maps {
		for k, v := range m {
			c.wantText(v, "map_get", s.object, s.field, k)
		}
	}
	c.wantText("\x02\x00\x00\x00"+"\x03\x00\x00\x00app\x03\x00\x00\x00web"+"\x04\x00\x00\x00tier\x04\x00\x00\x00gold", "map_dump", abi.Pod, abi.PodLabels)
	c.wantText("\x00\x00\x00\x00", "map_dump", abi.Pod, abi.PodAnnotations)
	c.want(int64(abi.FirstHandle+1), "pod_find", abi.ByPodName, "prod/web-1")
	for s, list := range ev.lists {
		c.wantText(string(abi.AppendList(nil, list)), "list_dump", s.object, s.field)
	}
	c.wantText(strings.Join(granted.Names(), " "), "cri_raw")
	c.wantText("100", "cgroup_get", abi.Container, "cpu.weight")
	c.wantText("\x11\x00\x00\x00", "pod_list", "prod")
	c.wantText("\x11\x00\x00\x00\x13\x00\x00\x00", "pod_list", "")
	c.wantText("\x10\x00\x00\x00\x12\x00\x00\x00", "container_list", abi.Pod)
	c.wantText("", "container_list", abi.FirstHandle+1)
	c.wantText("tier: gold", "config")
	c.want(at.UnixNano(), "now")
	c.want(at.UnixNano(), "now")
}

func TestNothingToRead(t *testing.T) {
	c := newCaller(t, newEvent(), PluginOptions{})
	c.wantErrno(abi.NotFound, "get", abi.Pod, 99, buffer, 8)
	c.wantErrno(abi.NotFound, "get", -1, -1, buffer, 8)
	c.wantErrno(abi.NotFound, "get_i64", 99, abi.PodName, buffer)
	c.wantErrno(abi.NotFound, "map_get", abi.Pod, abi.PodLabels, "absent", buffer, 8)
	c.wantErrno(abi.NotFound, "map_dump", abi.Pod, abi.PodName, buffer, 8)
	c.wantErrno(abi.NotFound, "pod_find", abi.ByPodID, "web-1")
	c.wantErrno(abi.NotFound, "container_list", abi.Container, buffer, 8)
	c.wantErrno(abi.NotFound, "list_dump", abi.Container, abi.ContainerEnv, buffer, 8)
	c.wantErrno(abi.NotFound, "cgroup_get", abi.Container, "absent", buffer, 8)
	c.wantErrno(abi.NotFound, "pod_list", "empty", buffer, 8)
	c.wantErrno(abi.NotFound, "kv_get", "absent", buffer, 8)
	if _, ok := c.g.instance.Memory().Grow(maxArgument>>16 + 1); !ok {
		t.Fatal("memory does not grow")
	}
	c.wantErrno(abi.TooLarge, "pod_find", abi.ByPodName, 0, maxArgument+1)
	c.wantErrno(abi.TooLarge, "map_set", abi.Container, abi.ContainerEnv, "A", 0, maxArgument+1)
	c.wantErrno(abi.TooLarge, "set_bytes", abi.Container, abi.Resources+abi.CpusetCpus, 0, maxArgument+1)
}

// TestBadPointer gives each function that takes a pointer one that lies outside
// or reaches outside of the memory, which has 64 KiB.
func TestBadPointer(t *testing.T) {
	c := newCaller(t, newEvent(), PluginOptions{})
	for _, bad := range [][2]int{{0x10000, 1}, {0xffff, 2}, {-1, 1}, {0, 0x10001}, {0, -1}, {-1, -1}} {
		ptr, n := bad[0], bad[1]
		c.wantTrap("get: ", "get", abi.Pod, abi.PodName, ptr, n)
		c.wantTrap("map_get: ", "map_get", abi.Pod, abi.PodLabels, ptr, n, buffer, 8)
		c.wantTrap("map_get: ", "map_get", abi.Pod, abi.PodLabels, "app", ptr, n)
		c.wantTrap("map_dump: ", "map_dump", abi.Pod, abi.PodLabels, ptr, n)
		c.wantTrap("pod_find: ", "pod_find", abi.ByPodName, ptr, n)
		c.wantTrap("container_list: ", "container_list", abi.Pod, ptr, n)
		c.wantTrap("list_dump: ", "list_dump", abi.Container, abi.ContainerArgs, ptr, n)
		c.wantTrap("cri_raw: ", "cri_raw", ptr, n)
		c.wantTrap("cgroup_get: ", "cgroup_get", abi.Pod, ptr, n, buffer, 8)
		c.wantTrap("cgroup_get: ", "cgroup_get", abi.Pod, "cpu.weight", ptr, n)
		c.wantTrap("pod_list: ", "pod_list", ptr, n, buffer, 8)
		c.wantTrap("pod_list: ", "pod_list", "prod", ptr, n)
		c.wantTrap("list_set: ", "list_set", abi.Container, abi.ContainerArgs, ptr, n)
		c.wantTrap("list_add: ", "list_add", abi.Container, abi.ContainerMounts, ptr, n)
		c.wantTrap("list_del: ", "list_del", abi.Container, abi.ContainerMounts, ptr, n)
		c.wantTrap("metric: ", "metric", abi.MetricAdd, ptr, n, int64(1))
		c.wantTrap("kv_get: ", "kv_get", ptr, n, buffer, 8)
		c.wantTrap("kv_set: ", "kv_set", ptr, n, "v")
		c.wantTrap("kv_set: ", "kv_set", "k", ptr, n)
		c.wantTrap("kv_del: ", "kv_del", ptr, n)
		c.wantTrap("random: ", "random", ptr, n)
		c.wantTrap("set_bytes: ", "set_bytes", abi.Pod, abi.PodCgroupParent, ptr, n)
		c.wantTrap("map_set: ", "map_set", abi.Pod, abi.PodLabels, ptr, n, "v")
		c.wantTrap("map_set: ", "map_set", abi.Pod, abi.PodLabels, "k", ptr, n)
		c.wantTrap("map_del: ", "map_del", abi.Pod, abi.PodLabels, ptr, n)
		c.wantTrap("cgroup_set: ", "cgroup_set", abi.Pod, ptr, n, "1")
		c.wantTrap("cgroup_set: ", "cgroup_set", abi.Pod, "cpu.idle", ptr, n)
		c.wantTrap("reject: ", "reject", 0, ptr, n)
		c.wantTrap("fail: ", "fail", ptr, n)
		c.wantTrap("abort: ", "abort", ptr, n)
		c.wantTrap("config: ", "config", ptr, n)
		c.wantTrap("log: ", "log", abi.LogInfo, ptr, n)
	}
	c.wantTrap("get_i64: 8 bytes at 0xfff9", "get_i64", abi.Container, abi.Resources, 0xfff9)
	if changes := c.c.adj.Changes(); len(changes) > 0 {
		t.Errorf("a trapped call left changes: %v", changes)
	}
}

func TestWrite(t *testing.T) {
	c := newCaller(t, newEvent(), PluginOptions{})
	c.want(0, "set_i64", abi.Container, abi.Resources+abi.CPUQuota, int64(-1))
	c.want(0, "set_i64", abi.Container, abi.Resources+abi.MemoryLimit, int64(1)<<40)
	c.want(0, "set_bytes", abi.Container, abi.Resources+abi.CpusetCpus, "0-3")
	c.want(0, "map_set", abi.Container, abi.ContainerEnv, "GOMAXPROCS", "4")
	c.want(0, "map_set", abi.Container, abi.ContainerAnnotations, "example.com/empty", "")
	c.want(0, "map_del", abi.Container, abi.ContainerEnv, "DEBUG")
	c.want(0, "cgroup_set", abi.Container, "cpu.idle", "1")
	c.want(0, "list_set", abi.Container, abi.ContainerArgs, string(abi.AppendList(nil, []string{"-v", ""})))
	c.want(0, "list_add", abi.Container, abi.ContainerCDIDevices, "vendor.com/gpu=0")
	c.want(0, "list_del", abi.Container, abi.ContainerMounts, "/data")
	c.want(0, "set_i64", abi.FirstHandle, abi.Resources+abi.CPUQuota, int64(50_000))
	want := []plugin.Change{
		{Op: plugin.SetInt64, Object: abi.Container, Field: abi.Resources + abi.CPUQuota, Int: -1},
		{Op: plugin.SetInt64, Object: abi.Container, Field: abi.Resources + abi.MemoryLimit, Int: 1 << 40},
		{Op: plugin.SetText, Object: abi.Container, Field: abi.Resources + abi.CpusetCpus, Text: "0-3"},
		{Op: plugin.SetEntry, Object: abi.Container, Field: abi.ContainerEnv, Key: "GOMAXPROCS", Text: "4"},
		{Op: plugin.SetEntry, Object: abi.Container, Field: abi.ContainerAnnotations, Key: "example.com/empty"},
		{Op: plugin.DeleteEntry, Object: abi.Container, Field: abi.ContainerEnv, Key: "DEBUG"},
		{Op: plugin.WriteFile, Object: abi.Container, Key: "cpu.idle", Text: "1"},
		{Op: plugin.SetList, Object: abi.Container, Field: abi.ContainerArgs, Text: string(abi.AppendList(nil, []string{"-v", ""}))},
		{Op: plugin.AddElement, Object: abi.Container, Field: abi.ContainerCDIDevices, Key: "vendor.com/gpu=0", Text: "vendor.com/gpu=0"},
		{Op: plugin.DeleteElement, Object: abi.Container, Field: abi.ContainerMounts, Key: "/data"},
		{Op: plugin.SetInt64, Object: abi.FirstHandle, Of: abi.Container, Field: abi.Resources + abi.CPUQuota, Int: 50_000},
	}
	if got := c.c.adj.Changes(); !slices.Equal(got, want) {
		t.Errorf("got changes %+v, want %+v", got, want)
	}
}

// TestWriteRefused shows that the guest is told, and goes on.
func TestWriteRefused(t *testing.T) {
	c := newCaller(t, newEvent(), PluginOptions{})
	c.wantErrno(abi.Invalid, "set_i64", abi.Container, abi.Resources+abi.CPUQuota, int64(5))
	c.wantErrno(abi.ReadOnly, "set_i64", abi.Pod, abi.Resources+abi.CPUQuota, int64(100_000))
	c.wantErrno(abi.ReadOnly, "set_i64", abi.FirstHandle+2, abi.Resources+abi.CPUQuota, int64(100_000)) // its own container
	c.wantErrno(abi.Invalid, "list_set", abi.Container, abi.ContainerArgs, "\x02\x00\x00\x00")
	c.wantErrno(abi.Invalid, "list_set", abi.Container, abi.ContainerMounts, "\x00\x00\x00\x00")
	c.wantErrno(abi.ReadOnly, "list_set", abi.Event, abi.EventCommand, "\x00\x00\x00\x00")
	c.wantErrno(abi.Invalid, "list_add", abi.Container, abi.ContainerMounts, "/data")
	c.wantErrno(abi.Invalid, "list_add", abi.Container, abi.ContainerArgs, "-v")
	c.wantErrno(abi.Invalid, "list_del", abi.Container, abi.ContainerMounts, "")
	c.wantErrno(abi.NotFound, "set_i64", abi.FirstHandle+9, abi.Resources+abi.CPUQuota, int64(100_000))
	c.wantErrno(abi.Invalid, "set_bytes", abi.Container, abi.Resources+abi.CPUQuota, "1")
	c.wantErrno(abi.Denied, "map_set", abi.Container, abi.ContainerAnnotations, "io.kubernetes.pod.name", "x")
	c.wantErrno(abi.Invalid, "map_del", abi.Container, abi.ContainerEnv, "A=B")
	c.wantErrno(abi.Denied, "cgroup_set", abi.Container, "cgroup.procs", "1")
	c.wantErrno(abi.Invalid, "reject", 77, "no such code")
	c.want(0, "set_i64", abi.Container, abi.Resources+abi.CPUQuota, int64(100_000))
	if got := c.c.adj.Changes(); len(got) != 1 {
		t.Errorf("got changes %+v, want the last one only", got)
	}
	if got := c.c.adj.Rejection(); got != nil {
		t.Errorf("got rejection %v", got)
	}
}

// TestBeforeFirstEvent shows what a guest sees while it is configured.
func TestBeforeFirstEvent(t *testing.T) {
	c := newCaller(t, nil, PluginOptions{Config: []byte("c")})
	c.wantErrno(abi.NotFound, "get", abi.Pod, abi.PodName, 0, 0)
	c.wantErrno(abi.NotFound, "get_i64", abi.Event, abi.EventHook, buffer)
	c.wantErrno(abi.NotFound, "map_get", abi.Pod, abi.PodLabels, "app", 0, 0)
	c.wantErrno(abi.NotFound, "map_dump", abi.Pod, abi.PodLabels, 0, 0)
	c.wantErrno(abi.NotFound, "pod_find", abi.ByPodName, "prod/web-1")
	c.wantErrno(abi.NotFound, "container_list", abi.Pod, 0, 0)
	c.wantErrno(abi.NotFound, "pod_list", "", 0, 0)
	c.wantErrno(abi.NotFound, "list_dump", abi.Container, abi.ContainerArgs, 0, 0)
	c.wantErrno(abi.NotFound, "cri_raw", 0, 0)
	c.wantErrno(abi.NotFound, "cgroup_get", abi.Pod, "cpu.weight", 0, 0)
	c.wantErrno(abi.NotFound, "kv_get", "k", 0, 0)
	c.wantErrno(abi.ReadOnly, "kv_set", "k", "v")
	c.wantErrno(abi.ReadOnly, "kv_del", "k")
	c.want(0, "random", buffer, 8)
	c.want(0, "feature", abi.FeatureKV)
	c.wantErrno(abi.ReadOnly, "list_add", abi.Container, abi.ContainerCDIDevices, "vendor.com/gpu=0")
	c.wantErrno(abi.ReadOnly, "set_i64", abi.Container, abi.Resources+abi.CPUQuota, int64(100_000))
	c.wantErrno(abi.ReadOnly, "map_set", abi.Container, abi.ContainerEnv, "A", "b")
	c.wantErrno(abi.ReadOnly, "cgroup_set", abi.Container, "cpu.idle", "1")
	c.wantErrno(abi.Invalid, "reject", 0, "no")
	c.wantText("c", "config")
	c.want(0, "now")
}

func TestReasons(t *testing.T) {
	var logged record
	c := newCaller(t, newEvent(), PluginOptions{Observer: logged.logger()})
	long := strings.Repeat("x", 5000)
	c.want(0, "reject", 0, long)
	if got := c.c.adj.Rejection().Reason; got != long[:maxReason] {
		t.Errorf("kept %d bytes of the reason to reject, want %d", len(got), maxReason)
	}
	c.want(0, "fail", "first\nline\x00\u202e")
	if want := "first line"; c.c.reason != want {
		t.Errorf("kept %q of the reason to fail, want %q", c.c.reason, want)
	}
	c.wantTrap("aborted: "+long[:maxReason]+" ", "abort", long)
	for level, want := range map[int]string{-5: "DEBUG", abi.LogDebug: "DEBUG", abi.LogInfo: "INFO", abi.LogWarn: "WARN", abi.LogError: "ERROR", 99: "ERROR"} {
		c.want(0, "log", level, "a\tb\"\xff")
		if want := "level=" + want + ` msg="plugin log" plugin=functions hook=PreCreateContainer namespace=prod pod=web-0 text="a b\"?"`; !strings.HasSuffix(strings.TrimSpace(logged.String()), want) {
			t.Errorf("logged %q at level %d, want %q", logged.String(), level, want)
		}
	}
}

// TestEverything compares a hash that a guest took of all it could read with one
// taken here.
func TestEverything(t *testing.T) {
	engines(t, func(t *testing.T, e *Engine) {
		ev := newEvent()
		changes, err := callPlugin(t.Context(), load(t, e, "everything", PluginOptions{}), ev)
		if err != nil {
			t.Fatal(err)
		}
		want := plugin.Change{Op: plugin.SetEntry, Object: abi.Container, Field: abi.ContainerAnnotations, Key: "example.com/read", Text: hash(ev)}
		if len(changes) != 1 || changes[0] != want {
			t.Errorf("got %+v, want %+v", changes, want)
		}
	})
}

// hash is what everything.wat does.
func hash(ev *testEvent) string {
	sum := uint32(0x811c9dc5)
	add := func(result int64, b []byte) {
		for _, b := range append([]byte{byte(result)}, b...) {
			sum = (sum ^ uint32(b)) * 0x01000193
		}
	}
	answer := func(errno abi.Errno, b []byte) {
		if errno != abi.OK {
			add(int64(errno), nil)
		} else {
			add(int64(len(b)), b)
		}
	}
	for o := abi.Event; o <= abi.Node; o++ {
		for f := abi.Field(0); f < 80; f++ {
			text, errno := ev.Text(o, f)
			answer(errno, []byte(text))
			v, errno := ev.Int64(o, f)
			if errno == abi.OK {
				add(0, binary.LittleEndian.AppendUint64(nil, uint64(v)))
			} else {
				add(int64(errno), nil)
			}
			entries, errno := ev.Entries(o, f)
			answer(errno, abi.AppendEntries(nil, entries))
		}
	}
	return string(hexadecimal(sum))
}

func hexadecimal(v uint32) []byte {
	b := make([]byte, 8)
	for i := range b {
		b[i] = "0123456789abcdef"[v>>(28-4*i)&15]
	}
	return b
}
