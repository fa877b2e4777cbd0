package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	plugins "github.com/wasmproxy/wasmproxy/plugins-wasm"
	"github.com/wasmproxy/wasmproxy/runtime/daemon"
)

// bursting is a container whose quota the bundled plugin cpu-burst raises.
type bursting struct {
	*node
	group   string // of the container
	periods int    // that its cpu.stat counts, all of them throttled
}

// quota reads the container's quota. Unlike the kernel's, a plain file is empty for a moment while it is written.
func (b *bursting) quota() (q int64) {
	file, text := filepath.Join(b.group, "cpu.max"), ""
	for end := time.Now().Add(patience); text == "" && time.Now().Before(end); {
		text = b.content(file)()
	}
	_, err := fmt.Sscan(text, &q)
	b.must(err)
	return q
}

// throttle throttles the container until its quota, which must be this one until then, is a step higher. It returns the
// quota that it has when it is not throttled any more.
func (b *bursting) throttle(event string, from int64) int64 {
	b.t.Helper()
	for end := time.Now().Add(patience); b.quota() == from; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("%s: the quota stays at %d; the log:\n%s", event, from, b.log)
		}
		b.periods++
		// In one piece, as the kernel shows it: the plugin may read at any time.
		file := filepath.Join(b.group, "cpu.stat")
		b.must(os.WriteFile(file+".new", fmt.Appendf(nil, "usage_usec 1\nnr_periods %d\nnr_throttled %[1]d\nthrottled_usec 1\n", b.periods), 0o644))
		b.must(os.Rename(file+".new", file))
	}
	now := b.quota()
	if now != from*12/10 {
		b.t.Fatalf("%s: the quota was %d, and is %d now; the log:\n%s", event, from, now, b.log)
	}
	for since := time.Now(); time.Since(since) < 2500*time.Millisecond; time.Sleep(10 * time.Millisecond) {
		if q := b.quota(); q != now {
			now, since = q, time.Now()
		}
	}
	return now
}

// TestBurstHolds: the quota that cpu-burst has raised stays over a change of its configuration, a new version of the
// plugin, one that is the same but for its file, and a restart of the proxy. The next step goes on from it. When the plugin
// has gone, kubelet's comes back.
func TestBurstHolds(t *testing.T) {
	t.Parallel()
	n := bypassable(t)
	n.config.CgroupRoot, n.config.CgroupMode, n.config.StateDir = filepath.Join(n.dir, "cgroup"), "v2", filepath.Join(n.dir, "run", "state")
	n.must(os.Mkdir(n.config.CgroupRoot, 0o755))
	startReporting(n)
	n.put("90-noop.wasm", "noop")
	n.start(daemon.Run)
	n.awaitActive("90-noop")
	_, file := bundled{file: "cpu.max", before: "120000 100000"}.run(n)
	b := &bursting{n, filepath.Dir(file), 1}
	pod := filepath.Join(filepath.Dir(b.group), "cpu.max")
	for dir, files := range map[string]map[string]string{
		b.group:               {"cpu.max.burst": "0", "cpu.stat": "usage_usec 1\nnr_periods 1\nnr_throttled 1\n"},
		filepath.Dir(b.group): {"cpu.max.burst": "0"},
		n.config.CgroupRoot:   {"cpu.stat": "usage_usec 1\n"}, // idle
	} {
		for name, text := range files {
			n.must(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
		}
	}
	code := plugins.All()[slices.IndexFunc(plugins.All(), func(p plugins.Plugin) bool { return p.Name == "cpu-burst" })].Module
	settings := func(percent int) {
		n.putRaw("10-it.json", fmt.Sprintf(
			`{"grant": ["cgroup.read", "update.others", "pod.limits"], "config": {"policy": "auto", "cfsQuotaBurstPercent": %d}}`, percent))
	}
	settings(1_000)
	n.putRaw("10-it.wasm", string(code))
	quota := b.throttle("the plugin is installed", 120_000)
	n.eventually("the burst", fmt.Sprint(quota), n.content(filepath.Join(b.group, "cpu.max.burst"))) // 1000 % of the limit, cut to the quota
	first := func(file string) func() string {
		return func() string { word, _, _ := strings.Cut(n.content(file)(), " "); return word }
	}
	n.eventually("the pod's quota is lifted", "max", first(pod))

	settings(1_001)
	quota = b.throttle("another configuration", quota)
	n.putRaw("10-it.wasm", string(code)+"\x00\x05\x04next") // with a custom section
	quota = b.throttle("a new version", quota)
	n.putRaw("10-it.wasm", string(code)+"\x00\x05\x04next")
	quota = b.throttle("the same version again", quota)
	n.end()
	if q := b.quota(); q != quota {
		t.Errorf("without the proxy the quota is %d, want %d", q, quota)
	}
	n.start(daemon.Run)
	b.throttle("a restart", quota)

	n.remove("10-it.wasm")
	n.eventually("kubelet's quota", "120000", func() string { return fmt.Sprint(b.quota()) })
	n.eventually("kubelet's quota of the pod", "120000", first(pod))
	n.eventually("kubelet's burst", "0", n.content(filepath.Join(b.group, "cpu.max.burst")))
}
