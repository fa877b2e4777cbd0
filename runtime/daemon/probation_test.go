package daemon_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/daemon"
	"github.com/wasmproxy/wasmproxy/runtime/delivery"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

// deliver has a delivery bring the guest as the plugin 10-quota, with this probation.
func (n *node) deliver(guest, settings string, probation time.Duration) {
	n.t.Helper()
	n.deliverJudged(guest, settings, probation, nil)
}

// deliverJudged is deliver with a share of calls that the plugin may refuse.
func (n *node) deliverJudged(guest, settings string, probation time.Duration, maxRefused *int) {
	n.t.Helper()
	from := n.t.TempDir()
	n.must(os.WriteFile(filepath.Join(from, "10-quota.wasm"), []byte(module(n.t, guest)), 0o644))
	n.must(os.WriteFile(filepath.Join(from, "10-quota.json"), []byte(settings), 0o644))
	all, err := delivery.Read(from)
	n.must(err)
	d := delivery.Delivery{Owner: "test", Plugins: all, Probation: probation, MaxRefused: maxRefused}
	_, err = delivery.Directory(n.config.PluginDir).Deliver(n.t.Context(), d, func(string, string) error { return nil })
	n.must(err)
}

// delivered is a node to which the good plugin 10-quota was delivered, if there is to be one, and then one that traps, on
// probation for an hour.
func delivered(t *testing.T, run func(*node) runner, good bool, policy string) *node {
	t.Helper()
	n := newNode(t)
	n.config.DataDir, n.config.AdminSocket = filepath.Join(n.dir, "data"), filepath.Join(n.dir, "admin.sock")
	settings := `{"failure-policy": "` + policy + `"}`
	if good {
		n.deliver("quota", settings, 0)
	}
	n.start(run(n))
	n.awaitSocket()
	if good {
		n.awaitActive("10-quota")
		n.awaitKept("10-quota", policy)
	}
	n.deliver("trap", settings, time.Hour)
	n.await("plugin on probation", "10-quota")
	n.awaitActive("10-quota") // calls meet it a moment later
	return n
}

// plugin is the state of one plugin, as the proxy tells it.
func (n *node) plugin(id string) (p status.Plugin) {
	n.t.Helper()
	all, err := n.admin().Plugins(n.t.Context())
	n.must(err)
	for _, p := range all.Plugins {
		if p.ID == id {
			return p
		}
	}
	n.t.Fatalf("there is no plugin %s in %+v", id, all)
	return p
}

// failing creates containers until the node has gone back, and returns how many were refused.
func (n *node) failing() (refused int) {
	n.t.Helper()
	pod, err := n.runPod(n.t.Context(), "web")
	if err != nil {
		refused++
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if p := n.plugin("10-quota"); p.Failure != nil && p.Pending == nil {
			return refused
		}
		if pod == "" {
			if pod, err = n.runPod(n.t.Context(), "web"); err != nil {
				refused++
			}
			continue
		}
		if _, err := n.createContainer(n.t.Context(), pod, "other"); err != nil {
			refused++
		}
	}
	n.t.Fatalf("the node does not go back; its log:\n%s", n.log)
	return 0
}

// TestNodeGoesBack: a version that traps is replaced by the one before, whatever its policy, and stays so over a restart. Told to,
// the node tries it once more.
func TestNodeGoesBack(t *testing.T) {
	for _, policy := range []string{"Ignore", "Fail"} {
		t.Run(policy, func(t *testing.T) {
			n := delivered(t, inProcess, true, policy)
			if p := n.plugin("10-quota"); p.Probation.IsZero() {
				t.Errorf("on probation it is shown as %+v", p)
			}
			if refused := n.failing(); (refused > 0) != (policy == "Fail") {
				t.Errorf("%d calls were refused", refused)
			}
			n.awaitProblem("plugin 10-quota: it failed its probation at ", "circuit breaker", "wasmproxy plugin retry 10-quota", "; version 1.0.0 of ", " stays active")
			n.await("plugin failed its probation", "10-quota")
			n.quotaServes("after it has gone back")
			n.end()
			n.start(daemon.Run)
			n.awaitActive("10-quota")
			n.awaitProblem("it failed its probation at ")
			n.quotaServes("after a restart")
			n.must(n.admin().Retry(t.Context(), "10-quota"))
			n.await("plugin on probation")
			n.failing()
			n.awaitActive("10-quota")
			n.quotaServes("after it was tried once more")
			if err := n.admin().Retry(t.Context(), "11-none"); err == nil || !strings.Contains(err.Error(), "11-none has no version that failed") {
				t.Error(err)
			}
		})
	}
}

// TestFirstVersionGoesBackToNone: calls pass then, also with policy Fail.
func TestFirstVersionGoesBackToNone(t *testing.T) {
	n := delivered(t, inProcess, false, "Fail")
	n.failing()
	for _, when := range []string{"", "after a restart"} {
		n.awaitProblem("plugin 10-quota: it failed its probation at ", "; the plugin is not loaded")
		pod, err := n.runPod(t.Context(), "web"+when[:min(len(when), 1)])
		n.must(err)
		_, err = n.createContainer(t.Context(), pod, "app")
		n.must(err)
		n.end()
		n.start(daemon.Run)
		n.awaitSocket()
	}
}

