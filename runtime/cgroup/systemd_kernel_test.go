package cgroup

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
	godbus "github.com/godbus/dbus/v5"
	"golang.org/x/sync/errgroup"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/systemd"
)

// units is a slice of a pod and a scope of its container, as kubelet and runc make them, and an
// FS with a Manager.
type units struct {
	*FS
	bus          *dbus.Conn // of the test's own
	events       chan string
	slice, scope string // groups
	kill         func() // ends the container's process
}

func newUnits(t testing.TB, addresses ...systemd.Address) *units {
	t.Helper()
	f := must(Open(mount, "auto"))(t)
	t.Cleanup(func() { f.Close() })
	u := &units{FS: f, events: make(chan string, 100)}
	u.connect(t, addresses)
	u.bus = must(dbus.NewSystemdConnectionContext(t.Context()))(t)
	t.Cleanup(u.bus.Close)
	unique := time.Now().UnixNano()
	pod, id := fmt.Sprintf("kubepods-burstable-pod%d_2.slice", unique), fmt.Sprintf("%064x", unique)
	u.slice = must(PodPath(pod))(t)
	u.start(t, pod)
	sleep := exec.Command("sleep", "600")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	u.kill = sync.OnceFunc(func() {
		sleep.Process.Kill()
		sleep.Wait()
	})
	t.Cleanup(u.kill)
	u.scope = must(ReportedPath(pod + ":cri-containerd:" + id))(t)
	u.start(t, path.Base(u.scope), dbus.PropSlice(pod), dbus.PropPids(uint32(sleep.Process.Pid)), property("Delegate", true))
	if group, err := f.GroupOfProcess(sleep.Process.Pid, id); err != nil || group != u.scope {
		t.Fatalf("the kernel has the process in %q, %v; want %q", group, err, u.scope)
	}
	return u
}

