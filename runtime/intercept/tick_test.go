package intercept_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// runPods runs pods p0, p1 and so on, each with two containers.
func (n *node) runPods(pods int) {
	n.t.Helper()
	for p := range pods {
		pod := podConfig()
		pod.Metadata.Name, pod.Metadata.Uid = fmt.Sprint("web-", p), fmt.Sprint("u", p)
		id := fmt.Sprint("p", p)
		_, err := n.call(n.t.Context(), "RunPodSandbox", &runtimeapi.RunPodSandboxRequest{Config: pod}, &runtimeapi.RunPodSandboxResponse{PodSandboxId: id})
		n.must(err)
		for c := range 2 {
			req := createRequest()
			req.PodSandboxId, req.SandboxConfig, req.Config.Metadata.Name = id, pod, fmt.Sprint("c", c)
			n.createAs(req, fmt.Sprint(id, "-c", c))
		}
	}
	n.must(n.queue.Drain(n.t.Context()))
}

var errFuel = &plugin.ClassError{Class: observe.ClassFuel, Err: errors.New("used all its fuel")}

// visitor sets two values of each container, and is stopped between the two of the one after so many.
type visitor struct {
	enough int // containers
	saw    []string
}

func (v *visitor) call(_ context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
	v.saw = nil
	all, _, _ := ev.Containers(abi.Node, nil)
	for n, c := range all {
		id, _ := ev.Text(c, abi.ContainerID)
		v.saw = append(v.saw, id)
		if err := adj.SetInt64(c, abi.Resources+abi.CPUQuota, 20_000); err != nil {
			return err
		}
		if n == v.enough {
			return errFuel
		}
		if err := adj.SetInt64(c, abi.Resources+abi.CPUShares, 20); err != nil {
			return err
		}
	}
	return nil
}

func (n *node) tickedField(container, field string) string {
	w, _ := n.options.Ledger.Record(enforce.ID{Pod: "u" + container[1:2], Container: container}).Owner(enforce.Field(field))
	return w.Value
}

// A Tick that a limit stops keeps what it has set of the pods before the last, and the next one goes on with that pod.
func TestTickGoesOnWhereItWasStopped(t *testing.T) {
	n := newNode(t, nil)
	n.runPods(4)
	v := &visitor{enough: 5}
	m := on(abi.Tick, v.call)
	m.Breaker = plugin.NewBreaker(n.options.Observer, m.ID, nil)
	next := intercept.Tick(t.Context(), n.options, m, "")
	if next != "p2" || !strings.Contains(n.log.String(), "tick stopped by a limit") {
		t.Errorf("the next tick begins with %q; the log:\n%s", next, n.log)
	}
	for _, c := range []string{"p0-c0", "p0-c1", "p1-c0", "p1-c1"} {
		if got := n.tickedField(c, "cpu_quota") + n.tickedField(c, "cpu_shares"); got != "2000020" {
			t.Errorf("%s is to have %q", c, got)
		}
	}
	for _, c := range []string{"p2-c0", "p2-c1", "p3-c0"} {
		if got := n.tickedField(c, "cpu_quota") + n.tickedField(c, "cpu_shares"); got != "" {
			t.Errorf("%s, whose pod the plugin was not done with, is to have %q", c, got)
		}
	}
	n.store.Observe(nil, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: "p2"}, &runtimeapi.RemovePodSandboxResponse{})
	v.enough = 100
	if next := intercept.Tick(t.Context(), n.options, m, next); next != "" || !slices.Equal(v.saw, []string{"p3-c0", "p3-c1", "p0-c0", "p0-c1", "p1-c0", "p1-c1"}) {
		t.Errorf("the second tick saw %q, and the third begins with %q", v.saw, next)
	}
	if got := n.tickedField("p3-c1", "cpu_shares"); got != "20" {
		t.Errorf("p3-c1 is to have %q shares", got)
	}
}

// A dry run logs of such a Tick what would be kept.
func TestDryRunOfATickThatIsStopped(t *testing.T) {
	n := newNode(t, nil)
	n.runPods(4)
	m := on(abi.Tick, (&visitor{enough: 5}).call)
	m.DryRun = true
	if next := intercept.Tick(t.Context(), n.options, m, ""); next != "p2" || n.tickedField("p0-c0", "cpu_quota") != "" {
		t.Errorf("the next tick begins with %q, and p0-c0 is to have %q", next, n.tickedField("p0-c0", "cpu_quota"))
	}
	if got := strings.Count(n.log.String(), "plugin would change field"); got != 8 || !strings.Contains(n.log.String(), "tick stopped by a limit") {
		t.Errorf("%d changes are logged, want 8 of the 4 containers of 2 pods:\n%s", got, n.log)
	}
}

// A Tick that is stopped at its first pod has failed, and so has one that ends with another error.
func TestTickThatGetsNowhereHasFailed(t *testing.T) {
	n := newNode(t, nil)
	n.runPods(2)
	v := &visitor{enough: 1}
	if next := intercept.Tick(t.Context(), n.options, on(abi.Tick, v.call), ""); next != "" || n.tickedField("p0-c0", "cpu_quota") != "" {
		t.Errorf("the next tick begins with %q, and p0-c0 is to have %q", next, n.tickedField("p0-c0", "cpu_quota"))
	}
	other := on(abi.Tick, func(ctx context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
		_ = v.call(ctx, ev, adj)
		return errors.New("lost its way")
	})
	v.enough = 3
	if next := intercept.Tick(t.Context(), n.options, other, ""); next != "" || n.tickedField("p0-c0", "cpu_quota") != "" {
		t.Errorf("the next tick begins with %q, and p0-c0 is to have %q", next, n.tickedField("p0-c0", "cpu_quota"))
	}
	if got := strings.Count(n.log.String(), "plugin failed and was ignored"); got != 2 {
		t.Errorf("%d failures, want 2:\n%s", got, n.log)
	}
}

// What an earlier generation of a plugin has set in Tick stays until a whole Tick of the present one has not repeated it.
func TestTickOfANewGeneration(t *testing.T) {
	n := newNode(t, nil)
	n.runPods(2)
	old := &visitor{enough: 100}
	n.options.Generations = map[string]string{"10-test": "one"}
	intercept.Tick(t.Context(), n.options, on(abi.Tick, old.call), "")
	n.options.Generations = map[string]string{"10-test": "two"}
	fails := errors.New("not yet")
	quiet := on(abi.Tick, func(context.Context, plugin.Event, *plugin.Adjustment) error { return fails })
	quiet.Hooks |= abi.HookSetOf(abi.Synchronize)
	silent := quiet
	silent.Plugin = function(func(context.Context, plugin.Event, *plugin.Adjustment) error { return nil })
	n.must(n.sweep(intercept.NewSynchronized(), silent))
	intercept.Tick(t.Context(), n.options, quiet, "")
	if got := n.tickedField("p1-c1", "cpu_shares"); got != "20" {
		t.Errorf("before a whole Tick p1-c1 is to have %q shares", got)
	}
	fails = nil
	intercept.Tick(t.Context(), n.options, quiet, "")
	n.must(n.queue.Drain(t.Context()))
	if got := n.tickedField("p1-c1", "cpu_shares"); got != "" {
		t.Errorf("after a whole Tick p1-c1 is to have %q shares", got)
	}
}
