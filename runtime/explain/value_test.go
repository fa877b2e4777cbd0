package explain_test

import (
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/explain"
	"github.com/wasmproxy/wasmproxy/runtime/ledger"
)

func text(s string) *string { return &s }

func wishes(values ...string) (all []ledger.Wish) {
	for i, v := range values {
		all = append(all, ledger.Wish{Plugin: string(rune('a' + i)), Hook: abi.Tick, Value: v})
	}
	return all
}

var running = &explain.Object{Running: true}

func TestFileConditions(t *testing.T) {
	for _, c := range []struct {
		name    string
		object  *explain.Object
		value   ledger.Value
		kernel  *string
		want    explain.State
		differs bool
	}{
		{"holds", running, ledger.Value{Kubelet: text("0"), Wishes: wishes("1"), Written: "1", Read: "1"}, text("1"), "", true},
		{"was there", running, ledger.Value{Kubelet: text("1"), Wishes: wishes("1")}, text("1"), "", false},
		{"cut to the quota", running, ledger.Value{Kubelet: text("0"), Wishes: wishes("9"), Written: "5", Read: "5"}, text("5"), "", true},
		{"drift", running, ledger.Value{Kubelet: text("0"), Wishes: wishes("1"), Written: "1", Read: "1"}, text("0"), explain.Drift, true},
		{"fight", running, ledger.Value{Kubelet: text("7"), Wishes: wishes("1"), Written: "1", Read: "1", Fight: true}, text("7"), explain.Fight, true},
		{"fight that is over", running, ledger.Value{Kubelet: text("7"), Wishes: wishes("1"), Written: "1", Read: "1", Fight: true}, text("1"), "", true},
		{"failed", running, ledger.Value{Kubelet: text("0"), Wishes: wishes("x"), Failed: "EINVAL"}, text("0"), explain.Failed, true},
		{"undo is due", running, ledger.Value{Kubelet: text("0"), Written: "1", Read: "1"}, text("1"), explain.Undoing, true},
		{"not started", &explain.Object{}, ledger.Value{Wishes: wishes("1")}, nil, explain.Waiting, true},
		{"not known", running, ledger.Value{Kubelet: text("0"), Wishes: wishes("1"), Written: "1"}, nil, "", true},
	} {
		got := c.object.OfFile("cpu.idle", &c.value, c.kernel)
		if got.State != c.want || got.Differs != c.differs {
			t.Errorf("%s: state %q, differs %t: %s", c.name, got.State, got.Differs, got.Detail)
		}
	}
}

func TestFieldConditions(t *testing.T) {
	for _, c := range []struct {
		field, kubelet, wish, sent, kernel string
		clearable                          bool
		want                               explain.State
	}{
		{"cpu_quota", "50000", "100000", "100000", "100000", true, ""},
		{"cpu_quota", "50000", "100000", "100000", "50000", true, explain.Drift},
		{"cpu_quota", "50000", "12345", "12345", "13000", true, ""}, // systemd's rounding
		{"cpu_quota", "50000", "-1", "-1", "-1", true, ""},
		{"cpu_quota", "50000", "-1", "-1", "50000", true, explain.Drift},
		{"memory_limit_in_bytes", "4096", "5000", "5000", "4096", true, ""}, // a whole page
		{"memory_limit_in_bytes", "4096", "50000", "50000", "4096", true, explain.Drift},
		{"cpuset_cpus", "", "0,1", "0,1", "0-1", false, ""},
		{"cpuset_cpus", "", "", "0-1", "0-1", false, explain.Stays},
		{"cpu_quota", "50000", "", "100000", "100000", true, explain.Undoing},
		{"cpu_shares", "2", "4", "4", "weight 1", true, ""},
	} {
		v := ledger.Value{Kubelet: &c.kubelet, Sent: c.sent}
		if c.wish != "" {
			v.Wishes = wishes(c.wish)
		}
		if got := running.OfField(c.field, &v, &c.kernel, c.clearable, 100000); got.State != c.want || !got.Differs {
			t.Errorf("%+v: state %q, differs %t: %s", c, got.State, got.Differs, got.Detail)
		}
	}
}

// A value that the kernel has lost is told of, and a reset that the runtime refuses with its
// reason.
func TestFieldsThatAreResetAgain(t *testing.T) {
	got := running.OfField("cpu_shares", &ledger.Value{Kubelet: text("256"), Lost: true}, nil, true, 0)
	if got.State != explain.Drift || got.Sent != nil {
		t.Errorf("%+v", got)
	}
	got = running.OfField("cpu_quota", &ledger.Value{Kubelet: text("50000"), Sent: "100000", Failed: "no connection"}, text("100000"), true, 0)
	if got.State != explain.Failed || !strings.HasSuffix(got.Detail, ": no connection") {
		t.Errorf("%+v", got)
	}
}

// The owner is the plugin that asked first; the others are shown.
func TestOwner(t *testing.T) {
	got := running.OfFile("cpu.idle", &ledger.Value{Kubelet: text("0"), Wishes: wishes("1", "0")}, text("1"))
	if got.Owner != "a" || len(got.Wishes) != 2 || got.Wishes[1].Plugin != "b" || got.Wishes[0].Hook != "Tick" {
		t.Errorf("%+v", got)
	}
	if got := running.OfFile("cpu.idle", &ledger.Value{Kubelet: text("0"), Written: "1"}, text("1")); got.Owner != explain.Kubelet {
		t.Errorf("%+v", got)
	}
}

func TestDiff(t *testing.T) {
	kubelets, plugins := explain.Value{Name: "a"}, explain.Value{Name: "b", Differs: true}
	waits := explain.Value{Name: "c", Condition: explain.Condition{State: explain.Waiting}}
	values := func() explain.Object { return explain.Object{Values: []explain.Value{kubelets, plugins, waits}} }
	r := explain.Report{Pods: []explain.Pod{{Object: values(), Containers: []explain.Container{{Object: values()}}}}}
	r.Diff()
	for _, o := range []explain.Object{r.Pods[0].Object, r.Pods[0].Containers[0].Object} {
		if len(o.Values) != 2 || o.Values[0].Name != "b" || o.Values[1].Name != "c" {
			t.Errorf("left is %+v", o.Values)
		}
	}
}
