package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/cmd/wasmproxy/demo"
	plugins "github.com/wasmproxy/wasmproxy/plugins-wasm"
	"github.com/wasmproxy/wasmproxy/runtime/explain"
)

var update = flag.Bool("update", false, "write the golden files anew")

// checkGolden compares a text with a file of testdata.
func checkGolden(t *testing.T, file, got string) {
	t.Helper()
	file = filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test ./cmd/wasmproxy -run %s -update writes it anew); got:\n%s", file, t.Name(), got)
	}
}

// demoPod is the demonstration's pod with plugin qos, and the explain command for its proxy.
func demoPod(t *testing.T) (dir string, explained func(args ...string) (code int, stdout, stderr string)) {
	t.Helper()
	parent, err := os.MkdirTemp("", "wp") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(parent, "demo")
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- demo.Run(ctx, io.Discard, demo.Options{Hold: dir}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		os.RemoveAll(parent)
	})
	explained = func(args ...string) (int, string, string) {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), newRoot(""), append([]string{"explain", "--admin-socket", filepath.Join(dir, "admin.sock")}, args...), &stdout, &stderr)
		return code, times.ReplaceAllString(stdout.String(), "2026-01-02T03:04:05Z"), stderr.String()
	}
	await(t, "the end of the show", func() bool {
		_, _, err := explained("shop/web")
		return strings.Contains(err, "no plugin is loaded") && installed(t, dir)
	})
	return dir, explained
}

