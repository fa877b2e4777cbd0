package ledger_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/runtime/ledger"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// TestForgedRecords: a record names cgroups of pods and containers only, wherever kubelet and container runtimes put them.
// Another one is ignored, and an event says so.
func TestForgedRecords(t *testing.T) {
	const uid, id = "6d2f8a71-19c5-4f0e-8b8e-0a4f5b0d3c11", "91ac5e3b"
	const systemdPod = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod6d2f8a71_19c5_4f0e_8b8e_0a4f5b0d3c11.slice"
	for _, test := range []struct {
		pod, container string
		good           bool
	}{
		{"/kubepods/burstable/pod" + uid, "/kubepods/burstable/pod" + uid + "/" + id, true},
		{systemdPod, systemdPod + "/cri-containerd-" + id + ".scope", true},
		{systemdPod, systemdPod + "/crio-" + id + ".scope/container", true},
		{"/system.slice/kubelet.service/kubelet/kubepods/pod" + uid, "/system.slice/docker-4711.scope/kubelet/kubepods/pod" + uid + "/" + id, true},
		{"/test", "/test/" + id, true}, // as crictl makes pods
		{"", "/system.slice/docker-" + id + ".scope", true},
		{"", "/docker/" + id, true},
		{"/system.slice/kubelet.service", "", false},
		{"/system.slice/containerd.service/pod" + uid, "", false},
		{"/kubepods/kubelet.service", "", false},
		{"/init.scope", "", false},
		{"/system.slice", "", false},
		{"/", "", false},
		{"kubepods/pod" + uid, "", false},
		{"/kubepods/pod" + uid + "/../../system.slice/kubelet.service", "", false},
		{"", "/system.slice/kubelet.service", false},
		{"", "/system.slice/docker-4711.scope", false},
		{"", "/kubepods/pod" + uid + "/../../init.scope", false},
		{"", "/", false},
	} {
		dir := filepath.Join(t.TempDir(), "state")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		const values = `"values": {"file memory.max": {"wishes": [{"plugin": "10-a", "value": "4096"}]}}`
		text := fmt.Sprintf(`{"version": 1, "pod": %q, "group": %q, %s, "containers": {%q: {"group": %q, %[3]s}}}`, uid, test.pod, values, id, test.container)
		if err := os.WriteFile(filepath.Join(dir, uid+".json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		recorder := new(observe.Recorder)
		l, err := ledger.Open(t.Context(), dir, recorder)
		if err != nil {
			t.Fatal(err)
		}
		_, reason := l.Ignored(uid)
		events := recorder.Take()
		if objects, _ := l.Len(); test.good != (reason == nil && objects == 2 && len(events) == 0) {
			t.Errorf("pod %s, container %s: %d objects, ignored: %v, %d events", test.pod, test.container, objects, reason, len(events))
		}
		if !test.good && (reason == nil || !strings.Contains(reason.Error(), "cannot be") || len(events) != 1) {
			t.Errorf("pod %s, container %s: %v, %d events", test.pod, test.container, reason, len(events))
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestFilesOfOthers: a file that another user may have written is ignored.
func TestFilesOfOthers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	openState(t, dir).Ask(ledger.ID{Pod: "u1"}, wish("10-a", "cpu.idle", "1"))
	file := filepath.Join(dir, "u1.json")
	if err := os.Chmod(file, 0o620); err != nil {
		t.Fatal(err)
	}
	if _, reason := openState(t, dir).Ignored("u1"); reason == nil || !strings.Contains(reason.Error(), "has mode 0620, and others may use it") {
		t.Errorf("a file that the group may write is ignored: %v", reason)
	}
	if os.Geteuid() != 0 {
		return // only root gives files away
	}
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, reason := openState(t, dir).Ignored("u1"); reason != nil {
		t.Errorf("an own file is ignored: %v", reason)
	}
	if err := os.Chown(file, 12345, -1); err != nil {
		t.Fatal(err)
	}
	if _, reason := openState(t, dir).Ignored("u1"); reason == nil {
		t.Error("a file of another user is read")
	}
}
