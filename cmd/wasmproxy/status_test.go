package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/status"
)

// changing is what of a status depends on the moment and the machine.
var changing = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`\d+(\.\d+)?(µs|ms)`), "1.0ms"},
	{regexp.MustCompile(`\b(\d+m)?\d+s\b`), "1s"},
	{regexp.MustCompile(`\d+ calls answered`), "9 calls answered"},
	{regexp.MustCompile(`[\d.]+ MiB of`), "1.0 MiB of"},
	{regexp.MustCompile(`PID \d+(, user \d+)?`), "PID 1"},
	{regexp.MustCompile(`  +`), "  "},
}

// The demonstration's proxy shows its state as in the golden file.
func TestStatusOfTheDemo(t *testing.T) {
	dir, explained := demoPod(t)
	await(t, "the plugin's value", func() bool {
		_, out, _ := explained("web")
		return strings.Contains(out, "20000 by 10-qos") && !strings.Contains(out, "waiting")
	})
	ask := func(args ...string) string {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), newRoot(""), append(args, "--admin-socket", filepath.Join(dir, "admin.sock")), &stdout, &stderr); code != 0 {
			t.Errorf("%q: exit code %d, %s", args, code, stderr.String())
		}
		return stdout.String()
	}
	out := regexp.MustCompile(`/\S*/(kubelet|runtime)\.sock`).ReplaceAllString(ask("status"), "$1.sock")
	out = strings.ReplaceAll(out, dir, "demo")
	for _, c := range changing {
		out = c.what.ReplaceAllString(out, c.with)
	}
	checkGolden(t, "status-demo.txt", out)
	var s status.Status
	if err := json.Unmarshal([]byte(ask("status", "-o", "json")), &s); err != nil || len(s.Plugins.Plugins) != 1 || s.Plugins.Plugins[0].State != status.Active || s.Plugins.Plugins[0].Calls == 0 || s.Plugins.Plugins[0].P99 == 0 || len(s.Peers) != 1 || s.Peers[0].PID != os.Getpid() {
		t.Errorf("%v, %+v", err, s)
	}
	file := filepath.Join(dir, "plugins.d", "10-qos.json")
	if err := errors.Join(os.WriteFile(file, []byte(`{"order": "10"}`), 0), os.Chmod(file, 0o640)); err != nil {
		t.Fatal(err)
	}
	const args = "--plugin-dir=" // the demonstration has a directory of its own
	if out := ask("plugin", "disable", "10-qos", args+filepath.Join(dir, "plugins.d")); !strings.Contains(out, "10-qos  disabled") {
		t.Error(out)
	}
	text, _ := os.ReadFile(file)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o640 || string(text) != `{"enabled": false, "order": "10"}` {
		t.Errorf("the file is %v, %v: %s", info, err, text)
	}
	if out := ask("plugin", "list"); !strings.Contains(out, "10-qos  disabled") {
		t.Error(out)
	}
	if out := ask("plugin", "enable", "10-qos", args+filepath.Join(dir, "plugins.d")); !strings.Contains(out, "10-qos  active") {
		t.Error(out)
	}
	for _, file := range []string{filepath.Join(dir, "plugins.d", "10-qos.json"), filepath.Join(dir, "plugins.d", "10-qos.wasm")} {
		if err := os.Remove(file); err != nil {
			t.Error(err)
		}
	}
}

// Problems come first: a bypass, a breaker that is open, files that cannot be loaded, a runtime that is
// gone. No text of a plugin reaches the terminal as it is.
func TestStatusPrints(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	s := status.Status{
		Version: "v1.2.3", Now: now, Started: ago(76 * time.Hour), NotReady: []string{
			"plugin 20-bad: /etc/wasmproxy/plugins.d/20-bad.json: unknown key \"polcy\", since 2026-01-02T03:03:05Z; version 1.4.0 of 2025-12-20T10:00:00Z stays active",
			"plugin 30-fail with policy Fail is refusing until it is loaded",
		},
		Bypass: status.Bypass{On: true, File: "/etc/wasmproxy/bypass", Since: ago(65 * time.Minute), Reason: "INC 4711"},
		Listen: "unix:///run/wasmproxy/wasmproxy.sock", Connections: 2, Calls: 12345,
		Peers:   []status.Peer{{PID: 812, Program: "kubelet", Since: ago(75 * time.Hour), Connections: 1}, {PID: 40404, Program: "crictl", UID: 1000, Since: ago(time.Second), Connections: 1}},
		Backend: status.Backend{Endpoint: "unix:///run/containerd/containerd.sock"},
		Store:   status.Store{State: "filled", Pods: 12, Containers: 30}, Cgroup: status.Cgroup{Root: "/sys/fs/cgroup", Version: 2, Driver: "systemd"},
		Values: status.Values{StateDir: "/run/wasmproxy/state", Objects: 1, Wanted: 3, Saved: true}, Guests: status.Guests{Memory: 5 << 20, Limit: 256 << 20},
		Plugins: status.Plugins{Plugins: []status.Plugin{
			{ID: "10-qos", State: status.Active, Since: ago(time.Hour), Hooks: []string{"PreCreateContainer", "PreUpdateContainerResources"}, Policy: "Ignore", Active: &status.Version{Version: "1.0.0"},
				Breaker: "open", BreakerUntil: now.Add(time.Minute), Counts: status.Counts{Calls: 400, Failures: 5, Rejections: 7, Exempted: 3, P50: 0.00004, P99: 0.0123, LastError: &status.Failure{At: ago(3 * time.Second), Hook: "PreCreateContainer", Error: "it \x1b[2J failed"}}},
			{ID: "20-bad", State: status.Active, Since: ago(time.Minute), Policy: "Ignore", DryRun: true, Active: &status.Version{Version: "1.4.0"},
				Failure: &status.FileFailure{Error: "/etc/wasmproxy/plugins.d/20-bad.json: unknown key \"polcy\"", Since: ago(time.Minute), Meanwhile: "version 1.4.0 of 2025-12-20T10:00:00Z stays active"}},
			{ID: "30-fail", State: status.Refusing, Since: ago(2 * time.Second), Hooks: []string{"PreExec", "PreAttach", "PrePortForward", "PreExecSync"}, Policy: "Fail", Pending: &status.Version{State: "loading", Since: ago(2 * time.Second)}},
			{ID: "40-off", State: status.Disabled, Policy: "Ignore"},
		}},
	}
	var out bytes.Buffer
	if err := printStatus(&out, &s); err != nil {
		t.Fatal(err)
	}
	checkGolden(t, "status-problems.txt", out.String())
	if strings.Contains(out.String(), "\x1b") {
		t.Error("an escape sequence of a plugin reaches the terminal")
	}
}

