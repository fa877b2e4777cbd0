package intercept_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// refusing is the error that the kernel answers to whoever in this process opens a file for writing that is there, as those
// of cgroups are; state files are made. 0: the kernel does as it is asked.
var refusing atomic.Int32

// notification and response are struct seccomp_notif and seccomp_notif_resp of linux/seccomp.h.
type notification struct {
	id         uint64
	pid, flags uint32
	_          [64]byte
}

type response struct {
	id         uint64
	val        int64
	err, flags int32
}

// askBeforeWrites has the kernel ask this process before each such open, which answers as refusing says.
var askBeforeWrites = sync.OnceValue(func() error {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the number of the call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_OPENAT, Jf: 4},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 32}, // its third argument
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: unix.O_ACCMODE | unix.O_CREAT},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.O_WRONLY, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	const flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_TSYNC | unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	listener, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return fmt.Errorf("installing a filter of system calls: %w", errno)
	}
	go func() {
		for {
			var asked notification
			if _, _, errno := unix.Syscall(unix.SYS_IOCTL, listener, unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&asked))); errno != 0 {
				continue // a signal, or the caller has gone
			}
			answer := response{id: asked.id, err: -refusing.Load()}
			if answer.err == 0 {
				answer.flags = unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE
			}
			_, _, _ = unix.Syscall(unix.SYS_IOCTL, listener, unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&answer)))
		}
	}()
	return nil
})

// refused runs a step while the kernel refuses writes.
func refused(errno syscall.Errno, step func() error) error {
	if err := askBeforeWrites(); err != nil {
		return err
	}
	refusing.Store(int32(errno))
	defer refusing.Store(0)
	return step()
}

// faults are errors of the kernel, and the codes that ABI.md has for them. An open that answers ENOENT
// for a file of a group that is there means a file that the kernel lacks.
var faults = map[syscall.Errno]abi.Errno{
	syscall.EBUSY: abi.Invalid, syscall.EINVAL: abi.Invalid, syscall.ENOSPC: abi.Invalid, syscall.EACCES: abi.Denied,
	syscall.ENODEV: abi.NotFound, syscall.ENOENT: abi.Unsupported, syscall.EROFS: abi.Unsupported,
}

// faultyWrite is a kind of write that the kernel refuses.
type faultyWrite struct {
	name    string
	plugins []plugin.Member
	pod     bool                                  // the file is the pod's, else its container's
	file    string                                // its name
	before  func(n *node, container string)       // what was done before; container is its cgroup's directory
	step    func(n *node, container string) error // makes the write
	answer  codes.Code                            // of the call
	held    string                                // what the file holds then
	wished  bool                                  // a plugin's wish stays
	healthy string                                // what the file holds after a scan without the fault
}

func (w *faultyWrite) id() enforce.ID {
	if w.pod {
		return enforce.ID{Pod: "u1"}
	}
	return enforce.ID{Pod: "u1", Container: "c1"}
}