// connect runs a Manager until the test ends.
func (u *units) connect(t testing.TB, addresses []systemd.Address) {
	m := systemd.New(u.version, addresses, systemd.Events{
		Connected:   func(int) { u.events <- "connected" },
		Unavailable: func(error) { u.events <- "unavailable" },
		Refused:     func(_, property string, err error) { u.events <- fmt.Sprintf("refused %s: %v", property, err) },
		Reloaded:    func() { u.events <- "reloaded" },
	})
	u.UseSystemd(m)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { m.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

func property(name string, value any) dbus.Property {
	return dbus.Property{Name: name, Value: godbus.MakeVariant(value)}
}

// start starts a transient unit.
func (u *units) start(t testing.TB, unit string, properties ...dbus.Property) {
	t.Helper()
	for _, on := range []string{"CPUAccounting", "MemoryAccounting", "TasksAccounting", "IOAccounting"} {
		properties = append(properties, property(on, true))
	}
	result := make(chan string, 1)
	if _, err := u.bus.StartTransientUnitContext(t.Context(), unit, "replace", append(properties, property("DefaultDependencies", false)), result); err != nil {
		t.Fatal(err)
	}
	if got := jobEnd(result); got != "done" {
		t.Fatalf("start %s: %s", unit, got)
	}
	t.Cleanup(func() {
		if _, err := u.bus.StopUnitContext(context.Background(), unit, "replace", result); err == nil {
			jobEnd(result)
		}
	})
}

// jobEnd waits for the end of a job of systemd.
func jobEnd(result <-chan string) string {
	select {
	case got := <-result:
		return got
	case <-time.After(time.Minute):
		return "no answer in a minute"
	}
}

// want waits for the next event.
func (u *units) want(t testing.TB, event string) {
	t.Helper()
	select {
	case got := <-u.events:
		if !strings.HasPrefix(got, event) {
			t.Fatalf("event %q, want %q", got, event)
		}
	case <-time.After(time.Minute):
		t.Fatalf("no event %q in a minute", event)
	}
}

// reload has systemd read its units again, and waits until it has.
func (u *units) reload(t testing.TB) {
	t.Helper()
	if err := u.bus.ReloadContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	u.want(t, "reloaded")
}

// value is a value of a file that systemd knows as a property.
type value struct{ file, text string }

// values are those of which systemd has a property; what the kernel or this version of cgroups
// lacks is left out. An idle group takes no weight, so that cpu.idle is apart.
var (
	values = []value{
		{"pids.max", "77"}, {"memory.max", "104857600"}, {"cpu.weight", "39"}, {"cpu.max", "50000 100000"},
		{"memory.min", "4194304"}, {"memory.low", "8388608"}, {"memory.high", "94371840"}, {"memory.swap.max", "4096"},
		{"cpuset.cpus", "0"}, {"cpuset.mems", "0"}, {"io.weight", "default 50"},
	}
	idle = []value{{rules.CPUIdle, "1"}}
)

// known returns the values that systemd has on this machine.
func (u *units) known(t *testing.T) (all []value) {
	t.Helper()
	for _, v := range values {
		_, err := u.Read(u.scope, v.file)
		onV1 := slices.Contains([]string{"pids.max", "memory.max", "cpu.weight", "cpu.max"}, v.file)
		switch {
		case err == nil && (onV1 || u.version == 2):
			all = append(all, v)
		case onV1:
			t.Errorf("read %s: %v", v.file, err)
		default:
			t.Logf("left out: %s, %v", v.file, err)
		}
	}
	return all
}

func (u *units) held(t testing.TB, group, file string) string {
	t.Helper()
	return must(u.Read(group, file))(t)
}

// overwrite writes a value as somebody does who does not know systemd.
func (u *units) overwrite(t *testing.T, group string, v value) {
	t.Helper()
	g := u.Group(group)
	defer g.Close()
	if err := g.put(must(rules.Lookup(v.file))(t), v.text); err != nil {
		t.Fatal(err)
	}
}

func (u *units) restore(t *testing.T, group, file, before string) {
	t.Helper()
	g := u.Group(group)
	defer g.Close()
	if err := g.Restore(t.Context(), file, before, ""); err != nil {
		t.Error(err)
	}
}

func (u *units) rounded(group, quota string) string {
	g := u.Group(group)
	defer g.Close()
	return g.Rounded("cpu.max", quota)
}

func (u *units) write(t testing.TB, group, file, text string) {
	t.Helper()
	if err := u.Write(t.Context(), group, file, text); err != nil {
		t.Fatal(err)
	}
}

var direct = systemd.Address{DBus: "unix:path=/run/systemd/private", Direct: true}

// Values that are only in files are lost with a reload, and what systemd was told stays: over
// the system bus, and without one.
func TestSystemdKeepsValuesOverAReload(t *testing.T) {
	if !underSystemd(t) {
		return
	}
	for _, address := range []systemd.Address{direct, systemd.Addresses()[0]} {
		t.Run(address.DBus, func(t *testing.T) {
			u := newUnits(t, address)
			u.want(t, "connected")
			u.keepsOverAReload(t, u.known(t))
			if u.version == 2 {
				u.keepsOverAReload(t, idle)
			}
		})
	}
}

func (u *units) keepsOverAReload(t *testing.T, all []value) {
	type at struct {
		group string
		value
	}
	before := map[at]string{}
	each := func(do func(v at)) {
		for _, group := range []string{u.slice, u.scope} {
			for _, v := range all {
				do(at{group, v})
			}
		}
	}
	each(func(v at) {
		before[v] = u.held(t, v.group, v.file)
		u.overwrite(t, v.group, v.value)
	})
	u.reload(t)
	each(func(v at) {
		if got := u.held(t, v.group, v.file); got == v.text && before[v] != "" {
			t.Errorf("%s of %s: systemd left %q, which it was not told", v.file, v.group, got)
		}
		u.write(t, v.group, v.file, v.text)
	})
	u.reload(t)
	each(func(v at) {
		if got := u.held(t, v.group, v.file); got != v.text {
			t.Errorf("%s of %s: %q after a reload, want %q", v.file, v.group, got, v.text)
		}
		u.restore(t, v.group, v.file, before[v])
	})
	u.reload(t)
	each(func(v at) {
		want := before[v]
		got := u.held(t, v.group, v.file)
		if want == "" && got != "" { // a cpuset that the kernel does not empty has the parent's
			parent := u.Group(path.Dir(v.group))
			want = must(parent.readFile(v.file+".effective", ""))(t)
			parent.Close()
		}
		if got != want {
			t.Errorf("%s of %s: %q after it was undone and a reload, want %q", v.file, v.group, got, want)
		}
	})
}

// kubelet has runc set memory.oom.group of a container, which no property is of. It stays when a plugin's
// value becomes a property, and when that is undone.
func TestSystemdPropertyLeavesOOMGroup(t *testing.T) {
	if !underSystemd(t) {
		return
	}
	u := newUnits(t, direct)
	u.want(t, "connected")
	if u.version == 1 {
		t.Log("cgroup v1 has no such file")
		return
	}
	const file = "memory.oom.group"
	for i, v := range slices.Concat(u.known(t), idle) {
		before, group := u.held(t, u.scope, v.file), strconv.Itoa((i+1)%2)
		u.overwrite(t, u.scope, value{file, group})
		u.write(t, u.scope, v.file, v.text)
		if got := u.held(t, u.scope, file); got != group {
			t.Errorf("%s is %s after a write of %s, want %s", file, got, v.file, group)
		}
		u.restore(t, u.scope, v.file, before)
		if got := u.held(t, u.scope, file); got != group {
			t.Errorf("%s is %s after the undo of %s, want %s", file, got, v.file, group)
		}
	}
}

// A quota that systemd cannot keep is rounded up at once, so that a reload changes nothing.
func TestSystemdRoundsQuotas(t *testing.T) {
	if !underSystemd(t) {
		return
	}
	u := newUnits(t, direct)
	u.want(t, "connected")
	for quota, want := range map[string]string{"12345": "13000 100000", "50000": "50000 100000", "1000": "1000 100000", "1001 50000": "1500 50000"} {
		if got := u.rounded(u.scope, quota); !strings.HasPrefix(want, got) {
			t.Errorf("%s is rounded to %q, want %s", quota, got, want)
		}
		u.write(t, u.scope, "cpu.max", quota)
		written := u.held(t, u.scope, "cpu.max")
		u.reload(t)
		if got := u.held(t, u.scope, "cpu.max"); got != want || written != want {
			t.Errorf("%s is %q, and %q after a reload, want %q", quota, written, got, want)
		}
		u.write(t, u.scope, "cpu.max", "max 100000")
	}
	if got := u.rounded("/kubepods/pod1", "12345"); got != "12345" {
		t.Errorf("without systemd %q", got)
	}
}

// BenchmarkSystemdFullNode sets a quota of each of 2,000 scopes over the bus, eight at a time, as a plugin does that is
// installed on a full node. systemd and its 2,000 units take a minute to come.
func BenchmarkSystemdFullNode(b *testing.B) {
	b.StopTimer() // of the process outside, which prints what the one beside systemd has measured
	if !underSystemd(b) {
		return
	}
	const scopes = 2000
	u := newUnits(b, direct)
	u.want(b, "connected")
	groups := make([]string, scopes)
	for i := range groups {
		sleep := exec.CommandContext(b.Context(), "sleep", "600")
		if err := sleep.Start(); err != nil {
			b.Fatal(err)
		}
		unit := fmt.Sprintf("cri-containerd-%064x.scope", i)
		groups[i] = path.Join(u.slice, unit)
		u.start(b, unit, dbus.PropSlice(path.Base(u.slice)), dbus.PropPids(uint32(sleep.Process.Pid)), property("Delegate", true))
	}
	b.StartTimer()
	for n := range b.N {
		var writers errgroup.Group
		writers.SetLimit(8)
		for _, group := range groups {
			writers.Go(func() error { return u.Write(b.Context(), group, "cpu.max", fmt.Sprint(50_000+1000*n)) })
		}
		if err := writers.Wait(); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	u.reload(b)
	for _, group := range groups {
		if got, want := u.held(b, group, "cpu.max"), fmt.Sprint(50_000+1000*(b.N-1), " 100000"); got != want {
			b.Fatalf("%s holds %q after a reload, want %q", group, got, want)
		}
	}
}

// paths returns the files that systemd keeps of units by a name.
func paths(t *testing.T, unit string) []string {
	t.Helper()
	return must(filepath.Glob("/run/systemd/*/" + unit + "*"))(t)
}

// A container that dies between the kernel's and systemd's part leaves nothing behind. Nor is
// a cgroup made a unit because it has the name of one.
func TestSystemdUnitsThatAreNotThere(t *testing.T) {
	if !underSystemd(t) {
		return
	}
	u := newUnits(t, direct)
	u.want(t, "connected")
	u.write(t, u.scope, "pids.max", "77")
	scope := path.Base(u.scope)
	if len(paths(t, scope)) == 0 {
		t.Fatal("systemd keeps no file of a unit that has a property")
	}
	u.kill()
	for deadline := time.Now().Add(time.Minute); !u.Gone(u.scope); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the scope is still there")
		}
	}
	wantCode(t, u.Write(t.Context(), u.scope, "pids.max", "78"), abi.NotFound)
	u.FS.systemd.Keep(t.Context(), systemd.Kept{Group: u.scope, File: "pids.max"}, systemd.Files{Read: func(string) string { return "78" }})

	other := "/wasmproxy-other.slice"
	dir := filepath.Join(mount, map[int]string{1: "pids"}[u.version], other)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(dir)
	u.write(t, other, "pids.max", "77")
	for _, unit := range []string{scope, path.Base(other)} {
		if left := paths(t, unit); len(left) > 0 {
			t.Errorf("systemd keeps %q", left)
		}
		loaded := must(u.bus.ListUnitsByPatternsContext(t.Context(), nil, []string{unit}))(t)
		if len(loaded) > 0 {
			t.Errorf("systemd has loaded %v", loaded)
		}
	}
	u.quiet(t)
}

func (u *units) quiet(t *testing.T) {
	t.Helper()
	select {
	case got := <-u.events:
		t.Errorf("event %q", got)
	default:
	}
}

// relay passes bytes between the Manager and systemd, until it is told otherwise: systemd itself
// can neither be stopped from within its pid namespace, nor lose a connection when asked.
type relay struct {
	path  string
	mu    sync.Mutex
	conns []net.Conn
	stuck bool
}

func newRelay(t *testing.T) *relay {
	t.Helper()
	r := &relay{path: filepath.Join(t.TempDir(), "relay")}
	l := must(net.Listen("unix", r.path))(t)
	t.Cleanup(func() {
		l.Close()
		r.cut()
	})
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("unix", "/run/systemd/private")
			if err != nil {
				from.Close()
				continue
			}
			r.mu.Lock()
			r.conns = append(r.conns, from, to)
			r.mu.Unlock()
			go r.copy(from, to)
			go r.copy(to, from)
		}
	}()
	return r
}

