package docker_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// TestInspectFails: a container about which Docker does not tell is not taken for one without hooks. A
// plugin that must not be passed by refuses it; without one the log says that hooks were skipped.
func TestInspectFails(t *testing.T) {
	for policy, want := range map[plugin.FailurePolicy]int{plugin.Fail: 503, plugin.Ignore: 204} {
		start := on(abi.PreStartContainer, func(plugin.Event, *plugin.Adjustment) error { return nil })
		start.Policy = policy
		n := newNode(t, true, start)
		started := false
		n.engine.answers(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case strings.HasSuffix(r.URL.Path, "/start"):
				started = true
				w.WriteHeader(http.StatusNoContent)
			case r.URL.Path == "/containers/json" && r.URL.Query().Get("filters") == "{}": // by its ID Docker finds none of this name
				io.WriteString(w, `[{"Id":"`+strings.Repeat("c", wholeID)+`","Names":["/web"]}]`)
			case r.URL.Path == "/containers/json":
				io.WriteString(w, `[]`)
			default:
				w.WriteHeader(http.StatusInternalServerError)
				io.WriteString(w, `{"message":"layer not known"}`)
			}
		})
		if code, answer := n.do("POST", "/v1.41/containers/web/start", ""); code != want || started != (want == 204) {
			t.Errorf("with policy %v start answers %d %s; Docker has started it: %v", policy, code, answer, started)
		}
		n.mu.Lock()
		skipped := false
		for _, e := range n.events {
			_, is := e.(*observe.HooksSkipped)
			skipped = skipped || is
		}
		if skipped != (policy == plugin.Ignore) {
			t.Errorf("with policy %v the events are %v", policy, n.events)
		}
		n.mu.Unlock()
	}
}

// wholeID is how long Docker's IDs are.
const wholeID = 64

// TestBackendTime: Docker's part of a request that has hooks is known, too.
func TestBackendTime(t *testing.T) {
	n := newNode(t, false, on(abi.PreRunPodSandbox, func(plugin.Event, *plugin.Adjustment) error { return nil }))
	n.create(podName, podBody)
	n.stop()
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, e := range n.events {
		if done, ok := e.(*observe.CallFinished); ok {
			if done.Route != observe.Hooked || done.Backend <= 0 || done.Backend > done.Duration {
				t.Errorf("the event is %+v", done)
			}
			return
		}
	}
	t.Error("no event of the call's end")
}

// TestUserKeepsGroup: a group that has a name stays when a plugin changes the user, and goes when it
// changes the group.
func TestUserKeepsGroup(t *testing.T) {
	for _, test := range []struct {
		before string
		fields map[abi.Field]int64
		want   string
	}{
		{"app:staff", map[abi.Field]int64{abi.ContainerRunAsUser: 1000}, "1000:staff"},
		{"app:staff", map[abi.Field]int64{abi.ContainerRunAsGroup: 50}, "app:50"},
		{"app:staff", map[abi.Field]int64{abi.ContainerRunAsUser: 1000, abi.ContainerRunAsGroup: 50}, "1000:50"},
		{"app:7", map[abi.Field]int64{abi.ContainerRunAsUser: 1000}, "1000:7"},
		{"app", map[abi.Field]int64{abi.ContainerRunAsUser: 1000}, "1000"},
	} {
		n := newNode(t, true, on(abi.PreCreateContainer, func(_ plugin.Event, adj *plugin.Adjustment) error {
			for f, to := range test.fields {
				if err := adj.SetInt64(abi.Container, f, to); err != nil {
					return err
				}
			}
			return nil
		}))
		n.create("web", `{"User":"`+test.before+`"}`)
		if got := n.engine.last(t, "POST /v1.41/containers/create").body; got != `{"User":"`+test.want+`"}` {
			t.Errorf("with %v %s becomes %s, want %s", test.fields, test.before, got, test.want)
		}
	}
}
