package daemon_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/admin"
	"github.com/wasmproxy/wasmproxy/runtime/daemon"
	"github.com/wasmproxy/wasmproxy/runtime/recording"
)

// recorded is a node with a plugin that sets a quota, which is being recorded: the first line has come.
func recorded(t *testing.T, o recording.Options) (n *node, pod string, lines *bufio.Reader, close func()) {
	t.Helper()
	n = newNode(t)
	n.config.AdminSocket = filepath.Join(n.dir, "admin.sock")
	n.put("20-quota.wasm", "quota")
	n.register("server.json", `{"remote-endpoint": "/nobody/listens.sock", "runtime-hooks": ["PostStopPodSandbox"]}`)
	n.start(daemon.Run)
	n.awaitActive("20-quota", "server")
	n.awaitSocket()
	pod, err := n.runPod(t.Context(), "web")
	n.must(err)
	stream, err := admin.Client{Socket: n.config.AdminSocket}.Record(t.Context(), "20-quota", o)
	n.must(err)
	t.Cleanup(func() { stream.Close() })
	lines = bufio.NewReader(stream)
	first, err := lines.Peek(len(`{"recording":1,"plugin":"20-quota"`))
	n.must(err)
	if string(first) != `{"recording":1,"plugin":"20-quota"` {
		t.Fatalf("the recording begins with %s", first)
	}
	return n, pod, lines, func() { stream.Close() }
}

func (n *node) create(pod string, from, to int) {
	n.t.Helper()
	for i := from; i < to; i++ {
		_, err := n.createContainer(n.t.Context(), pod, fmt.Sprint("app-", i))
		n.must(err)
	}
}

// readRecording reads until the end of the stream.
func readRecording(t *testing.T, lines io.Reader) *recording.Recording {
	t.Helper()
	rec, err := recording.Read(lines)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// A recording has each call of the plugin, what is known of it and of the node, and ends with the version that is recorded.
func TestRecordingEndsWithItsVersion(t *testing.T) {
	n, pod, lines, _ := recorded(t, recording.DefaultOptions())
	n.create(pod, 0, 3)
	n.put("20-quota.json", `{"config": {"a": 1}}`)
	rec := readRecording(t, lines)
	if len(rec.Calls) != 3 || rec.End == nil || rec.End.Reason != recording.EndClosed || rec.End.Calls != 3 || rec.End.Dropped.All() != 0 {
		t.Fatalf("%d calls, and the last line is %+v", len(rec.Calls), rec.End)
	}
	if rec.Name != "quota" || len(rec.Digest) != 64 || len(rec.Hooks) != 1 || rec.Node.Kernel == "" || time.Since(rec.Time) > time.Hour {
		t.Errorf("the first line is %+v", rec.Header)
	}
	for i, c := range rec.Calls {
		about := fmt.Sprintf("PreCreateContainer app-%d %s", i, pod)
		if got := c.Name + " " + c.Container.Name + " " + c.Pod.ID; got != about || len(c.Asked) != 2 || c.Fuel == 0 || c.Took == 0 || c.Time == 0 {
			t.Errorf("call %d is %s, %+v", i, got, c)
		}
	}
}

// A recording ends when it is to, and at so many bytes. What exceeds the rate is counted.
func TestRecordingIsBounded(t *testing.T) {
	o := recording.DefaultOptions()
	o.Rate, o.For = 1, 10*time.Second
	n, pod, lines, _ := recorded(t, o)
	began := time.Now()
	n.create(pod, 0, 5)
	rec := readRecording(t, lines)
	most := int(time.Since(began)/time.Second) + 1
	if end := rec.End; end == nil || end.Reason != recording.EndTime || end.Calls+end.Dropped.Rate != 5 || end.Calls > most {
		t.Errorf("the last line is %+v", rec.End)
	}
	o = recording.DefaultOptions()
	o.Max = 1200
	n, pod, lines, _ = recorded(t, o)
	n.create(pod, 0, 5)
	if rec := readRecording(t, lines); rec.End == nil || rec.End.Reason != recording.EndBytes || len(rec.Calls) > 4 {
		t.Errorf("%d calls, and the last line is %+v", len(rec.Calls), rec.End)
	}
}

// A reader that takes nothing keeps neither calls nor the end of the proxy; one that goes away ends the recording.
func TestRecordingCostsNoCall(t *testing.T) {
	o := recording.DefaultOptions()
	o.Rate = recording.MaxRate
	n, pod, _, _ := recorded(t, o)
	n.create(pod, 0, 300)
	n.end()
	n, pod, lines, closeStream := recorded(t, o)
	closeStream()
	n.create(pod, 0, 3)
	if text, err := io.ReadAll(lines); err == nil {
		t.Errorf("after it was closed the stream has %s", text)
	}
}

// What cannot be recorded, or is being recorded, is an error that says why.
func TestRecordingRefused(t *testing.T) {
	n, _, _, _ := recorded(t, recording.DefaultOptions())
	c := admin.Client{Socket: n.config.AdminSocket}
	o := recording.DefaultOptions()
	wrong := o
	wrong.For = 0
	for _, want := range []struct {
		id   string
		o    recording.Options
		text string
	}{
		{"30-none", o, `there is no plugin "30-none"; wasmproxy plugin list shows the ids`},
		{"server", o, "plugin server is a hook server: only plugins that are WebAssembly modules can be recorded"},
		{"20-quota", wrong, "--for: must be greater than 0"},
		{"20-quota", o, "plugin 20-quota is being recorded already"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		if _, err := c.Record(ctx, want.id, want.o); err == nil || !strings.Contains(err.Error(), want.text) {
			t.Errorf("%s: %v, want %s", want.id, err, want.text)
		}
		cancel()
	}
}
