package suite_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// pass delivers the next version with a probation, which it passes. Running pods get its values.
func (c *changing) pass(t *testing.T) {
	c.deliver(t, "qos-next", "", "--probation", (*changeFor / 5).String(), "--wait", "1m")
	for range everyFifth {
		if _, err := c.call(t, true); err != nil {
			t.Error(err)
		}
	}
	node.Eventually(t, time.Minute+*changeFor/5, "the version passes its probation", func() error {
		begun, passed := logged(t, c.proxy, "plugin on probation"), logged(t, c.proxy, "plugin passed its probation")
		if begun != 1 || passed != 1 {
			return fmt.Errorf("it was put on probation %d times, and passed %d times", begun, passed)
		}
		return nil
	})
	if p := c.plugin(t); p.Active.Version != "1.1.0" || p.Failure != nil || !p.Probation.IsZero() {
		t.Errorf("it is %+v", p)
	}
	awaitValues(t, c.pods, burstNext)
}

// logged counts the lines with a message on the plugin in the proxy's log.
func logged(t *testing.T, proxy *node.Proxy, message string) (n int) {
	t.Helper()
	proxy.Records(t, message, func(line []byte) error {
		var record struct{ Plugin string }
		err := json.Unmarshal(line, &record)
		if record.Plugin == changedID {
			n++
		}
		return err
	})
	return n
}

// trapIgnored delivers a version that traps on one pod in five, with policy Ignore: each pod starts.
func (c *changing) trapIgnored(t *testing.T) {
	c.hold(t, burstNext)
	c.deliver(t, "qos-trap", "", "--probation", "1h", "--wait", "1m")
	c.await(t, "is on probation", onProbation)
	wave := changingPods("ignored", everyFifth)
	for _, pod := range wave {
		c.kubelet.Apply(t, pod)
	}
	for _, pod := range wave {
		c.kubelet.AwaitReady(t, pod)
	}
	if refused := c.failing(t); refused > 0 {
		t.Errorf("%d calls were refused", refused)
	}
	c.expectStory(t, 1)
	awaitValues(t, wave, burstNext) // also of the pod for which the version has trapped
	c.expectRefused(t, 0)
	for _, pod := range wave {
		c.kubelet.Remove(t, pod)
	}
}

// trapRefuses is the same with policy Fail: the pods are refused for which the version traps, and no others. They start once the
// node has gone back.
func (c *changing) trapRefuses(t *testing.T) {
	c.hold(t, burstNext)
	c.deliver(t, "qos-trap", `, "failure-policy": "Fail"`, "--probation", "1h", "--wait", "1m")
	c.await(t, "is on probation", onProbation)
	wave := changingPods("refused", everyFifth)
	for _, pod := range wave {
		c.kubelet.Apply(t, pod)
	}
	awaitRecord(t, c.proxy, "call refused", hookRecord{changedID, "PreCreateContainer", "default", node.PodName(wave[0])})
	for _, pod := range wave[1:] {
		c.kubelet.AwaitReady(t, pod)
	}
	refused := c.failing(t)
	c.expectStory(t, 2)
	c.kubelet.AwaitReady(t, wave[0])
	awaitValues(t, wave, burstNext)
	c.expectRefused(t, refused+1)
	for _, pod := range wave {
		c.kubelet.Remove(t, pod)
	}
}

// retry has the node try that version once more, and go back once more.
func (c *changing) retry(t *testing.T) {
	c.hold(t, burstNext)
	said, err := c.proxy.Command(t.Context(), "plugin", "retry", changedID).CombinedOutput()
	if err != nil || !strings.Contains(string(said), changedID+" is loaded once more") {
		t.Fatalf("plugin retry: %v\n%s", err, said)
	}
	c.await(t, "is on probation", onProbation)
	if refused := c.failing(t); refused == 0 {
		t.Error("no call was refused")
	}
	c.expectStory(t, 3)
	// What failed before was of versions on probation, but for a call that was under way when one of them went.
	if p := c.plugin(t); !regexp.MustCompile("; [01] of ").MatchString(p.Failure.Error) {
		t.Errorf("it has failed as %+v", p.Failure)
	}
}

func onProbation(p pluginState) bool {
	return p.Active != nil && p.Active.Version == "1.2.0" && p.Failure == nil && time.Until(p.Probation) > 50*time.Minute
}

func goneBack(p pluginState) bool {
	return p.Active != nil && p.Active.Version == "1.1.0" && p.Failure != nil
}

// failing creates containers, one in five of which the version on probation fails for, until the node has gone back. It returns
// how many were refused.
func (c *changing) failing(t *testing.T) (refused int) {
	t.Helper()
	node.Eventually(t, time.Minute, "the node goes back", func() error {
		p := c.plugin(t)
		if goneBack(p) {
			return nil
		}
		for range everyFifth {
			pod, err := c.call(t, true)
			if err == nil {
				continue
			}
			refused++
			if !asksForBurst(pod) {
				t.Errorf("a call of pod %s is refused: %v", pod.Name, err)
			}
		}
		return fmt.Errorf("it is %+v", p)
	})
	return refused
}