func (r *relay) copy(to, from net.Conn) {
	buf := make([]byte, 4096)
	for {
		n, err := from.Read(buf)
		if err != nil {
			to.Close()
			return
		}
		r.mu.Lock()
		stuck := r.stuck
		r.mu.Unlock()
		if !stuck {
			if _, err := to.Write(buf[:n]); err != nil {
				io.Copy(io.Discard, from)
				return
			}
		}
	}
}

func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.conns {
		c.Close()
	}
	r.conns, r.stuck = nil, false
}

func (r *relay) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stuck = true
}

func (r *relay) address() systemd.Address {
	return systemd.Address{DBus: "unix:path=" + r.path, Direct: true}
}

// Whatever becomes of the connection, values are in the files, and it is made again.
func TestSystemdThatDoesNotAnswer(t *testing.T) {
	if !underSystemd(t) {
		return
	}
	r := newRelay(t)
	u := newUnits(t, r.address())
	u.want(t, "connected")
	u.write(t, u.scope, "pids.max", "70")
	u.reload(t)
	if got := u.held(t, u.scope, "pids.max"); got != "70" {
		t.Errorf("%q after a reload over the relay", got)
	}
	r.stop()
	u.write(t, u.scope, "pids.max", "71")
	u.want(t, "refused TasksMax: context deadline exceeded")
	if got := u.held(t, u.scope, "pids.max"); got != "71" {
		t.Errorf("%q while systemd does not answer", got)
	}
	r.cut()
	u.want(t, "unavailable")
	u.write(t, u.scope, "pids.max", "72")
	if got := u.held(t, u.scope, "pids.max"); got != "72" {
		t.Errorf("%q without a connection", got)
	}
	u.want(t, "connected") // once unavailable, not again at the write
	u.write(t, u.scope, "pids.max", "73")
	u.reload(t)
	if got := u.held(t, u.scope, "pids.max"); got != "73" {
		t.Errorf("%q after a reload over the new connection", got)
	}
}

