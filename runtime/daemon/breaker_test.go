package daemon_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/daemon"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// A plugin that does nothing but fail is not asked for a while: its hooks are
// refused with the reason, or pass in silence. A new file is asked at once, and
// so is the old one once it serves again.
func TestBreaker(t *testing.T) {
	n := serving(t, map[string]string{"10-bad.wasm": "trap", "10-bad.json": `{"failure-policy":"Fail"}`})
	n.await("plugin loaded", "10-bad")
	n.await("plugins active", "10-bad")
	for i := range 5 {
		if _, err := n.runPod(t.Context(), podName(i)); status.Code(err) != codes.Unavailable || strings.Contains(err.Error(), "breaker") {
			t.Errorf("call %d: %v", i, err)
		}
	}
	n.await("circuit breaker opened", "10-bad", "faults=5", "unreachable")
	_, err := n.runPod(t.Context(), "sixth")
	for range 4 { // a machine that stalls for longer than the back-off has the plugin tried, which doubles that
		if status.Code(err) == codes.Unavailable && !strings.Contains(err.Error(), "breaker") {
			_, err = n.runPod(t.Context(), "sixth")
		}
	}
	if status.Code(err) != codes.Unavailable || !containsAll(err.Error(), []string{"10-bad", "PreRunPodSandbox", "its breaker is open after ", "unreachable"}) {
		t.Errorf("with an open breaker: %v", err)
	}
	n.put("10-bad.json", `{"failure-policy":"Ignore"}`)
	n.await("plugins active", "10-bad")
	if _, err := n.runPod(t.Context(), "seventh"); err != nil {
		t.Errorf("with an open breaker under Ignore: %v", err)
	}
	for end := time.Now().Add(patience); !n.log.await([]string{"circuit breaker opened", "10-bad"}, time.Second); { // its back-off
		if _, err := n.runPod(t.Context(), "eighth"); err != nil {
			t.Error(err)
		}
		if time.Now().After(end) {
			t.Fatalf("the plugin is not tried again; the log:\n%s", n.log)
		}
	}
	n.await("plugin failed and was ignored", "10-bad", "unreachable")
	n.put("10-bad.json", `{"failure-policy":"Fail"}`)
	n.put("10-bad.wasm", "quota")
	n.await("plugin replaced", "10-bad")
	n.await("plugins active", "10-bad")
	if _, err := n.runPod(t.Context(), "last"); err != nil {
		t.Errorf("after the plugin was replaced: %v", err)
	}
}

// Plugins are compiled by another process into a directory, and are the same;
// a plugin that is interpreted has no use for it.
func TestCacheDir(t *testing.T) {
	n := newNode(t)
	n.config.CacheDir = filepath.Join(n.dir, "cache")
	n.put("10-quota.wasm", "quota")
	n.put("20-other.wasm", "conflict")
	n.put("20-other.json", `{"engine":"interpreter"}`)
	for range 2 {
		n.start(daemon.Run)
		n.await("plugins active", "10-quota", "20-other")
		pod, err := n.runPod(t.Context(), "web")
		n.must(err)
		id, err := n.createContainer(t.Context(), pod, "app")
		n.must(err)
		if got := n.runtime.RuntimeService.Containers[id].Annotations["example.com/quota"]; got != "200000" {
			t.Errorf("the runtime got annotation %q", got)
		}
		n.end()
		if entries, err := os.ReadDir(n.config.CacheDir); err != nil || len(entries) != 1 {
			t.Errorf("the cache holds %v, %v", entries, err)
		}
	}
}

// A cache that others could change keeps the daemon from starting.
func TestCacheDirOfOthers(t *testing.T) {
	n := newNode(t)
	n.config.CacheDir = filepath.Join(n.dir, "cache")
	n.must(os.Mkdir(n.config.CacheDir, 0o700))
	n.must(os.Chmod(n.config.CacheDir, 0o777))
	for _, run := range []func(context.Context, *config.Config, observe.Observer) error{daemon.Run, func(ctx context.Context, c *config.Config, _ observe.Observer) error {
		_, err := daemon.Check(ctx, c, false)
		return err
	}} {
		if err := run(t.Context(), n.config, observe.Discard()); err == nil || !strings.Contains(err.Error(), n.config.CacheDir+" has mode") {
			t.Errorf("got %v", err)
		}
	}
}
