package main

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	plugins "github.com/wasmproxy/wasmproxy/plugins-wasm"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

// kill ends the proxy as a crash does, and waits until it has gone.
func (u *upgraded) kill() {
	u.t.Helper()
	pid := u.pids[len(u.pids)-1]
	u.must(unix.Kill(pid, unix.SIGKILL))
	_, err := unix.Wait4(pid, nil, 0, nil)
	u.must(err)
	u.pids = u.pids[:len(u.pids)-1]
}

// awaitReason waits until status has a problem with all these words.
func (u *upgraded) awaitReason(words ...string) {
	u.t.Helper()
	var s *status.Status
	for end := time.Now().Add(upgradePatience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if s = u.status(1); hasProblem(s, words...) {
			return
		}
	}
	u.t.Fatalf("no problem has %q: %q", words, problems(s))
}

// hasProblem reports whether there is a problem with all these words.
func hasProblem(s *status.Status, words ...string) bool {
	return slices.ContainsFunc(problems(s), func(line string) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) })
	})
}

// TestCrashWithABadFile: the plugin is active as before with each kind of bad file after a crash, pods start, and
// status names the file. So it is after a restart.
func TestCrashWithABadFile(t *testing.T) {
	u := newUpgraded(t)
	u.put(build(t, u.dir, "v1"))
	json, module := u.dir+"/plugins.d/10-qos.json", u.dir+"/plugins.d/10-qos.wasm"
	const good = `{"failure-policy": "Ignore", "order": "15"}`
	for _, bad := range []struct {
		name string
		do   func() error
		says string
	}{
		{"cut off", func() error { return os.Truncate(json, 20) }, "10-qos.json: is not JSON"},
		{"empty", func() error { return os.Truncate(json, 0) }, "10-qos.json: is empty"},
		{"mode", func() error { return os.Chmod(json, 0o664) }, "10-qos.json: is writable by its group"},
		{"owner", func() error { return os.Chown(json, 12345, -1) }, "10-qos.json: belongs to user 12345"},
		{"key", func() error { return os.WriteFile(json, []byte(`{"policy": "Fail"}`), 0o644) }, `10-qos.json: unknown key "policy"`},
		{"module", func() error { return os.Truncate(module, 1000) }, "loading plugin 10-qos: "},
		{"directory", func() error { return os.Chmod(u.dir+"/plugins.d", 0o777) }, "plugins.d: is writable by everyone"},
	} {
		t.Run(bad.name, func(t *testing.T) {
			if bad.name == "owner" && os.Geteuid() != 0 {
				t.Skip("only root gives files away")
			}
			u.must(os.RemoveAll(u.dir + "/plugins.d"))
			u.must(os.RemoveAll(u.dir + "/data"))
			u.must(os.Mkdir(u.dir+"/plugins.d", 0o755))
			u.must(os.WriteFile(json, []byte(good), 0o644))
			u.must(os.WriteFile(module, plugins.QoS, 0o644))
			u.start()
			u.status(1)
			u.awaitSaved("10-qos")
			u.must(bad.do())
			u.kill()
			u.start()
			u.awaitReason("plugin 10-qos: ", bad.says, "; version ", " stays active")
			u.restart()
			u.awaitReason("plugin 10-qos: ", bad.says, "; version ", " stays active")
			_, err := u.kubelet.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: podConfig("web" + bad.name)}, grpc.WaitForReady(true))
			u.must(err)
			u.kill()
		})
	}
}

// awaitSaved waits until a plugin's last good version is saved.
func (u *upgraded) awaitSaved(id string) {
	u.t.Helper()
	for end := time.Now().Add(upgradePatience); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(u.dir + "/data/last-good/plugins/" + id + ".json"); err == nil {
			return
		}
		if time.Now().After(end) {
			u.t.Fatal("no last good version is saved")
		}
	}
}

// TestNewFilesAfterACrash: a version that crashes the proxy whenever it is loaded does not keep out the files that
// replace it. They are loaded first, and the last good version serves while they cannot be.
func TestNewFilesAfterACrash(t *testing.T) {
	u := newUpgraded(t)
	u.startWithPlugin(build(t, u.dir, "v1"))
	u.awaitSaved("10-qos")
	u.kill()
	refusing, err := os.ReadFile("../../testdata/wat/configure-refuse.wasm")
	u.must(err)
	u.must(os.WriteFile(u.dir+"/plugins.d/10-qos.wasm", refusing, 0o644))
	for _, want := range [][]string{{"plugin not loaded", "plugin loaded"}, {"plugin loaded", "plugin not loaded"}} {
		u.must(os.Truncate(u.dir+"/log", 0))
		u.start()
		u.status(1)
		u.awaitReason("plugin 10-qos: ", "loading plugin 10-qos: ", " stays active")
		log, err := os.ReadFile(u.dir + "/log")
		u.must(err)
		if first, second := strings.Index(string(log), want[0]), strings.Index(string(log), want[1]); first < 0 || second < first {
			t.Errorf("the log does not have %q before %q:\n%s", want[0], want[1], log)
		}
		u.must(unix.Kill(u.pids[len(u.pids)-1], unix.SIGTERM)) // the next one starts after an orderly end
		u.awaitEnd(u.pids[len(u.pids)-1])
	}
}