// What systemd was not told, or has refused, it keeps once it was tried again. A refusal is said once.
func TestSystemdRetriesWhatItRefused(t *testing.T) {
	if !underSystemd(t) {
		return
	}
	r := newRelay(t)
	u := newUnits(t, r.address())
	u.want(t, "connected")
	r.stop()
	u.write(t, u.scope, "pids.max", "71")
	u.want(t, "refused TasksMax: context deadline exceeded")
	r.cut()
	u.want(t, "unavailable")
	u.write(t, u.scope, "cpu.weight", "39")
	u.want(t, "connected")
	u.FS.systemd.Retry(t.Context()) // before systemd writes the files again because another unit starts

	const unit = "wasmproxyempty.slice"
	u.start(t, unit)
	slice := must(PodPath(unit))(t)
	u.write(t, slice, "memory.max", "0") // systemd takes no 0
	u.want(t, "refused Memory")
	u.FS.systemd.Retry(t.Context())
	u.quiet(t)
	u.reload(t)
	for file, want := range map[string]string{"pids.max": "71", "cpu.weight": "39"} {
		if got := u.held(t, u.scope, file); got != want {
			t.Errorf("%s is %q after a reload, want %s", file, got, want)
		}
	}
	u.overwrite(t, slice, value{"memory.max", "104857600"})
	u.FS.systemd.Retry(t.Context())
	u.reload(t)
	if got := u.held(t, slice, "memory.max"); got != "104857600" {
		t.Errorf("memory.max is %q after a reload", got)
	}
	u.quiet(t)
}