// expectRefused demands that at least so many calls were refused, of pods for which the version traps. None may have been if that
// is 0.
func (c *changing) expectRefused(t *testing.T, least int) {
	t.Helper()
	var pods []string
	c.proxy.Records(t, "call refused", func(line []byte) error {
		var record hookRecord
		err := json.Unmarshal(line, &record)
		pods = append(pods, record.Pod)
		return err
	})
	other := func(pod string) bool {
		return !slices.ContainsFunc(slices.Concat(c.pods, changingPods("refused", 1)), func(p *core.Pod) bool {
			return asksForBurst(p) && node.PodName(p) == pod
		})
	}
	if len(pods) < least || least == 0 && len(pods) > 0 || slices.ContainsFunc(pods, other) {
		t.Errorf("calls of these pods were refused: %q; want at least %d", pods, least)
	}
	t.Logf("%d calls were refused", len(pods))
}

// expectStory waits until all that an operator looks at tells that the version has failed its probation, and demands that it has
// done so for the n-th time since the proxy was started.
func (c *changing) expectStory(t *testing.T, n int) {
	t.Helper()
	const failed, what = "it failed its probation at ", "wasmproxy plugin retry " + changedID
	node.Eventually(t, time.Minute, "the node tells that it has gone back", func() error {
		p := c.plugin(t)
		var status struct{ NotReady []string }
		err := c.proxy.Ask(t.Context(), &status, "status")
		ready, err2 := c.proxy.Get(t.Context(), "/readyz")
		list, err3 := c.proxy.Command(t.Context(), "plugin", "list").CombinedOutput()
		metrics, err4 := c.proxy.Get(t.Context(), "/metrics")
		if err := errors.Join(err, err2, err3, err4); err != nil {
			return err
		}
		var errs []error
		expect := func(where, text string, parts ...string) {
			for _, part := range parts {
				if !strings.Contains(text, part) {
					errs = append(errs, fmt.Errorf("%s does not say %q: %s", where, part, text))
				}
			}
		}
		expect("the failure", p.Failure.Error, failed, what)
		expect("what runs meanwhile", p.Failure.Meanwhile, "1.1.0", "stays active")
		expect("status", strings.Join(status.NotReady, "\n"), "plugin "+changedID+": "+failed)
		expect("/readyz", ready, "plugin "+changedID+": "+failed)
		expect("plugin list", string(list), failed, what)
		expect("/metrics", metrics, fmt.Sprintf("wasmproxy_plugin_probations_failed_total{plugin=%q} %d\n", changedID, n),
			fmt.Sprintf("wasmproxy_plugin_load_failed{plugin=%q} 1\n", changedID),
			fmt.Sprintf("wasmproxy_plugin_state{plugin=%q,state=\"active\"} 1\n", changedID))
		return errors.Join(errs...)
	})
	if failures := logged(t, c.proxy, "plugin failed its probation, the node goes back to the version before"); failures != n {
		t.Errorf("the log has %d failures of a probation, want %d", failures, n)
	}
	if found := c.proxy.Doctor(t); !slices.Contains(found, "proxy-ready the running proxy") {
		t.Errorf("doctor finds %q", found)
	}
	t.Logf("%+v", *c.plugin(t).Failure)
}

// crash has a proxy that crashes when it loads a version on probation. At the third start it goes back. Pods run on, and new ones
// start.
func (c *changing) crash(t *testing.T) {
	c.proxy.Stop(t)
	c.proxy.Program = "wasmproxy-crashes"
	c.proxy.Start(t)
	c.hold(t, burstNext)
	c.deliver(t, "qos-trap", `, "limits": {"fuel": 20000000}`, "--probation", "1h")
	c.proxy.AwaitCrash(t)
	for range 2 {
		c.proxy.Launch(t)
		c.proxy.AwaitCrash(t)
	}
	c.proxy.Start(t)
	c.await(t, "has gone back", goneBack)
	c.expectStory(t, 1)
	if p := c.plugin(t); !strings.Contains(p.Failure.Error, "the proxy was started 3 times without an orderly stop") {
		t.Errorf("it is %+v", p)
	}
	fresh := changingPods("fresh", everyFifth)
	for _, pod := range fresh {
		c.kubelet.Apply(t, pod)
	}
	for _, pod := range slices.Concat(fresh, c.pods) {
		now := c.kubelet.AwaitReady(t, pod)
		for _, container := range now.Status.ContainerStatuses {
			if container.RestartCount > 0 {
				t.Errorf("pod %s was restarted", pod.Name)
			}
		}
	}
	awaitValues(t, fresh, burstNext)
	c.proxy.Stop(t)
}
