package intercept_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/wasmproxy/wasmproxy/runtime/explain"
)

func (w *fieldWorld) step(r *rand.Rand) string {
	f, p := setFields[r.IntN(len(setFields))], propertyPlugins[r.IntN(3)]
	value := valueOf(f, r)
	m := w.model[f]
	switch r.IntN(8) {
	case 0, 1:
		w.ask[p] = map[string]string{f: value}
		if m.owner == "" || m.owner == p {
			m.owner, m.wish, m.left = p, value, ""
		} else if m.wish == value { // both would want it
			clear(w.ask)
		}
		w.update(nil)
		return fmt.Sprintf("%s asks for %s of %s", p, value, f)
	case 2, 3, 4, 5:
		w.resize(f, value)
		return fmt.Sprintf("kubelet resizes %s to %s", f, value)
	case 6:
		w.open(w.node)
		return "restart"
	}
	w.remove(p)
	return p + " removed"
}

func (w *fieldWorld) remove(ids ...string) {
	for f, m := range w.model {
		for _, id := range ids {
			if m.owner == id {
				m.owner = ""
				if clearable := m.kubelet != "" && !strings.HasPrefix(f, "unified"); !clearable && m.wish != m.kubelet {
					m.left = m.wish
				}
			}
		}
	}
	w.options.Withdraw(w.t.Context(), removed(ids...))
	w.settle()
}

// check compares the runtime, and what is explained of the container, with the model.
func (w *fieldWorld) check(when string) {
	w.t.Helper()
	report, err := w.options.Explain(w.t.Context(), "prod/web/app")
	w.must(err)
	told := map[string]string{}
	for _, v := range report.Pods[0].Containers[0].Values {
		if _, ok := w.model[v.Name]; ok && v.Kind == explain.Field {
			told[v.Name] = fmt.Sprintf("%s: kubelet %s, sent %s %s", v.Owner, *v.Kubelet, *v.Sent, v.State)
		}
	}
	want := map[string]string{}
	for f, m := range w.model {
		owner, has, state := explain.Kubelet, m.kubelet, explain.State("")
		switch {
		case m.owner != "":
			owner, has = m.owner, m.wish
		case m.left != "":
			has, state = m.left, explain.Stays
		}
		if w.runtime[f] != has {
			w.t.Fatalf("%s: the runtime has %s of %s, want %s of %s", when, w.runtime[f], f, has, owner)
		}
		if has != "" {
			want[f] = fmt.Sprintf("%s: kubelet %s, sent %s %s", owner, m.kubelet, has, state)
		}
	}
	if diff := cmp.Diff(want, told); diff != "" {
		w.t.Fatalf("%s: what is explained (-want +got):\n%s", when, diff)
	}
}

// left are the fields of which the runtime has the value of a plugin that is gone.
func (w *fieldWorld) left() (all []string) {
	for _, f := range setFields {
		if w.model[f].left != "" {
			all = append(all, f)
		}
	}
	return all
}

// TestAnySequenceOfFields holds that after any sequence of kubelet's resizes, also to the very value
// of a plugin, wishes, restarts and removals of plugins, the runtime has what the ledger says, and
// without plugins what kubelet asked for last, but for what CRI cannot clear. Just that is explained
// to stay until the container restarts.
func TestAnySequenceOfFields(t *testing.T) {
	stayed := 0
	for seed := range uint64(100) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r, w := rand.New(rand.NewPCG(seed, 3)), newFieldWorld(t, seed%2 == 1)
			for step := range 40 {
				w.check(fmt.Sprintf("step %d, %s", step, w.step(r)))
			}
			w.remove(propertyPlugins...)
			w.check("without plugins")
			w.onlyLeft()
			stayed += len(w.left())
		})
	}
	if stayed < 10 {
		t.Errorf("%d values have stayed in 100 sequences, so that they prove little", stayed)
	}
}

// onlyLeft makes sure that without plugins nothing differs from kubelet's values, and nothing is on
// record, but what CRI cannot clear.
func (w *fieldWorld) onlyLeft() {
	w.t.Helper()
	report, err := w.options.Explain(w.t.Context(), "prod/web/app")
	w.must(err)
	report.Diff()
	var differs, recorded []string
	for _, v := range append(report.Pods[0].Values, report.Pods[0].Containers[0].Values...) {
		differs = append(differs, v.Name)
	}
	for _, id := range w.options.Ledger.Objects() {
		for t := range w.options.Ledger.Record(id) {
			recorded = append(recorded, strings.TrimPrefix(string(t), "field "))
		}
	}
	if diff := cmp.Diff(w.left(), differs, cmpopts.SortSlices(strings.Compare)); diff != "" {
		w.t.Errorf("what differs from kubelet's values (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(w.left(), recorded, cmpopts.SortSlices(strings.Compare)); diff != "" {
		w.t.Errorf("what is on record (-want +got):\n%s", diff)
	}
}
