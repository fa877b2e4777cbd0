package enforce_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wasmproxy/wasmproxy/runtime/enforce"
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
		text := ""
		for container, group := range map[string]string{"": test.pod, id: test.container} {
			const values = `"values":{"file memory.max":{"wishes":[{"plugin":"10-a","value":"4096"}]}}`
			text += fmt.Sprintf(`{"version":1,"pod":%q,"container":%q,"group":%q,%s}`+"\n", uid, container, group, values)
		}
		if err := os.WriteFile(filepath.Join(dir, "journal"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		recorder := new(observe.Recorder)
		l, err := enforce.OpenLedger(t.Context(), dir, recorder)
		if err != nil {
			t.Fatal(err)
		}
		reason := l.Ignored(uid)
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

// TestJournalOfOthers: a journal that another user may have written is ignored, and one that is a pipe. The next change makes another
// one, and it stays known that owners of values are not.
func TestJournalOfOthers(t *testing.T) {
	for name, test := range map[string]struct {
		give func(file string) error
		want string
	}{
		"mode":  {func(file string) error { return os.Chmod(file, 0o620) }, "the journal has mode 0620, and others may use it"},
		"owner": {func(file string) error { return os.Chown(file, 12345, -1) }, "the journal does not belong to user 0"},
		"pipe":  {func(file string) error { return errors.Join(os.Remove(file), unix.Mkfifo(file, 0o600)) }, "the journal is not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "owner" && os.Geteuid() != 0 {
				t.Skip("only root gives files away")
			}
			dir := filepath.Join(t.TempDir(), "state")
			u1, u2 := enforce.ID{Pod: "u1"}, enforce.ID{Pod: "u2"}
			openState(t, dir).Record(u1).Ask(wish("10-a", "cpu.idle", "1"))
			if l := openState(t, dir); l.Ignored("u1") != nil || !l.Record(u1).Has() {
				t.Fatalf("an own journal was ignored: %v", l.Ignored("u1"))
			}
			if err := test.give(filepath.Join(dir, "journal")); err != nil {
				t.Fatal(err)
			}
			l := openState(t, dir)
			if reason := l.Ignored("u1"); reason == nil || !strings.Contains(reason.Error(), test.want) || l.Record(u1).Has() {
				t.Errorf("the journal was ignored: %v; want %s", reason, test.want)
			}
			l.Record(u2).Ask(wish("10-a", "cpu.idle", "1"))
			l = openState(t, dir)
			if reason := l.Ignored("u1"); reason == nil || !strings.Contains(reason.Error(), test.want) || !l.Record(u2).Has() {
				t.Errorf("after a change and a restart the journal was ignored: %v; the records are those of %v", reason, l.Objects())
			}
		})
	}
}