// TestNodeGoesBackWithoutTheVersionBefore: where no data-dir has a copy of its module, a failed version does not stay either.
func TestNodeGoesBackWithoutTheVersionBefore(t *testing.T) {
	n := newNode(t)
	n.config.DataDir, n.config.AdminSocket = "", filepath.Join(n.dir, "admin.sock")
	const settings = `{"failure-policy": "Fail"}`
	n.deliver("quota", settings, 0)
	n.start(inProcess(n))
	n.awaitSocket()
	n.awaitActive("10-quota")
	n.deliver("trap", settings, time.Hour)
	n.await("plugin on probation", "10-quota")
	n.failing()
	n.awaitProblem("plugin 10-quota: it failed its probation at ", "; the plugin is not loaded")
	_, err := n.runPod(t.Context(), "passes")
	n.must(err)
}

// crash kills the proxy, and starts it again.
func (n *node) crash() {
	n.t.Helper()
	n.end()
	n.log = newJournal()
	n.start(n.asProcess)
}

// TestCrashesOfAVersionOnProbation: at the third start after no orderly stop, the version before is loaded.
func TestCrashesOfAVersionOnProbation(t *testing.T) {
	n := delivered(t, func(n *node) runner { return n.asProcess }, true, "Ignore")
	for range 2 {
		n.crash()
		n.awaitSocket()
		if p := n.plugin("10-quota"); p.Failure != nil {
			t.Fatalf("%+v", p.Failure)
		}
	}
	n.crash()
	n.awaitProblem("it failed its probation at ", "the proxy was started 3 times without an orderly stop")
	n.awaitActive("10-quota")
	n.quotaServes("after three crashes")
}

// TestShareOfRefusalsChanges: a delivery of the same plugin with a share of refusals counts for the probation that is under way.
func TestShareOfRefusalsChanges(t *testing.T) {
	n := newNode(t)
	n.config.DataDir, n.config.AdminSocket = filepath.Join(n.dir, "data"), filepath.Join(n.dir, "admin.sock")
	n.deliver("quota", "{}", 0)
	n.start(daemon.Run)
	n.awaitActive("10-quota")
	n.awaitKept("10-quota", "{")
	n.deliver("reject", "{}", time.Hour)
	n.await("plugin on probation", "10-quota")
	n.awaitActive("10-quota")
	for range 20 {
		if _, err := n.runPod(t.Context(), "web"); err == nil {
			t.Fatal("the plugin refuses no pod")
		}
	}
	time.Sleep(2 * time.Second) // in which it is judged
	if p := n.plugin("10-quota"); p.Failure != nil || p.Probation.IsZero() {
		t.Errorf("without a share it is %+v", p)
	}
	half := 50
	n.deliverJudged("reject", "{}", time.Hour, &half)
	n.failing() // more are refused until the version before is active
	n.awaitProblem("it failed its probation at ", " calls that it could refuse, and may refuse 50 %")
	n.quotaServes("after it has gone back")
}

// TestLengthOfProbationChanges: a delivery of the same plugin with another length counts for the probation that is under way.
func TestLengthOfProbationChanges(t *testing.T) {
	n := newNode(t)
	n.config.DataDir, n.config.AdminSocket = filepath.Join(n.dir, "data"), filepath.Join(n.dir, "admin.sock")
	n.deliver("quota", "{}", time.Hour)
	n.start(daemon.Run)
	n.await("plugin on probation", "10-quota")
	n.awaitSocket()
	ends := n.plugin("10-quota").Probation
	n.deliver("quota", "{}", 2*time.Hour)
	for end := time.Now().Add(patience); !n.plugin("10-quota").Probation.Equal(ends.Add(time.Hour)); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("a probation that was to end at %v, and is an hour longer, ends at %v", ends, n.plugin("10-quota").Probation)
		}
	}
	n.deliver("quota", "{}", time.Second)
	n.await("plugin passed its probation", "10-quota")
}

// TestFileChangedByHandEndsTheProbation: the node goes back no more.
func TestFileChangedByHandEndsTheProbation(t *testing.T) {
	n := delivered(t, inProcess, true, "Ignore")
	path := filepath.Join(n.config.PluginDir, "10-quota.json")
	text, err := os.ReadFile(path)
	n.must(err)
	n.must(os.WriteFile(path, []byte(strings.Replace(string(text), `"Ignore"`, `"Ignore", "match": {"containers": ["other"]}`, 1)), 0o644))
	n.await("plugin settings changed")
	n.awaitActive("10-quota")
	pod, err := n.runPod(t.Context(), "web")
	n.must(err)
	for range 20 {
		_, err := n.createContainer(t.Context(), pod, "other")
		n.must(err)
	}
	n.await("circuit breaker opened")
	n.awaitKept("10-quota", "other")
	if p := n.plugin("10-quota"); p.Failure != nil || !p.Probation.IsZero() {
		t.Errorf("it is %+v", p)
	}
}

// TestProbationPasses: the version is the last good one then, and not before.
func TestProbationPasses(t *testing.T) {
	n := newNode(t)
	n.config.DataDir, n.config.AdminSocket = filepath.Join(n.dir, "data"), filepath.Join(n.dir, "admin.sock")
	n.deliver("quota", `{"failure-policy": "Fail", "match": {"containers": ["app"]}}`, 3*time.Second)
	n.start(daemon.Run)
	n.awaitActive("10-quota")
	n.await("plugin passed its probation", "10-quota")
	n.awaitKept("10-quota", "Fail")
	if p := n.plugin("10-quota"); p.Failure != nil || !p.Probation.IsZero() {
		t.Errorf("it is %+v", p)
	}
	n.quotaServes("after its probation")
}