// faultyWrites returns the kinds of writes. A post hook calls inPost before its write.
func faultyWrites(t *testing.T, inPost func()) []faultyWrite {
	const wish, podWish, foreign = "4096000", "8192000", "777"
	high := write(abi.Container, "memory.high", wish)
	pre := []plugin.Member{on(abi.PreCreateContainer, high)}
	update := []plugin.Member{on(abi.PreUpdateContainerResources, high)}
	post := []plugin.Member{on(abi.PostStartContainer, func(ctx context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
		inPost()
		return high(ctx, ev, adj)
	})}
	ignore := on(abi.PreRunPodSandbox, write(abi.Pod, "memory.high", podWish))
	fail := ignore
	fail.Policy = plugin.Fail
	double := []plugin.Member{doubling(abi.HookSetOf(abi.PreCreateContainer), abi.AllCapabilities)}

	runPod := func(n *node, _ string) error {
		_, err := n.call(t.Context(), "RunPodSandbox", &runtimeapi.RunPodSandboxRequest{Config: podWithoutOverhead()}, &runtimeapi.RunPodSandboxResponse{PodSandboxId: "pod1"})
		return err
	}
	sandbox := func(n *node, _ string) { n.must(runPod(n, "")) }
	create := func(n *node, _ string) error {
		_, err := n.call(t.Context(), "CreateContainer", createRequest(), &runtimeapi.CreateContainerResponse{ContainerId: "c1"})
		return errors.Join(err, n.queue.Drain(t.Context()))
	}
	created := func(n *node, _ string) { n.runPod() }
	start := func(n *node, _ string) error { return errors.Join(n.startC1(), n.queue.Drain(t.Context())) }
	started := func(n *node, container string) { n.runPod(); n.must(start(n, container)) }
	resize := func(n *node, _ string) error {
		return errors.Join(n.updateC1(&runtimeapi.LinuxContainerResources{CpuShares: 7}), n.queue.Drain(t.Context()))
	}
	overwritten := func(n *node, container string) { started(n, container); put(t, container, "memory.high", foreign) }
	overwrite := func(n *node, container string) error {
		n.updating = func() { put(t, container, "memory.high", foreign) }
		return resize(n, container)
	}
	scan := func(n *node, _ string) error { n.options.Scan(t.Context()); return nil }
	remove := func(n *node, _ string) error {
		n.withdraw("10-test")
		return nil
	}
	nothing := func(*node, string) {}
	const ok, yes, no = codes.OK, true, false
	return []faultyWrite{
		{"file of a container at its start", pre, no, "memory.high", created, start, ok, "max", yes, wish},
		{"file of a container in an update", update, no, "memory.high", started, resize, ok, "max", yes, wish},
		{"file of a container after a post hook", post, no, "memory.high", created, start, ok, "max", yes, wish},
		{"file of the pod, policy Ignore", []plugin.Member{ignore}, yes, "memory.high", nothing, runPod, ok, "max", yes, podWish},
		{"file of the pod, policy Fail", []plugin.Member{fail}, yes, "memory.high", nothing, runPod, codes.Unavailable, "max", no, "max"},
		{"repair by a scan", pre, no, "memory.high", overwritten, scan, ok, foreign, yes, wish},
		{"repair after an update", pre, no, "memory.high", started, overwrite, ok, foreign, yes, wish},
		{"undo", pre, no, "memory.high", started, remove, ok, wish, no, "max"},
		{"limit of the pod", double, yes, "cpu.max", sandbox, create, ok, "50000 100000", yes, "max 100000"},
	}
}

// TestFaultsAtEachWrite has the kernel refuse each kind of write with each error. The call's outcome is
// as operations.md says, the ledger says what the kernel holds, nothing is left behind, and a scan makes up for
// it once the fault is gone.
func TestFaultsAtEachWrite(t *testing.T) {
	for errno, code := range faults {
		t.Run(unix.ErrnoName(errno), func(t *testing.T) {
			for _, w := range faultyWrites(t, func() {}) {
				t.Run(w.name, func(t *testing.T) { w.test(t, errno, code) })
			}
		})
	}
}

func (w *faultyWrite) test(t *testing.T, errno syscall.Errno, code abi.Errno) {
	var events observe.Recorder
	fs, pod, container := scratchGroup(t)
	state := filepath.Join(t.TempDir(), "state")
	n := newNode(t, w.plugins, withCgroups(fs), withLedger(openLedger(t, state)), withObserver(&events))
	dir := container
	if w.pod {
		dir = pod
	}
	w.before(n, container)
	events.Take()
	n.options.Ledger.Record(enforce.ID{Pod: "other"}).Ask(enforce.Asked{Target: enforce.File("cpu.idle")}) // the journal is open from here on
	n.options.Ledger.Record(enforce.ID{Pod: "other"}).Remove()
	_ = askBeforeWrites() // which has a goroutine and a file; refused tells of an error
	leaks := resources(t)

	err := refused(errno, func() error { return w.step(n, container) })
	if status.Code(err) != w.answer {
		t.Errorf("the call ends with %v, want the code %v", err, w.answer)
	}
	w.wantFailure(t, events.Take(), errno, code)
	if got := content(t, dir, w.file); got != w.held {
		t.Errorf("the file holds %q, want %q", got, w.held)
	}
	w.wantRecord(t, n, state)
	_ = refused(errno, func() error { n.options.Scan(t.Context()); return nil })
	if again := observe.All[*observe.CgroupFileFailed](events.Take()); len(again) > 0 {
		t.Errorf("the scan says it again: %v", again)
	}
	leaks()

	n.options.Scan(t.Context())
	if got := content(t, dir, w.file); got != w.healthy {
		t.Errorf("without the fault the scan leaves %q, want %q", got, w.healthy)
	}
	v, known := n.options.Ledger.Record(w.id()).Values()[enforce.File(w.file)]
	if known != w.wished || v.Failed != nil || known && v.Read != w.healthy {
		t.Errorf("then the record is %+v", v)
	}
}