var times = regexp.MustCompile(`2\d\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// installed puts plugin qos into the demonstration's directory once the show is over, which is
// when its own plugins are gone.
func installed(t *testing.T, dir string) bool {
	t.Helper()
	files, err := os.ReadDir(filepath.Join(dir, "cgroup", "kubepods", "burstable"))
	if err != nil || len(files) < 2 { // the pod of the show, and the one that is run after it
		return false
	}
	draft := filepath.Join(dir, "draft")
	settings := filepath.Join(dir, "plugins.d", "10-qos.json")
	if err := errors.Join(os.WriteFile(settings, []byte(`{"grant": ["update.others"]}`), 0o644), os.WriteFile(draft, plugins.QoS, 0o644)); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(draft, filepath.Join(dir, "plugins.d", "10-qos.wasm")); err != nil {
		t.Fatal(err)
	}
	return true
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waiting for %s takes too long", what)
		}
	}
}

// The demonstration's pod is explained as in the golden files: as it is, with a value that
// something else has overwritten, and not at all without a plugin.
func TestExplainDemo(t *testing.T) {
	dir, explained := demoPod(t)
	await(t, "the plugin's value", func() bool {
		_, out, _ := explained("web")
		return strings.Contains(out, "20000 by 10-qos") && !strings.Contains(out, "waiting")
	})
	code, out, stderr := explained("shop/web")
	if code != 0 || stderr != "" {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	checkGolden(t, "explain-demo.txt", out)
	_, out, _ = explained("web/web", "--diff")
	checkGolden(t, "explain-demo-diff.txt", out)
	_, out, _ = explained("shop/web/web", "-o", "json")
	var r explain.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.Pods[0].Containers[0].Name != "web" {
		t.Errorf("%v:\n%s", err, out)
	}
	burst := filepath.Join(dir, "cgroup", r.Pods[0].Containers[0].Cgroup, "cpu.max.burst")
	if err := os.WriteFile(burst, []byte("5\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, out, _ = explained("web", "--diff"); !strings.Contains(out, "drift: ") { // a scan may come between, twice in a row it does not
		if err := os.WriteFile(burst, []byte("5\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		_, out, _ = explained("web", "--diff")
		out = regexp.MustCompile(`(?m)^ +repairs: 1;.*\n`).ReplaceAllString(out, "")
		out = strings.Replace(out, "cpu.max.burst  5 ", "cpu.max.burst  0 ", 1) // what the scan found counts as kubelet's
	}
	checkGolden(t, "explain-demo-drift.txt", out)
	if code, _, stderr := explained("shop/wob"); code != 1 || !strings.Contains(stderr, "names like it: shop/web, shop/web/web") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	if err := os.Remove(filepath.Join(dir, "plugins.d", "10-qos.wasm")); err != nil {
		t.Fatal(err)
	}
	await(t, "the end of the plugin", func() bool {
		_, _, stderr := explained("web")
		return strings.Contains(stderr, "no plugin is loaded")
	})
}

// Every condition has its line, and no text of a plugin reaches the terminal as it is.
func TestExplainPrints(t *testing.T) {
	text := func(s string) *string { return &s }
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	wish := func(plugin, value string) explain.Wish {
		return explain.Wish{Plugin: plugin, Hook: "PreCreateContainer", Value: value, Since: at}
	}
	values := []explain.Value{
		{Kind: explain.Field, Name: "cpu_quota", Owner: explain.Kubelet, Kubelet: text("50000"), Sent: text("100000"), Kernel: text("100000"), Condition: explain.Condition{State: explain.Undoing, Detail: "kubelet's comes back"}},
		{Kind: explain.Field, Name: "cpuset_cpus", Owner: explain.Kubelet, Kubelet: text(""), Sent: text("0-1"), Kernel: text("0-1"), Condition: explain.Condition{State: explain.Stays, Detail: "CRI cannot clear it"}},
		{Kind: explain.File, Name: "cpu.idle", Owner: "10-a", Wishes: []explain.Wish{wish("10-a", "1"), wish("20-b", "0")}, Condition: explain.Condition{State: explain.Waiting, Detail: "it is written when the container starts"}},
		{Kind: explain.File, Name: "io.latency", Owner: "10-a", Kubelet: text(""), Wishes: []explain.Wish{wish("10-a", "8:0 target=1\n8:16 target=2")}, Kernel: text("8:0 target=1\n8:16 target=2")},
		{Kind: explain.File, Name: "memory.high", Owner: "10-a", Kubelet: text("max"), Wishes: []explain.Wish{wish("10-a", "1\x1b[31m")}, Kernel: text("777"), Condition: explain.Condition{State: explain.Fight, Detail: "it is left alone"}, Repairs: 5, Found: "777"},
	}
	r := &explain.Report{Pods: []explain.Pod{
		{Namespace: "shop", Name: "web", UID: "u1", Object: explain.Object{State: "ready", Cgroup: "/kubepods/podu1", Values: values[2:3]}, Containers: []explain.Container{
			{Name: "app", Object: explain.Object{ID: "c1", State: "running", Cgroup: "/kubepods/podu1/c1", Values: values}},
			{Name: "plain", Object: explain.Object{ID: "c2", State: "running", Cgroup: "/kubepods/podu1/c2"}},
			{Name: "lost", Object: explain.Object{ID: "c3", State: "running", Unread: "the container is gone", Values: values[:1]}},
		}},
		{Namespace: "shop", Name: "web", Object: explain.Object{State: "notready"}},
		{Namespace: "shop", Name: "db", UID: "u2", Unowned: "a record in state-dir was ignored: line 7: its version is 2\x1b[31m", Object: explain.Object{State: "ready"}, Containers: []explain.Container{
			{Name: "db", Object: explain.Object{ID: "c4", State: "running", Cgroup: "/kubepods/podu2/c4", Values: []explain.Value{
				{Kind: explain.Field, Name: "cpu_quota", Owner: explain.Unknown, Sent: text("100000"), Kernel: text("100000")},
				{Kind: explain.File, Name: "cpu.idle", Owner: explain.Unknown, Kernel: text("1")},
			}}},
		}},
	}}
	var out bytes.Buffer
	if err := printReport(&out, r, false); err != nil {
		t.Fatal(err)
	}
	checkGolden(t, "explain-conditions.txt", out.String())
}

// Of a container whose kernel's values are not known, --diff does not say that it is as kubelet wants it.
func TestExplainDiffOfWhatIsNotKnown(t *testing.T) {
	value := "100000"
	of := explain.Object{
		ID: "c1", State: "running", Unread: "cgroup-root is empty",
		Values: []explain.Value{{Kind: explain.Field, Name: "cpu_quota", Owner: explain.Kubelet, Kubelet: &value, Sent: &value}},
	}
	r := &explain.Report{Pods: []explain.Pod{{Containers: []explain.Container{{Name: "app", Object: of}}}}}
	r.Diff()
	var out bytes.Buffer
	if err := printReport(&out, r, true); err != nil {
		t.Fatal(err)
	}
	const want = "\n  the kernel's values are not known: cgroup-root is empty\n  nothing that is known differs from kubelet's values\n"
	if !strings.HasSuffix(out.String(), want) {
		t.Errorf("it says:\n%s", out.String())
	}
}