// With any property of a unit systemd writes all that it was told of it before. A value of which it was not told comes back with the retry.
func TestSystemdWritesAnOldValueAgain(t *testing.T) {
	if !underSystemd(t) {
		return
	}
	r := newRelay(t)
	u := newUnits(t, r.address())
	u.want(t, "connected")
	u.write(t, u.scope, "pids.max", "70")
	r.stop()
	u.write(t, u.scope, "pids.max", "71")
	u.want(t, "refused TasksMax: context deadline exceeded")
	name := map[int]string{1: "CPUShares", 2: "CPUWeight"}[u.version]
	if err := u.bus.SetUnitPropertiesContext(t.Context(), path.Base(u.scope), true, property(name, uint64(50))); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); u.held(t, u.scope, "pids.max") != "70"; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("pids.max is %s: systemd has not written it again with %s", u.held(t, u.scope, "pids.max"), name)
		}
	}
	r.cut()
	u.want(t, "unavailable")
	u.want(t, "connected")
	u.FS.systemd.Retry(t.Context())
	u.reload(t)
	if got := u.held(t, u.scope, "pids.max"); got != "71" {
		t.Errorf("pids.max is %s after the retry and a reload, want 71", got)
	}
}

// Without systemd's sockets, values are written, and it is said once; of a file that systemd
// does not know it is not said.
func TestSystemdWithoutSockets(t *testing.T) {
	k := newKernel(t)
	u := &units{FS: k.FS, events: make(chan string, 10)}
	u.connect(t, []systemd.Address{{DBus: "unix:path=" + filepath.Join(t.TempDir(), "none"), Direct: true}})
	group := k.group + ".scope"
	if err := os.Mkdir(k.dir("cpu")+".scope", 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(k.dir("cpu") + ".scope"); err != nil {
			t.Error(err)
		}
	})
	wantCode(t, k.Write(t.Context(), group, rules.CPUBurst, "0"), abi.OK)
	u.quiet(t)
	for range 2 {
		u.write(t, group, "cpu.weight", "39")
	}
	if got := u.held(t, group, "cpu.weight"); got != "39" {
		t.Errorf("holds %q", got)
	}
	u.want(t, "unavailable")
	u.quiet(t)
}
