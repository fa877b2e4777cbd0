package dockermode_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/cgroupfs"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// TestRestart kills wasmproxy and then the Engine under a pod that runs. What the plugin witness sees of
// the container in an update, its resources and environment, must be the same afterwards; the plugin
// setter must still set the quota; and the plugin noop must still get the hooks of the pod's end. Before
// that, setter sets limits that the Engine does not take in the same words.
func TestRestart(t *testing.T) {
	engine := startDocker(t)
	proxy := node.StartProxy(t, node.Setter, node.Witness, node.Noop)
	expectLifted(t, engine)
	p := runPod(t, engine.ProxyEndpoint, "web")
	group, err := cgroupfs.Find(p.container)
	if err != nil {
		t.Fatal(err)
	}
	expectQuota := func(when string) {
		t.Helper()
		if quota, err := cgroupfs.Read(group, "cpu/cpu.cfs_quota_us"); quota != "30000" {
			t.Errorf("%s the quota is %s, want the plugin's 30000 (%v)", when, quota, err)
		}
	}
	expectQuota("after the creation")
	update := func() []string { // from the same to the same
		for _, shares := range []string{"300", "400"} {
			docker(t, engine.ProxyEndpoint, "update", "--cpu-shares", shares, p.container)
		}
		return witnessed(t, proxy, "web/main")
	}
	update()
	before := lastTwo(t, update())
	if before[0] == before[1] || strings.HasPrefix(before[0], "-") {
		t.Fatalf("the witness saw %v, want two different hashes", before)
	}

	proxy.Kill()
	proxy.Start(t)
	if after := lastTwo(t, update()); !slices.Equal(after, before) {
		t.Errorf("after a restart of wasmproxy the witness saw %v, before %v", after, before)
	}
	expectQuota("after a restart of wasmproxy")

	engine.Restart(t)
	node.Eventually(t, time.Minute, "wasmproxy has the Engine again", func() error {
		return node.Docker(t.Context(), engine.ProxyEndpoint, "inspect", p.container).Run()
	})
	if after := lastTwo(t, update()); !slices.Equal(after, before) {
		t.Errorf("after a restart of the Engine the witness saw %v, before %v", after, before)
	}
	expectQuota("after a restart of the Engine")

	for _, id := range []string{p.container, p.sandbox} {
		docker(t, engine.ProxyEndpoint, "stop", "--time", "0", id)
		docker(t, engine.ProxyEndpoint, "rm", id)
	}
	served := proxy.Stop(t)
	for _, of := range []string{"StopContainer", "RemoveContainer", "StopPodSandbox", "RemovePodSandbox"} {
		for _, hook := range []string{"Pre" + of, "Post" + of} {
			if n := served.Hooks[hook]; n != 1 {
				t.Errorf("%s ran %d times at the pod's end, want once", hook, n)
			}
		}
	}
	if len(served.HookFailures) != 0 {
		t.Errorf("hooks failed: %v", served.HookFailures)
	}
}

// witnessed returns what the plugin witness saw of a container of a pod, since wasmproxy was started.
func witnessed(t *testing.T, proxy *node.Proxy, name string) (hashes []string) {
	t.Helper()
	proxy.Records(t, "plugin log", func(line []byte) error {
		var record struct{ Text string }
		if err := json.Unmarshal(line, &record); err != nil {
			return err
		}
		if hash, ok := strings.CutPrefix(record.Text, fmt.Sprintf("saw %s as ", name)); ok {
			hashes = append(hashes, hash)
		}
		return nil
	})
	return hashes
}

func lastTwo(t *testing.T, hashes []string) []string {
	t.Helper()
	if len(hashes) < 2 {
		t.Fatalf("the witness saw %v, want two hashes", hashes)
	}
	return hashes[len(hashes)-2:]
}
