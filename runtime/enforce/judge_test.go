package enforce

import (
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/explain"
)

func text(s string) *string { return &s }

func wishes(values ...string) (all []Wish) {
	for i, v := range values {
		all = append(all, Wish{Plugin: string(rune('a' + i)), Hook: abi.Tick, Value: v})
	}
	return all
}

var running = &explain.Object{Running: true}

func TestFileConditions(t *testing.T) {
	for _, c := range []struct {
		name    string
		object  *explain.Object
		value   Value
		kernel  *string
		meant   bool
		want    explain.State
		differs bool
	}{
		{"holds", running, Value{Kubelet: text("0"), Wishes: wishes("1"), Last: "1", Read: "1"}, text("1"), true, "", true},
		{"was there", running, Value{Kubelet: text("1"), Wishes: wishes("1")}, text("1"), true, "", false},
		{"cut to the quota", running, Value{Kubelet: text("0"), Wishes: wishes("9"), Last: "5", Read: "5"}, text("5"), true, "", true},
		{"drift", running, Value{Kubelet: text("0"), Wishes: wishes("1"), Last: "1", Read: "1"}, text("0"), false, explain.Drift, true},
		{"fight", running, Value{Kubelet: text("7"), Wishes: wishes("1"), Last: "1", Read: "1", Drift: Drift{Fight: true}}, text("7"), false, explain.Fight, true},
		{"fight that is over", running, Value{Kubelet: text("7"), Wishes: wishes("1"), Last: "1", Read: "1", Drift: Drift{Fight: true}}, text("1"), true, "", true},
		{"failed", running, Value{Kubelet: text("0"), Wishes: wishes("x"), Failed: &Failure{Reason: "EINVAL"}}, text("0"), false, explain.Failed, true},
		{"undo is due", running, Value{Kubelet: text("0"), Last: "1", Read: "1"}, text("1"), false, explain.Undoing, true},
		{"not started", &explain.Object{}, Value{Wishes: wishes("1")}, nil, false, explain.Waiting, true},
		{"ended", &explain.Object{State: "exited"}, Value{Wishes: wishes("1"), Failed: &Failure{Reason: "EINVAL"}}, nil, false, "", true},
		{"ended before the undo", &explain.Object{State: "exited"}, Value{Kubelet: text("0"), Last: "1", Read: "1"}, nil, false, "", false},
		{"pod without a group", &explain.Object{State: "notready"}, Value{Wishes: wishes("1")}, nil, false, "", true},
		{"pod with a group", &explain.Object{State: "notready", Running: true}, Value{Kubelet: text("0"), Wishes: wishes("1"), Last: "1", Read: "1"}, text("0"), false, explain.Drift, true},
		{"not known", running, Value{Kubelet: text("0"), Wishes: wishes("1"), Last: "1"}, nil, false, "", true},
	} {
		got := judgeFile(c.object, "cpu.idle", &c.value, shown{value: c.kernel, meant: c.meant})
		if got.State != c.want || got.Differs != c.differs {
			t.Errorf("%s: state %q, differs %t: %s", c.name, got.State, got.Differs, got.Detail)
		}
	}
}

// A fight names the last call or reload before it, or says that there was none.
func TestFightNamesItsCause(t *testing.T) {
	for cause, want := range map[string]string{"": "; no call or reload came before it", "RunPodSandbox": "; the last call or reload before it was RunPodSandbox"} {
		got := judgeFile(running, "cpu.idle", &Value{Wishes: wishes("1"), Last: "1", Drift: Drift{Fight: true, Cause: cause}}, shown{value: text("0")})
		if got.State != explain.Fight || !strings.HasSuffix(got.Detail, want) {
			t.Errorf("%q: %+v", cause, got.Condition)
		}
	}
}

func TestFieldConditions(t *testing.T) {
	for _, c := range []struct {
		wish, sent       string
		clearable, meant bool
		want             explain.State
	}{
		{"100000", "100000", true, true, ""},
		{"100000", "100000", true, false, explain.Drift},
		{"", "100000", true, true, explain.Undoing},
		{"", "100000", false, true, explain.Stays},
		{"200000", "100000", true, true, explain.Waiting},
	} {
		v := Value{Kubelet: text("50000"), Last: c.sent}
		if c.wish != "" {
			v.Wishes = wishes(c.wish)
		}
		if got := judgeField(running, "cpu_quota", &v, shown{value: text("1"), meant: c.meant}, c.clearable); got.State != c.want || !got.Differs || *got.Kernel != "1" {
			t.Errorf("%+v: state %q, differs %t: %s", c, got.State, got.Differs, got.Detail)
		}
	}
	if got := judgeField(running, "cpu_quota", &Value{Kubelet: text("1"), Last: "1"}, shown{}, true); got.State != "" || got.Differs || got.Owner != explain.Kubelet {
		t.Errorf("a value that no plugin wants is %+v", got)
	}
}

// A value that the kernel has lost is shown, and a reset that the runtime refuses with its
// reason.
func TestFieldsThatAreResetAgain(t *testing.T) {
	got := judgeField(running, "cpu_shares", &Value{Kubelet: text("256")}, shown{}, true)
	if got.State != explain.Undoing || got.Sent != nil {
		t.Errorf("%+v", got)
	}
	got = judgeField(running, "cpu_quota", &Value{Kubelet: text("50000"), Last: "100000", Failed: &Failure{Reason: "no connection"}}, shown{value: text("100000"), meant: true}, true)
	if got.State != explain.Failed || !strings.HasSuffix(got.Detail, ": no connection") {
		t.Errorf("%+v", got)
	}
}

// A container that has ended waits for no reset.
func TestFieldsOfAnEndedContainer(t *testing.T) {
	o := &explain.Object{State: "exited"}
	for _, v := range []Value{{Kubelet: text("1"), Last: "2"}, {Kubelet: text("1")}} {
		if got := judgeField(o, "cpu_quota", &v, shown{}, true); got.State != "" {
			t.Errorf("state %q: %s", got.State, got.Detail)
		}
	}
}

// The owner is the plugin that asked first; the others are shown.
func TestOwner(t *testing.T) {
	got := judgeFile(running, "cpu.idle", &Value{Kubelet: text("0"), Wishes: wishes("1", "0")}, shown{})
	if got.Owner != "a" || len(got.Wishes) != 2 || got.Wishes[1].Plugin != "b" || got.Wishes[0].Hook != "Tick" {
		t.Errorf("%+v", got)
	}
	if got := judgeFile(running, "cpu.idle", &Value{Kubelet: text("0"), Last: "1"}, shown{}); got.Owner != explain.Kubelet {
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