func (w *faultyWrite) wantFailure(t *testing.T, events []observe.Event, errno syscall.Errno, code abi.Errno) {
	t.Helper()
	failed := observe.All[*observe.CgroupFileFailed](events)
	if len(failed) != 1 {
		t.Fatalf("%d failures are reported, want one: %v", len(failed), failed)
	}
	e := failed[0]
	undo := !w.wished && w.answer == codes.OK
	if (e.Plugin == "") != undo || e.File != w.file || e.Pod != "web" || (e.ContainerID == "") != w.pod {
		t.Errorf("the event is %+v", e)
	}
	reason := errno.Error()
	if errno == syscall.ENOENT {
		reason = "this kernel has no " + w.file
	}
	if !errors.Is(e.Err, code) || !strings.Contains(e.Err.Error(), reason) {
		t.Errorf("the error is %v, want %v and %q", e.Err, code, reason)
	}
}

// wantRecord compares the record, also as a restarted proxy reads it, with what the kernel holds.
func (w *faultyWrite) wantRecord(t *testing.T, n *node, state string) {
	t.Helper()
	restarted, err := enforce.OpenLedger(t.Context(), state, observe.Discard())
	n.must(err)
	defer restarted.Close()
	for _, l := range []*enforce.Ledger{n.options.Ledger, restarted} {
		v, known := l.Record(w.id()).Values()[enforce.File(w.file)]
		if w.answer != codes.OK { // no such pod is there
			if known {
				t.Errorf("of a refused pod is left %+v", v)
			}
			continue
		}
		if (len(v.Wishes) > 0) != w.wished || v.Failed == nil || v.Writing != "" || v.Kubelet == nil {
			t.Errorf("the record is %+v", v)
		} else if *v.Kubelet != w.held && v.Read != w.held {
			t.Errorf("the kernel holds %q, and the record is %+v", w.held, v)
		}
	}
	if objects := restarted.Objects(); (len(objects) > 0) != (w.answer == codes.OK) || slices.ContainsFunc(objects, func(id enforce.ID) bool { return id.Pod != "u1" }) {
		t.Errorf("the state directory has records of %v", objects)
	}
}

// resources counts goroutines and open files. The function that it returns makes sure that there are no more
// by then.
func resources(t *testing.T) (same func()) {
	files := func() int { return len(entries(t, "/proc/self/fd")) }
	goroutines, open := runtime.NumGoroutine(), files()
	return func() {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > goroutines && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		if g, o := runtime.NumGoroutine(), files(); g > goroutines || o > open {
			t.Errorf("%d goroutines and %d open files, and %d and %d before", g, o, goroutines, open)
		}
	}
}

func entries(t *testing.T, dir string) (names []string) {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names
}

// TestContainerDiesBeforeAWrite has the cgroup of a container go before each kind of write. The call's outcome
// is the runtime's, no write has failed, since the runtime knows the container no more, and nothing is left once it is removed.
func TestContainerDiesBeforeAWrite(t *testing.T) {
	dies := func() {}
	writes := faultyWrites(t, func() { dies() })
	for _, w := range writes {
		if w.pod {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			var events observe.Recorder
			fs, _, container := scratchGroup(t)
			state := filepath.Join(t.TempDir(), "state")
			n := newNode(t, w.plugins, withCgroups(fs), withLedger(openLedger(t, state)), withObserver(&events))
			w.before(n, container)
			events.Take()
			dies = func() { n.must(os.RemoveAll(container)) }
			n.updating = dies
			switch w.name {
			case "repair by a scan", "undo":
				dies()
			case "repair after an update":
				w.step = func(n *node, _ string) error { return n.updateC1(&runtimeapi.LinuxContainerResources{CpuShares: 7}) }
			}
			n.must(w.step(n, container))
			n.options.Scan(t.Context())
			if failed := observe.All[*observe.CgroupFileFailed](events.Take()); len(failed) > 0 {
				t.Errorf("failures are reported: %v", failed)
			}
			_, err := n.call(t.Context(), "RemoveContainer", &runtimeapi.RemoveContainerRequest{ContainerId: "c1"}, &runtimeapi.RemoveContainerResponse{})
			n.must(err)
			if saved := openLedger(t, state).Objects(); len(saved) > 0 || n.options.Ledger.Record(w.id()).Has() {
				t.Errorf("of a removed container are left %v and %v", saved, n.options.Ledger.Record(w.id()).Values())
			}
		})
	}
}