// TestStatusTellsOfUnsavedState: that a restart would lose something is a problem.
func TestStatusTellsOfUnsavedState(t *testing.T) {
	s := status.Status{Backend: status.Backend{Connected: true}, Values: status.Values{StateDir: "/run/wasmproxy/state"}}
	if got := problems(&s); len(got) != 1 || !strings.Contains(got[0], "state-dir or data-dir cannot be written") {
		t.Errorf("the problems are %q", got)
	}
}

// TestStatusOfABreakerWhoseTimeHasPassed: no time of the past is one until which a plugin is not called.
func TestStatusOfABreakerWhoseTimeHasPassed(t *testing.T) {
	now := time.Now()
	s := status.Status{Now: now, Backend: status.Backend{Connected: true}, Values: status.Values{Saved: true}, Plugins: status.Plugins{Plugins: []status.Plugin{
		{ID: "10-a", Breaker: "open", BreakerUntil: now.Add(-time.Hour)}, {ID: "20-b", Breaker: "half-open", BreakerUntil: now.Add(-time.Hour)}, {ID: "30-c", Breaker: "closed"},
	}}}
	want := []string{"plugin 10-a: its breaker is open: its next call tries it", "plugin 20-b: its breaker is half-open: a call tries it now"}
	if got := problems(&s); !slices.Equal(got, want) {
		t.Errorf("the problems are %q", got)
	}
}

// TestStatusPeers: no name of a process reaches the terminal as it is, and many processes have one line.
func TestStatusPeers(t *testing.T) {
	now := time.Now()
	peers := []status.Peer{{PID: 7, Program: "a\x1b[2Jb", Since: now.Add(-time.Second), Connections: 2}, {Since: now, Connections: 1}}
	want := `a\x1b[2Jb (PID 7) with 2 connections for 1s, unknown (PID 0) with 1 connection for 0s`
	if got := peersText(peers, now); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	peers = append(peers, peers...)
	if got := peersText(append(peers, peers...), now); got != want+", "+want+", 4 more" {
		t.Errorf("got %s", got)
	}
	if got, want := peersText(nil, now), "none: kubelet does not use the proxy"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestStatusNamesPodsOfIgnoredRecords: each has a line with the reason, but for those after the first three.
func TestStatusNamesPodsOfIgnoredRecords(t *testing.T) {
	s := status.Status{Backend: status.Backend{Connected: true}, Values: status.Values{Saved: true, Ignored: map[string]string{
		"u1": "line 1: its version is 2", "": "line 2: unexpected end of JSON input",
	}}}
	want := []string{
		"a record in state-dir of a pod that is not known was ignored: line 2: unexpected end of JSON input; owners are unknown of values that the pod had before",
		"a record in state-dir of the pod with UID u1 was ignored: line 1: its version is 2; owners are unknown of values that the pod had before",
	}
	if got := problems(&s); !slices.Equal(got, want) {
		t.Errorf("the problems are %q, want %q", got, want)
	}
	for _, uid := range []string{"u3", "u4", "u5"} {
		s.Values.Ignored[uid] = "it is damaged"
	}
	if got := problems(&s); len(got) != 4 || got[3] != "records in state-dir of 2 more pods were ignored" {
		t.Errorf("of five pods the problems are %q", got)
	}
}

// TestListWithoutAProxy: the list of the files has no time that nobody knows, and what is wrong beside its plugins is an error.
func TestListWithoutAProxy(t *testing.T) {
	dir := t.TempDir()
	plugins, hooks := filepath.Join(dir, "plugins.d"), filepath.Join(dir, "hookserver.d")
	err := errors.Join(os.Mkdir(plugins, 0o755), os.Mkdir(hooks, 0o755), os.Chmod(hooks, 0o777), os.WriteFile(filepath.Join(plugins, "10-bad.json"), []byte("{"), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), newRoot(""), []string{
		"plugin", "list", "--config", "", "--admin-socket", filepath.Join(dir, "admin.sock"), "--plugin-dir", plugins, "--hook-dir", hooks,
	}, &stdout, &stderr)
	if code != exitFailure || !strings.Contains(stderr.String(), hooks+": is writable by everyone") || strings.Contains(stderr.String(), "10-bad") {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
	if out := stdout.String(); strings.Contains(out, "since") || !strings.Contains(out, "unexpected end of JSON input; no proxy runs") {
		t.Errorf("got %s", out)
	}
}
