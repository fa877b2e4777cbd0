package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/status"
)

// byFile has the proxy take its settings from a file, which it returns with its content.
func (u *upgraded) byFile() (file, content string) {
	u.t.Helper()
	file = u.dir + "/wasmproxy.yaml"
	for key, value := range map[string]string{
		"listen": u.dir + "/kubelet.sock", "backend": u.dir + "/runtime.sock", "plugin-dir": u.dir + "/plugins.d", "hook-dir": `""`, "cache-dir": `""`,
		"state-dir": u.dir + "/state", "data-dir": u.dir + "/data", "admin-socket": u.admin.Socket, "status-socket": u.dir + "/status/s",
		"bypass-file": u.dir + "/bypass", "cgroup-root": u.cgroups.Dir, "cgroup-mode": "v2", "log-format": "text",
	} {
		content += key + ": " + value + "\n"
	}
	u.must(os.WriteFile(file, []byte(content), 0o644))
	u.args = []string{"serve", "--config", file}
	u.t.Setenv("WASMPROXY_DATA_DIR", u.dir+"/data") // so that no copy goes to the machine's own
	return file, content
}

// copied is the file with the last good settings; "" if there is none.
func (u *upgraded) copied() string {
	all, _ := filepath.Glob(u.dir + "/data/last-good/settings-*.json")
	return strings.Join(all, " ")
}

// awaitCopy waits until the active settings are kept.
func (u *upgraded) awaitCopy() {
	u.t.Helper()
	for end := time.Now().Add(upgradePatience); ; time.Sleep(10 * time.Millisecond) {
		if u.copied() != "" {
			return
		}
		if time.Now().After(end) {
			u.t.Fatal("the settings are not kept")
		}
	}
}

// command runs a command of the program with the settings file.
func (u *upgraded) command(file string, args ...string) (string, error) {
	out, err := exec.CommandContext(u.t.Context(), u.program, append(args, "--config", file)...).CombinedOutput()
	return string(out), err
}

// TestCrashWithABadSettingsFile: the proxy serves with the last good settings with each kind of bad file after a crash, and
// whatever an operator looks at says so. What checks or loads the file refuses it.
func TestCrashWithABadSettingsFile(t *testing.T) {
	u := newUpgraded(t)
	u.put(build(t, u.dir, "v1"))
	file, good := u.byFile()
	u.start()
	u.status(0)
	u.awaitCopy()
	for _, bad := range []struct {
		name, says string
		do         func() error
	}{
		{"key", `unknown key "backed"`, func() error { return os.WriteFile(file, []byte(good+"backed: /run/x.sock\n"), 0o644) }},
		{"not YAML", "config file " + file + ": ", func() error { return os.WriteFile(file, []byte(good+"\tlog-level: [debug\n"), 0o644) }},
		{"value", `cgroup-mode: "v3" is not one of`, func() error {
			return os.WriteFile(file, []byte(strings.Replace(good, "cgroup-mode: v2", "cgroup-mode: v3", 1)), 0o644)
		}},
		{"a start that fails", u.dir + "/none", func() error {
			return os.WriteFile(file, []byte(strings.Replace(good, u.cgroups.Dir, u.dir+"/none", 1)), 0o644)
		}},
	} {
		t.Run(bad.name, func(t *testing.T) {
			u.must(bad.do())
			u.kill()
			u.start()
			s := u.status(0)
			if !s.Settings.LastGood || s.Settings.File != file || !strings.Contains(s.Settings.Error, bad.says) {
				t.Errorf("the settings are %+v", s.Settings)
			}
			if !hasProblem(s, "the settings file cannot be used: ", bad.says, "; the last good settings of ", " are active") {
				t.Errorf("the problems are %q", problems(s))
			}
			_, err := u.kubelet.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: podConfig("web" + bad.name)}, grpc.WaitForReady(true))
			u.must(err)
			client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", u.admin.Socket) }}}
			resp, err := client.Get("http://admin/metrics")
			u.must(err)
			m, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || !strings.Contains(string(m), "\nwasmproxy_settings_load_failed 1\n") {
				t.Errorf("no metric says so: %v", err)
			}
			for _, args := range [][]string{{"status"}, {"plugin", "list"}} {
				if out, err := u.command(file, args...); err != nil || bad.name != "a start that fails" && !strings.Contains(out, "goes by the last good settings") {
					t.Errorf("%q: %v: %s", args, err, out)
				}
			}
			if out, err := u.command(file, "validate"); err == nil || !strings.Contains(out, bad.says) {
				t.Errorf("validate: %v: %s", err, out)
			}
		})
	}
	log, err := os.ReadFile(u.dir + "/log")
	u.must(err)
	if n := strings.Count(string(log), "settings file cannot be used, the last good settings are active"); n != 4 {
		t.Errorf("the log says it %d times", n)
	}

	changed := strings.Replace(good, "cgroup-mode: v2", "cgroup-mode: v2\nlog-level: debug", 1)
	u.must(os.WriteFile(file, []byte(changed), 0o644))
	if s := u.status(0); s.Settings.Error != "" || !s.Settings.Changed || !hasProblem(s, file, "systemctl restart wasmproxy") {
		t.Errorf("the settings are %+v, and the problems %q", s.Settings, problems(s))
	}
	u.restart()
	u.awaitStatus(func(s *status.Status) bool {
		return s.PID == u.pids[len(u.pids)-1] && !s.Settings.Changed && !s.Settings.LastGood
	})
}

