package admin_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/admin"
	"github.com/wasmproxy/wasmproxy/runtime/explain"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/recording"
)

// socketPath is short, as a socket's path must be.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "wp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "admin.sock")
}

// serve serves on a real socket. end ends it, and returns what Serve returned.
func serve(t *testing.T, s admin.Sources) (c admin.Client, end func() error) {
	t.Helper()
	path := socketPath(t)
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- admin.Serve(ctx, l, s) }()
	t.Cleanup(cancel)
	return admin.Client{Socket: path}, func() error {
		cancel()
		return <-ended
	}
}

func TestReportArrivesWhole(t *testing.T) {
	c, end := serve(t, admin.Sources{Explain: func(_ context.Context, name string) (*explain.Report, error) {
		return &explain.Report{Pods: []explain.Pod{{Name: name, Object: explain.Object{Values: []explain.Value{{Name: "cpu.idle", Condition: explain.Condition{State: explain.Drift}}}}}}}, nil
	}})
	const name = "shop/web?&name=x" // which needs escapes
	r, err := c.Explain(t.Context(), name)
	if err != nil || len(r.Pods) != 1 || r.Pods[0].Name != name || r.Pods[0].Values[0].State != explain.Drift {
		t.Errorf("got %+v, %v", r, err)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
	if _, err := c.Explain(t.Context(), name); err == nil || !strings.Contains(err.Error(), "there is no admin socket "+c.Socket+": start the proxy") {
		t.Errorf("after the end: %v", err)
	}
}

// Errors reach the client with their text and kind.
func TestErrorsArrive(t *testing.T) {
	var next error
	c, _ := serve(t, admin.Sources{Explain: func(context.Context, string) (*explain.Report, error) { return nil, next }})
	for _, kind := range []error{explain.ErrNotFound, explain.ErrAmbiguous, explain.ErrInvalid} {
		next = &explain.Error{Kind: kind, Text: "this text"}
		if _, err := c.Explain(t.Context(), "web"); !errors.Is(err, kind) || err.Error() != "this text" {
			t.Errorf("%v arrives as %v", kind, err)
		}
	}
	for _, next = range []error{admin.NotReady("not yet"), errors.New("other")} {
		if _, err := c.Explain(t.Context(), "web"); err == nil || err.Error() != next.Error() {
			t.Errorf("%v arrives as %v", next, err)
		}
	}
}

// A panic is an event, which names the socket, and an answer, and the next request is served.
func TestPanicIsOneAnswer(t *testing.T) {
	var events observe.Recorder
	c, _ := serve(t, admin.Sources{Observer: &events, Explain: func(_ context.Context, name string) (*explain.Report, error) {
		if name == "bad" {
			panic("defect")
		}
		return &explain.Report{}, nil
	}})
	if _, err := c.Explain(t.Context(), "bad"); err == nil || !strings.Contains(err.Error(), "defect") {
		t.Error(err)
	}
	all := observe.All[*observe.Panicked](events.Take())
	if len(all) != 1 || all[0].Panic != "defect" || all[0].Stack == "" {
		t.Fatalf("the events are %+v", all)
	}
	if want := "a request to " + c.Socket; all[0].During != want {
		t.Errorf("the event is of %q, want %q", all[0].During, want)
	}
	if _, err := c.Explain(t.Context(), "good"); err != nil {
		t.Error(err)
	}
}

// The end of the server is also that of a request under way, which it waits for.
func TestEndCancelsRequests(t *testing.T) {
	began, left := make(chan bool), false
	c, end := serve(t, admin.Sources{Explain: func(ctx context.Context, _ string) (*explain.Report, error) {
		close(began)
		<-ctx.Done()
		left = true
		return nil, ctx.Err()
	}})
	go func() { _, _ = c.Explain(t.Context(), "web") }()
	<-began
	if err := end(); err != nil || !left {
		t.Errorf("the server ended with %v; the request had ended: %t", err, left)
	}
}

// What is no resource, or no GET, is refused; a header is bounded.
func TestOtherRequests(t *testing.T) {
	c, _ := serve(t, admin.Sources{Explain: func(context.Context, string) (*explain.Report, error) { return &explain.Report{}, nil }})
	client := http.Client{Timeout: time.Minute, Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", c.Socket) }}}
	defer client.CloseIdleConnections()
	for request, want := range map[string]int{"GET /explain": 200, "GET /": 404, "GET /explain/x": 404, "POST /explain": 405, "GET /explain?name=" + strings.Repeat("x", 1<<16): 431} {
		method, path, _ := strings.Cut(request, " ")
		req, err := http.NewRequestWithContext(t.Context(), method, "http://admin"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%.20s: status %d, want %d", request, resp.StatusCode, want)
		}
	}
}

// What is not the proxy's socket is an error that says what to do.
func TestUnreachable(t *testing.T) {
	path := socketPath(t)
	ask := func() string {
		_, err := admin.Client{Socket: path}.Explain(t.Context(), "web")
		if err == nil {
			t.Fatal("there is an answer")
		}
		return err.Error()
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	other := &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: time.Minute}
	l.SetUnlinkOnClose(false)
	go func() { _ = other.Serve(l) }()
	if got := ask(); !strings.Contains(got, "answers with status 404: check that it is the admin socket of a wasmproxy of this version") {
		t.Error(got)
	}
	other.Close()
	if got := ask(); !strings.Contains(got, "no proxy listens on the admin socket "+path+": start the proxy") {
		t.Error(got)
	}
}

// A request for a recording that is none is refused.
func TestRecordingRequests(t *testing.T) {
	c, _ := serve(t, admin.Sources{Record: func(context.Context, string, recording.Options, io.Writer) error { return nil }})
	client := http.Client{Timeout: time.Minute, Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", c.Socket) }}}
	defer client.CloseIdleConnections()
	const right = `{"for_ns": 1000000000, "max": 1000000, "rate": 1, "call": 100000`
	for body, want := range map[string]int{right + `}`: 200, ``: 400, right + `, "rates": 1}`: 400, right + strings.Repeat(" ", 1<<15) + `}`: 400} {
		resp, err := client.Post("http://admin/plugins/a/recording", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%.80s: status %d, want %d", body, resp.StatusCode, want)
		}
	}
}
