package intercept_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/explain"
)

// check is for what holds after each step, also while the runtime refuses what the proxy sends.
func (w *modelWorld) check(when string) {
	w.t.Helper()
	for _, wrong := range w.runtime.wrong {
		w.t.Errorf("%s: %s", when, wrong)
	}
	w.runtime.wrong = nil
	for _, c := range w.runtime.all() {
		if c.state == runtimeapi.ContainerState_CONTAINER_EXITED {
			continue
		}
		if c.state == runtimeapi.ContainerState_CONTAINER_RUNNING && c.used > 0 {
			w.checkMemory(when, c)
		}
		reasons := c.changes
		if c.unsettled {
			reasons++
		}
		if c.attempts > reasons {
			w.t.Errorf("%s: the proxy has sent %d updates of %s, for %d reasons", when, c.attempts, c.id, reasons)
		}
		if w.runtime.refuses == nil && !c.unsettled {
			w.checkFields(when, c)
		}
		c.unsettled = c.unsettled || w.runtime.refuses != nil
	}
}

// checkMemory holds that nobody but kubelet, and a plugin that wants just that, sets a limit below what is in use.
func (w *modelWorld) checkMemory(when string, c *modelContainer) {
	w.t.Helper()
	limit := c.read(w.runtime, "memory.max")
	if number(limit) >= c.used {
		return
	}
	if wishes := c.wishes["file memory.max"]; len(wishes) == 0 || wishes[0].value != limit {
		w.t.Errorf("%s: memory.max of %s is %s, below the %d bytes in use", when, c.id, limit, c.used)
	}
	c.use(w.runtime, c.used)
}

// checkFields compares what the runtime has of a container with the model.
func (w *modelWorld) checkFields(when string, c *modelContainer) {
	w.t.Helper()
	for _, f := range setFields {
		want, wishes, has := c.kubelet[f], c.wishes["field "+f], c.has[f]
		if len(wishes) > 0 {
			want = wishes[0].value
		}
		kept := f == "memory_limit_in_bytes" && c.state == runtimeapi.ContainerState_CONTAINER_RUNNING && c.used > number(want)
		if has != want && !kept && !(len(wishes) == 0 && c.former[f][has]) {
			record, _ := json.Marshal(w.options.Ledger.Record(enforce.ID{Pod: c.pod.uid, Container: c.id}).Values()[enforce.Field(f)])
			w.t.Errorf("%s: the runtime has %s = %q of %s, want %q: kubelet's is %q, and the wishes are %v; the record is %s",
				when, f, has, c.id, want, c.kubelet[f], wishes, record)
		}
	}
}

// rest lets the proxy finish: what was refused is sent again by a scan. Then it is where it is to be, and does nothing more.
func (w *modelWorld) rest() {
	w.t.Helper()
	w.runtime.refuses, w.refused = nil, false
	time.Sleep(time.Minute)
	w.sweep()
	w.options.Scan(w.t.Context())
	w.drain()
	for _, p := range w.pods {
		if p.sandbox != "" {
			w.checkFiles("at rest", &p.modelObject, nil)
		}
	}
	for _, c := range w.runtime.all() {
		c.unsettled, c.attempts = false, 0
		if c.state != runtimeapi.ContainerState_CONTAINER_EXITED {
			w.checkFields("at rest", c)
		}
		if c.state == runtimeapi.ContainerState_CONTAINER_RUNNING {
			w.checkFiles("at rest", &c.modelObject, c)
		}
	}
	for _, p := range w.pods {
		if p.sandbox != "" && !w.bypassed && w.r.IntN(6) == 0 {
			w.explained(p)
		}
	}
	w.options.Scan(w.t.Context())
	w.drain()
	for _, c := range w.runtime.all() {
		if c.attempts > 0 {
			w.t.Errorf("at rest, a scan sends %d updates of %s", c.attempts, c.id)
		}
	}
}

// checkFiles compares the files of a pod, or a container, with the model.
func (w *modelWorld) checkFiles(when string, o *modelObject, c *modelContainer) {
	w.t.Helper()
	for f, foreign := range o.foreign {
		want, wishes, has := foreign, o.wishes["file "+f], o.read(w.runtime, f)
		if len(wishes) > 0 {
			want = wishes[0].value
		}
		if c != nil && f == "memory.max" && len(wishes) == 0 && c.used > number(want) {
			want = strconv.Itoa(c.used)
		}
		if has != want {
			w.t.Errorf("%s: %s of %s is %q, want %q: without plugins it is %q, and the wishes are %v",
				when, f, o.group, has, want, foreign, wishes)
		}
	}
}

// explained compares what is explained of a pod with the model: the wishes for each value, and what stays though no plugin
// wants it any more.
func (w *modelWorld) explained(p *modelPod) {
	w.t.Helper()
	report, err := w.options.Explain(w.t.Context(), "prod/"+p.uid)
	check(err)
	told, want := map[string]string{}, map[string]string{}
	note := func(id string, values []explain.Value) {
		for _, v := range values {
			key := fmt.Sprint(id, " ", v.Kind, " ", v.Name)
			for _, wish := range v.Wishes {
				told[key] += fmt.Sprint(wish.Plugin, " wants ", wish.Value, ", ")
			}
			if v.State == explain.Stays {
				told[key] += string(v.State)
			}
		}
	}
	note("", report.Pods[0].Values)
	for _, c := range report.Pods[0].Containers {
		if c.State != "exited" {
			note(c.ID, c.Values)
		}
	}
	expect := func(id string, o *modelObject) {
		for target, wishes := range o.wishes {
			for _, wish := range wishes {
				want[id+" "+target] += fmt.Sprint(wish.plugin, " wants ", wish.value, ", ")
			}
		}
	}
	expect("", &p.modelObject)
	for _, c := range p.containers {
		expect(c.id, &c.modelObject)
		for _, f := range setFields {
			lives, wanted := c.state != runtimeapi.ContainerState_CONTAINER_EXITED, len(c.wishes["field "+f]) > 0
			if stays := c.former[f] != nil && c.has[f] != c.kubelet[f]; lives && !wanted && stays {
				want[c.id+" field "+f] = string(explain.Stays)
			}
		}
	}
	if diff := cmp.Diff(want, told); diff != "" {
		w.t.Errorf("what is explained of %s (-want +got):\n%s", p.uid, diff)
	}
}

// alone is the state without plugins: when the memory in use falls, all values are kubelet's.
func (w *modelWorld) alone() {
	w.t.Helper()
	for _, c := range w.runtime.all() {
		if c.state == runtimeapi.ContainerState_CONTAINER_RUNNING {
			c.use(w.runtime, 0)
		}
	}
	w.rest()
	for _, id := range w.options.Ledger.Objects() {
		for target, v := range w.options.Ledger.Record(id).Values() {
			c := w.runtime.container(id.Container)
			field, ok := strings.CutPrefix(string(target), "field ")
			if c != nil && c.state == runtimeapi.ContainerState_CONTAINER_EXITED || c != nil && ok && c.former[field] != nil {
				continue
			}
			w.t.Errorf("without plugins the record of %v has %s: %+v", id, target, v)
		}
	}
}
