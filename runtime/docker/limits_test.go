package docker_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/docker"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// endless answers with a beginning, and then with the same again and again, until nobody takes it, or somebody has
// taken far too much.
type endless struct {
	begin, again string
	raw          bool // in the place of HTTP's own head
	times        atomic.Int64
	sent         atomic.Int64 // by the one answer that had most
}

func (e *endless) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	e.times.Add(1)
	var to io.Writer = w
	if e.raw {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		to = conn
	}
	_, err := io.WriteString(to, e.begin)
	many := bytes.Repeat([]byte(e.again), 1+(32<<10)/len(e.again))
	var sent int64
	for n := 0; err == nil && sent < 128<<20; sent += int64(n) {
		n, err = to.Write(many)
	}
	e.sent.Store(max(e.sent.Load(), sent))
}

// TestHostileAnswers: of an answer that has no end the proxy reads no more than its limit, and says so.
// Beyond the limit the sockets' buffers take something.
func TestHostileAnswers(t *testing.T) {
	const mib = 1 << 20
	create := func(n *node) string {
		code, answer := n.do("POST", "/v1.41/containers/create?name=web", `{"Image":"b"}`)
		if code != 503 {
			t.Errorf("the creation answers %d", code)
		}
		return answer
	}
	attach := func(n *node) string {
		code, answer := n.do("POST", "/containers/web/attach?stream=1", "")
		if code != 503 {
			t.Errorf("the attach answers %d", code)
		}
		return answer
	}
	status := func(n *node) string {
		_, err := n.client.ContainerStatus(t.Context(), &runtimeapi.ContainerStatusRequest{ContainerId: "web"})
		return errorText(err)
	}
	list := func(n *node) string {
		_, err := n.client.ListContainers(t.Context(), &runtimeapi.ListContainersRequest{})
		return errorText(err)
	}
	const tooLarge = "the answer is too large"
	for name, test := range map[string]struct {
		answer *endless
		ask    func(*node) string
		limit  int64
		want   string
	}{
		"hooked":         {&endless{begin: `{"Id":"`, again: "a"}, create, mib, tooLarge},
		"hooked head":    {&endless{begin: "HTTP/1.1 201 Created\r\n", again: "X: aaaaaaaaaaaaaaaa\r\n", raw: true}, create, mib, "exceeded"},
		"attach head":    {&endless{begin: "HTTP/1.1 101 UPGRADED\r\n", again: "X: aaaaaaaaaaaaaaaa\r\n", raw: true}, attach, mib, tooLarge},
		"attach 100":     {&endless{again: "HTTP/1.1 100 Continue\r\n\r\n", raw: true}, attach, mib, tooLarge},
		"inspect":        {&endless{begin: `{"Id":"`, again: "a"}, status, 4 * mib, tooLarge},
		"inspect error":  {&endless{begin: "HTTP/1.1 500 Error\r\n\r\n" + `{"message":"`, again: "a", raw: true}, status, 4 * mib, tooLarge},
		"list of many":   {&endless{begin: `[{}`, again: `,{}`}, list, mib, tooLarge},
		"list of one":    {&endless{begin: `[{"Id":"`, again: "a"}, list, 32 * mib, tooLarge},
		"list of labels": {&endless{begin: `[`, again: `{"Labels":{"` + strings.Repeat("a", 32<<10) + `":""}},`}, list, 32 * mib, tooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, true, on(abi.PreCreateContainer, func(plugin.Event, *plugin.Adjustment) error { return nil }))
			n.engine.answers(test.answer.ServeHTTP)
			if got := test.ask(n); !strings.Contains(got, test.want) {
				t.Errorf("says %.300q, want %q", got, test.want)
			}
			eventually(t, "the answer ends", func() bool { return test.answer.times.Load() > 0 && test.answer.sent.Load() > 0 })
			if sent := test.answer.sent.Load(); sent > test.limit+4*mib {
				t.Errorf("Docker could send %d bytes, the limit is %d", sent, test.limit)
			}
		})
	}
}

// TestHostileEvent: an event that has no end ends the connection, which is then made again.
func TestHostileEvent(t *testing.T) {
	n := newNode(t, true)
	answer := &endless{begin: `{"Action":"start","Actor":{"ID":"a"}}` + "\n" + `{"Action":"`, again: "a"}
	n.engine.answers(answer.ServeHTTP)
	ctx, cancel := context.WithCancel(t.Context())
	var events atomic.Int64
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		docker.NewLink(n.client, func(docker.Event) { events.Add(1) }).Run(ctx)
	}()
	eventually(t, "another connection", func() bool { return answer.times.Load() > 1 && answer.sent.Load() > 0 })
	cancel()
	<-stopped
	if sent := answer.sent.Load(); sent > 8<<20 || events.Load() == 0 {
		t.Errorf("Docker could send %d bytes of one event, after %d others", sent, events.Load())
	}
}

func errorText(err error) string {
	if err == nil {
		return "no error"
	}
	return err.Error()
}