// awaitStatus waits until the proxy's state is as wanted.
func (u *upgraded) awaitStatus(wanted func(*status.Status) bool) {
	u.t.Helper()
	var s *status.Status
	for end := time.Now().Add(upgradePatience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if s = u.status(0); wanted(s) {
			return
		}
	}
	u.t.Fatalf("the settings are %+v", s.Settings)
}

// TestBadSettingsFileWithoutAGoodOne: without a copy, or with one that others could have written, the start fails and says
// what is wrong.
func TestBadSettingsFileWithoutAGoodOne(t *testing.T) {
	u := newUpgraded(t)
	u.put(build(t, u.dir, "v1"))
	file, good := u.byFile()
	u.start()
	u.status(0)
	u.awaitCopy()
	u.kill()
	u.must(os.WriteFile(file, []byte(good+"backed: /run/x.sock\n"), 0o644))
	for _, damage := range []struct {
		name string
		do   func() error
	}{
		{"mode", func() error { return os.Chmod(u.copied(), 0o666) }},
		{"no copy", func() error { return os.RemoveAll(u.dir + "/data") }},
	} {
		u.must(damage.do())
		u.start()
		if code := u.awaitEnd(u.pids[len(u.pids)-1]); code != exitUsage {
			t.Errorf("%s: the exit code is %d", damage.name, code)
		}
		log, err := os.ReadFile(u.dir + "/log")
		u.must(err)
		if !strings.Contains(string(log), `unknown key "backed"`) {
			t.Errorf("%s: the log is %s", damage.name, log)
		}
	}
}

// TestValidateExitCodes: settings with which the proxy cannot start are wrong, and a plugin that does not load is another thing.
func TestValidateExitCodes(t *testing.T) {
	dir, none := t.TempDir(), t.TempDir()
	damaged := filepath.Join(dir, "10-damaged.wasm")
	if err := os.WriteFile(damaged, []byte("damaged"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		flag, says string
		want       int
	}{
		{"--plugin-dir=" + none, "no plugin in " + none, exitOK},
		{"--plugin-dir=" + dir, "10-damaged", exitFailure},
		{"--cgroup-mode=v3", "cgroup-mode: ", exitUsage},
		{"--cgroup-root=" + dir + "/none", "open cgroup root " + dir + "/none", exitUsage},
		{"--cache-dir=" + damaged, "making the cache directory", exitUsage},
	} {
		var out bytes.Buffer
		args := []string{"validate", "--cgroup-root=", "--cache-dir=", "--hook-dir=", "--plugin-dir=" + none, test.flag}
		if code := run(t.Context(), newRoot(""), args, &out, &out); code != test.want || !strings.Contains(out.String(), test.says) {
			t.Errorf("%s: exit code %d, want %d: %s", test.flag, code, test.want, &out)
		}
	}
}

// TestRemoveFromHookDir: a module of hook-dir is not called a hook server, and no file is named that is not there.
func TestRemoveFromHookDir(t *testing.T) {
	dir := t.TempDir()
	file, module := dir+"/wasmproxy.yaml", dir+"/hooks/10-module.wasm"
	settings := "plugin-dir: " + dir + "/plugins\nhook-dir: " + dir + "/hooks\n"
	for path, content := range map[string]string{file: settings, module: "module"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	code := run(t.Context(), newRoot(""), []string{"plugin", "remove", "10-module", "--config", file}, &out, &out)
	if _, err := os.Stat(module); code != exitFailure || err != nil || !strings.Contains(out.String(), "10-module is of hook-dir, "+dir+"/hooks") {
		t.Errorf("exit code %d, %v: %s", code, err, &out)
	}
}
