package demo

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	plugins "github.com/wasmproxy/wasmproxy/plugins-wasm"
)

// screen is what the user reads.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
	read int // of the text, by now
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

// want waits for all of these, in this order, after what was read before.
func (s *screen) want(t *testing.T, parts ...string) {
	t.Helper()
	for _, part := range parts {
		for end := time.Now().Add(6 * patience); !s.find(part); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%q is not on the screen:\n%s", part, s.rest())
			}
		}
	}
}

// wantBoth is want for two in any order.
func (s *screen) wantBoth(t *testing.T, a, b string) {
	t.Helper()
	from := s.read
	s.want(t, a)
	after := s.read
	s.read = from
	s.want(t, b)
	s.read = max(s.read, after)
}

func (s *screen) find(part string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := strings.Index(s.text.String()[s.read:], part)
	if i >= 0 {
		s.read += i + len(part)
	}
	return i >= 0
}

func (s *screen) rest() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()[s.read:]
}

const podFile = `
kind: Pod
metadata: {name: api, namespace: shop, annotations: {qos.wasmproxy.io/cpu-burst: "BURST"}}
spec:
  initContainers: [{name: first, image: i}]
  containers: [{name: api, image: i, resources: {limits: {cpu: 500m, memory: 64Mi}}}]
`

// hold starts a demonstration that stays up. The last result ends it and tells how.
func hold(t *testing.T, o Options) (*screen, func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s, ended := &screen{}, make(chan error, 1)
	go func() { ended <- Run(ctx, s, o) }()
	s.want(t, "Try your own plugin")
	return s, func() error {
		cancel()
		return <-ended
	}
}

func (s *screen) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func touch(t *testing.T, file string) {
	t.Helper()
	if err := os.Chtimes(file, time.Time{}, time.Now()); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestHold has a pod go on while a plugin comes and goes, and run anew when its file is saved.
func TestHold(t *testing.T) {
	dir := t.TempDir()
	pod, front := filepath.Join(dir, "pod.yaml"), filepath.Join(dir, "demo")
	write(t, pod, strings.ReplaceAll(podFile, "BURST", "10000"))
	s, end := hold(t, Options{Hold: front, Pod: pod})
	s.want(t, "Pod shop/api, Burstable", "PullImage i:latest", "CreateContainer first", "CreateContainer api",
		"got the request as kubelet sent it", "StartContainer api")

	dropped := filepath.Join(front, "plugins.d", "10-qos.wasm")
	write(t, filepath.Join(front, "plugins.d", "10-qos.json"), `{"grant": ["update.others"]}`)
	write(t, dropped, string(plugins.QoS))
	s.wantBoth(t, "plugin loaded: qos", "cpu.max.burst: 0 -> 10000")

	write(t, pod, strings.ReplaceAll(podFile, "BURST", "20000"))
	s.want(t, "The pod ends", "StartContainer api", "cpu.max.burst: 0 -> 20000")

	write(t, pod, "kind: Pod\nmetadata: {name: web}\n")
	s.want(t, "failed", "the Pod needs metadata.name and spec.containers")
	write(t, filepath.Join(front, "plugins.d", "20-text.wasm"), "this is not WebAssembly")
	s.want(t, "plugin file rejected: ", "20-text.wasm")

	if err := os.Remove(dropped); err != nil {
		t.Fatal(err)
	}
	s.want(t, "plugin removed: 10-qos")
	write(t, pod, strings.ReplaceAll(podFile, "image: i,", "image: 'i:1',"))
	s.want(t, "PullImage i:1", "StartContainer api")
	touch(t, pod)
	s.want(t, "StartContainer api")
	if shown := s.all(); strings.Count(shown, "PullImage i:1") != 1 {
		t.Errorf("an image that is there is pulled again:\n%s", shown)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(front); !os.IsNotExist(err) {
		t.Error("the directory is left behind:", err)
	}
}

// TestHoldControlLoop has a plugin raise the quota of a container that is throttled.
func TestHoldControlLoop(t *testing.T) {
	front := filepath.Join(t.TempDir(), "demo")
	s, end := hold(t, Options{Hold: front})
	s.want(t, "StartContainer web")
	write(t, filepath.Join(front, "plugins.d", "20-cpu-burst.json"), `{"config": {"policy": "cfsQuotaBurstOnly"}, "grant": ["cgroup.read", "update.others", "pod.limits"]}`)
	write(t, filepath.Join(front, "plugins.d", "20-cpu-burst.wasm"), string(plugins.CPUBurst))
	s.want(t, "plugin loaded: cpu-burst", "cpu.max: 50000 100000 -> 60000", "cpu.max: 60000 -> 72000")
	if err := end(); err != nil {
		t.Error(err)
	}
}

// What a plugin lacks is said, and what it was refused.
func TestHoldDenied(t *testing.T) {
	front := filepath.Join(t.TempDir(), "demo")
	s, end := hold(t, Options{Hold: front})
	module, err := os.ReadFile("../../../testdata/wat/counter.wasm")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(front, "plugins.d", "10-lacking.wasm"), string(module))
	s.want(t, "needs")
	touch(t, filepath.Join(front, "pod.yaml"))
	s.want(t, "refused plugin 10-lacking")
	if err := end(); err != nil {
		t.Error(err)
	}
}

// A call that a plugin refuses is reported, and the next pod runs.
func TestHoldRefused(t *testing.T) {
	front := filepath.Join(t.TempDir(), "demo")
	s, end := hold(t, Options{Hold: front})
	reject, err := os.ReadFile("../../../testdata/wat/reject.wasm")
	if err != nil {
		t.Fatal(err)
	}
	s.want(t, "Pod shop/web", "StartContainer web")
	dropped := filepath.Join(front, "plugins.d", "10-reject.wasm")
	write(t, dropped, string(reject))
	s.want(t, "plugin loaded: reject")
	touch(t, filepath.Join(front, "pod.yaml"))
	s.want(t, "failed")
	if err := os.Remove(dropped); err != nil {
		t.Fatal(err)
	}
	s.want(t, "plugin removed: 10-reject", "StartContainer web")
	if err := end(); err != nil {
		t.Error(err)
	}
}

func TestHoldDirectoryIsThere(t *testing.T) {
	dir := t.TempDir()
	if err := Run(t.Context(), &screen{}, Options{Hold: dir}); err == nil || !strings.Contains(err.Error(), "must not exist yet") {
		t.Error(err)
	}
	if err := Run(t.Context(), &screen{}, Options{Hold: dir + "/demo", Pod: dir + "/pod.yaml"}); err == nil || !strings.Contains(err.Error(), "pod.yaml") {
		t.Error(err)
	}
}
