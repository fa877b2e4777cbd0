package intercept_test

import (
	"os"
	"path/filepath"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

var podU1 = enforce.ID{Pod: "u1"}

// highOfPod is a node whose plugin sets memory.high of pods, and the cgroup of pod u1.
func highOfPod(t *testing.T, opts ...option) (n *node, fs *cgroup.FS, dir string) {
	fs, dir, _ = scratchGroup(t)
	return newNode(t, []plugin.Member{on(abi.PreRunPodSandbox, write(abi.Pod, "memory.high", "8192000"))}, append(opts, withCgroups(fs))...), fs, dir
}

func (n *node) runSandbox(id string) {
	n.t.Helper()
	_, err := n.call(n.t.Context(), "RunPodSandbox", &runtimeapi.RunPodSandboxRequest{Config: podConfig()}, &runtimeapi.RunPodSandboxResponse{PodSandboxId: id})
	n.must(err)
}

func (n *node) removeSandbox(id string) {
	n.t.Helper()
	_, err := n.call(n.t.Context(), "RemovePodSandbox", &runtimeapi.RemovePodSandboxRequest{PodSandboxId: id}, &runtimeapi.RemovePodSandboxResponse{})
	n.must(err)
}

// kubelets is what the ledger has as kubelet's memory.high of pod u1.
func (n *node) kubelets() string {
	if v := n.options.Ledger.Record(podU1).Values()[enforce.File("memory.high")].Kubelet; v != nil {
		return *v
	}
	return "not known"
}

// The cgroup of a pod is that of all its sandboxes: kubelet's value of it is known until the
// cgroup goes, and undone then. While there is no sandbox, nothing is repaired.
func TestRecordOfAPodOutlivesItsSandboxes(t *testing.T) {
	n, _, dir := highOfPod(t)
	n.runSandbox("pod1")
	n.runSandbox("pod2")
	n.removeSandbox("pod1")
	n.removeSandbox("pod2")
	if got := n.kubelets(); got != "max" {
		t.Fatalf("without a sandbox kubelet's value is %s", got)
	}
	if _, err := n.options.Explain(t.Context(), "web"); err == nil {
		t.Error("a pod without a sandbox is explained")
	}
	put(t, dir, "memory.high", "777")
	n.options.Scan(t.Context())
	if got := content(t, dir, "memory.high"); got != "777" {
		t.Errorf("a scan has repaired a pod without a sandbox: memory.high is %s", got)
	}
	put(t, dir, "memory.high", "8192000")
	n.runSandbox("pod3")
	if got := n.kubelets(); got != "max" {
		t.Errorf("with another sandbox kubelet's value is %s", got)
	}
	put(t, dir, "memory.high", "777")
	n.options.Scan(t.Context())
	if got := content(t, dir, "memory.high"); got != "8192000" {
		t.Errorf("with another sandbox memory.high is %s", got)
	}
	n.removeSandbox("pod3")
	n.withdraw("10-test")
	if got := content(t, dir, "memory.high"); got != "777" || n.options.Ledger.Record(podU1).Has() {
		t.Errorf("without the plugin memory.high is %s, and the record %v", got, n.options.Ledger.Record(podU1).Values())
	}
}

// A plugin that does not ask again keeps its value with the pod's next sandbox.
func TestNextSandboxHasTheValuesOfItsPod(t *testing.T) {
	n, fs, dir := highOfPod(t)
	n.runSandbox("pod1")
	n.removeSandbox("pod1")
	put(t, dir, "memory.high", "777")
	m := n.with(withCgroups(fs))
	m.runSandbox("pod2")
	if got := content(t, dir, "memory.high"); got != "8192000" {
		t.Errorf("memory.high is %s", got)
	}
}

// The record of a pod without a sandbox ends when its cgroup is gone: with the last sandbox, at a
// scan, with the pod's next sandbox, and at a start.
func TestRecordOfAPodEndsWithItsCgroup(t *testing.T) {
	for name, seen := range map[string]func(n *node){
		"by a scan": func(n *node) { n.options.Scan(n.t.Context()) },
		"by the next sandbox": func(n *node) {
			m := n.with(withCgroups(n.options.Cgroups))
			m.runSandbox("pod2")
		},
		"at a start": func(n *node) { resync(n.t.Context(), &n.options.Enforcer) },
	} {
		t.Run(name, func(t *testing.T) {
			n, _, dir := highOfPod(t)
			n.runSandbox("pod1")
			n.removeSandbox("pod1")
			if !n.options.Ledger.Record(podU1).Has() {
				t.Fatal("the record is gone before the cgroup")
			}
			n.must(os.RemoveAll(dir))
			seen(n)
			if n.options.Ledger.Record(podU1).Has() {
				t.Errorf("the record is %v", n.options.Ledger.Record(podU1).Values())
			}
		})
	}
	n, _, dir := highOfPod(t)
	n.runSandbox("pod1")
	n.must(os.RemoveAll(dir))
	n.removeSandbox("pod1")
	if n.options.Ledger.Record(podU1).Has() {
		t.Error("the record has outlived the last sandbox and the cgroup")
	}
}

// After a restart of the proxy, a pod whose last sandbox went meanwhile is as one whose sandbox
// goes while the proxy runs.
func TestRecordOfAPodWithoutASandboxAfterARestart(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	n, fs, dir := highOfPod(t, withLedger(openLedger(t, state)))
	n.runSandbox("pod1")
	m := newNode(t, nil, withCgroups(fs), withLedger(openLedger(t, state)))
	put(t, dir, "memory.high", "777")
	resync(t.Context(), &m.options.Enforcer)
	if got := content(t, dir, "memory.high"); got != "777" || m.kubelets() != "max" {
		t.Errorf("memory.high is %s, kubelet's is %s", got, m.kubelets())
	}
	n.must(os.RemoveAll(dir))
	m.options.Scan(t.Context())
	if m.options.Ledger.Record(podU1).Has() {
		t.Errorf("the record is %v", m.options.Ledger.Record(podU1).Values())
	}
}

// A pod without a sandbox gets another one while no call is intercepted: a scan then repairs its
// values again.
func TestPodWhoseNextSandboxWasMadeByABypassedCall(t *testing.T) {
	n, _, dir := highOfPod(t)
	n.runSandbox("pod1")
	n.removeSandbox("pod1")
	n.options.Store.Observe(nil, &runtimeapi.RunPodSandboxRequest{Config: podConfig()}, &runtimeapi.RunPodSandboxResponse{PodSandboxId: "pod2"})
	resync(t.Context(), &n.options.Enforcer)
	put(t, dir, "memory.high", "777")
	n.options.Scan(t.Context())
	if got := content(t, dir, "memory.high"); got != "8192000" {
		t.Errorf("with another sandbox memory.high is %s", got)
	}
}

// A cgroup that cannot be looked up may be there, and the record of its pod stays.
func TestRecordOfAPodWhoseCgroupCannotBeLookedUp(t *testing.T) {
	n, _, dir := highOfPod(t)
	n.runSandbox("pod1")
	aside := dir + ".aside"
	n.must(os.Rename(dir, aside))
	n.must(os.Symlink(filepath.Base(dir), dir)) // to itself: the kernel answers ELOOP
	n.removeSandbox("pod1")
	n.options.Scan(t.Context())
	n.must(os.Remove(dir))
	n.must(os.Rename(aside, dir))
	if got := n.kubelets(); got != "max" {
		t.Errorf("kubelet's value is %s, want max", got)
	}
}

// Each sandbox of a pod without a UID has a record of its own, which ends with the sandbox.
func TestRecordOfAPodWithoutAUID(t *testing.T) {
	n, _, _ := highOfPod(t)
	config := podConfig()
	config.Metadata.Uid = ""
	_, err := n.call(t.Context(), "RunPodSandbox", &runtimeapi.RunPodSandboxRequest{Config: config}, &runtimeapi.RunPodSandboxResponse{PodSandboxId: "pod1"})
	n.must(err)
	if got := n.options.Ledger.Objects(); len(got) != 1 {
		t.Fatalf("the records are those of %v, want one", got)
	}
	n.removeSandbox("pod1")
	if got := n.options.Ledger.Objects(); len(got) != 0 {
		t.Errorf("after the sandbox there are records of %v", got)
	}
}

// A pod without a UID has another name after a restart of the proxy, as a container that Docker named.
// The values of its container are still known, and undone without the plugin.
func TestRecordOfAContainerWhosePodHasAnotherName(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	old := enforce.ID{Pod: "/docker/unnamed-x/0", Container: "c1"}
	now := enforce.ID{Pod: "/docker/happy_bell/0", Container: "c1"}
	l := openLedger(t, state)
	n, _, dir := running(t, withLedger(l))
	l.Record(enforce.ID{Pod: "u1", Container: "c1"}).Move(old.Pod)
	config := podConfig()
	config.Metadata = &runtimeapi.PodSandboxMetadata{Name: "happy_bell", Namespace: "docker"}
	n.store.Observe(nil, &runtimeapi.RunPodSandboxRequest{Config: config}, &runtimeapi.RunPodSandboxResponse{PodSandboxId: "pod1"})
	for range 2 {
		n.options.Ledger = openLedger(t, state)
		resync(t.Context(), &n.options.Enforcer)
		if l := n.options.Ledger; !l.Record(now).Has() || l.Record(old).Has() {
			t.Fatalf("the records are those of %v, want %v", l.Objects(), now)
		}
	}
	n.withdraw("10-test")
	if idle, high := content(t, dir, "cpu.idle"), content(t, dir, "memory.high"); idle != "0" || high != "max" {
		t.Errorf("without the plugin cpu.idle is %s, memory.high is %s", idle, high)
	}
}

// The records of a sandbox's containers end with it.
func TestRecordsOfContainersEndWithTheirSandbox(t *testing.T) {
	n, _, _ := running(t)
	n.options.Ledger.Record(podU1).Ask(enforce.Asked{Target: enforce.File("memory.high"), Wish: enforce.Wish{Plugin: "10-test", Value: "8192000"}})
	n.options.Scan(t.Context())
	n.removeSandbox("pod1")
	if got := n.options.Ledger.Objects(); len(got) != 1 || got[0] != podU1 {
		t.Errorf("the records are those of %v", got)
	}
}
