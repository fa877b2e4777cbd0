package docker_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/docker"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// answers has the engine answer every request in this way.
func (e *engine) answers(f http.HandlerFunc) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answer = f
}

// TestFlush: each piece of an answer arrives before the next one is sent.
func TestFlush(t *testing.T) {
	n := newNode(t, false)
	next := make(chan bool, 3)
	n.engine.answers(func(w http.ResponseWriter, r *http.Request) {
		for i := range 3 {
			fmt.Fprintf(w, "event %d\n", i)
			w.(http.Flusher).Flush()
			select {
			case <-next:
			case <-r.Context().Done():
				return
			}
		}
		w.Header().Set(http.TrailerPrefix+"X-End", "yes")
	})
	res, err := n.http.Get("http://docker/v1.41/containers/x/logs?follow=1")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewReader(res.Body)
	for i := range 3 {
		if line, err := lines.ReadString('\n'); err != nil || line != fmt.Sprintf("event %d\n", i) {
			t.Fatalf("line %d is %q, %v", i, line, err)
		}
		next <- true
	}
	if _, err := lines.ReadByte(); err != io.EOF || res.Trailer.Get("X-End") != "yes" {
		t.Errorf("the end is %v, with trailer %v", err, res.Trailer)
	}
}

// TestFullDuplex: Docker answers while the context of a build is still coming.
func TestFullDuplex(t *testing.T) {
	n := newNode(t, false)
	n.engine.answers(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		pieces := bufio.NewReader(r.Body)
		for {
			line, err := pieces.ReadString('\n')
			if err != nil {
				return
			}
			io.WriteString(w, "read "+line)
			w.(http.Flusher).Flush()
		}
	})
	body, write := io.Pipe()
	go io.WriteString(write, "one\n")
	res, err := n.http.Post("http://docker/build", "application/x-tar", body)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer := bufio.NewReader(res.Body)
	for _, line := range []string{"one", "two", "three"} {
		if line != "one" {
			io.WriteString(write, line+"\n")
		}
		if got, err := answer.ReadString('\n'); err != nil || got != "read "+line+"\n" {
			t.Fatalf("the answer is %q, %v", got, err)
		}
	}
	write.Close()
}

// TestHeaders: Docker and the caller get one another's headers, and none of the proxy's.
func TestHeaders(t *testing.T) {
	n := newNode(t, false)
	n.engine.answers(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Date"] = nil
		w.Header()["Content-Type"] = nil
		w.Header().Set("Api-Version", "1.41")
		var names []string
		for name, values := range r.Header {
			names = append(names, name+"="+strings.Join(values, ","))
		}
		w.Header().Set("X-Got", r.Host+" "+r.RequestURI+" "+strings.Join(names, ";"))
		io.WriteString(w, "<html>")
	})
	conn := n.dial()
	io.WriteString(conn, "GET /v1.41/images/a%2Fb/json?x=1;2&y=%zz HTTP/1.1\r\nHost: api.example\r\nX-Forwarded-For: caller\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Date", "Content-Type"} {
		if _, there := res.Header[name]; there {
			t.Errorf("the answer has gained %s", name)
		}
	}
	got := res.Header.Get("X-Got")
	if got != "api.example /v1.41/images/a%2Fb/json?x=1;2&y=%zz X-Forwarded-For=caller" {
		t.Errorf("Docker got %s", got)
	}
}

// TestEarlyAnswer: an error that dockerd answers before it has read the request's body is the caller's
// answer, as it is without the proxy. dockerd must not close meanwhile, or the body cannot be sent.
func TestEarlyAnswer(t *testing.T) {
	n := newNode(t, false)
	n.engine.answers(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, `{"message":"client version 1.99 is too new"}`)
	})
	n.http = &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", n.socket) }}}
	for range 2000 {
		if code, answer := n.do("POST", "/v1.99/containers/create", `{"Image":"busybox"}`); code != 400 || answer != `{"message":"client version 1.99 is too new"}` {
			t.Fatalf("answers %d %s", code, answer)
		}
	}
}

// TestNoDocker: without Docker the answer is an error in Docker's form.
func TestNoDocker(t *testing.T) {
	client := docker.NewClient(filepath.Join(t.TempDir(), "none.sock"), false)
	s := docker.New(docker.Options{Client: client, Router: nil, Observer: newNode(t, false), DrainTimeout: time.Second})
	socket := filepath.Join(t.TempDir(), "p.sock")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l := listen(t, socket)
	go s.Serve(ctx, l)
	n := &node{t: t, http: &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", socket) }}}}
	if code, answer := n.do("GET", "/info", ""); code != 503 || !strings.HasPrefix(answer, `{"message":"Docker at `) {
		t.Errorf("answers %d %s", code, answer)
	}
	if err := docker.Answers(ctx, socket); err != nil {
		t.Errorf("the proxy does not answer itself: %v", err)
	}
}

// TestDrain: at shutdown a request for events ends at once, and another one is waited for.
func TestDrain(t *testing.T) {
	n := newNode(t, false)
	finish := make(chan bool)
	n.engine.answers(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(200)
		w.(http.Flusher).Flush()
		if strings.HasSuffix(r.URL.Path, "/events") {
			<-r.Context().Done()
			return
		}
		<-finish
		io.WriteString(w, "pulled")
	})
	// The caller has the headers of both, so that nothing but a body can still break off.
	begin := func(method, path string) io.ReadCloser {
		req, _ := http.NewRequestWithContext(t.Context(), method, "http://docker"+path, nil)
		res, err := n.http.Do(req)
		if err != nil {
			close(finish)
			t.Fatal(err)
		}
		return res.Body
	}
	events, pull := begin("GET", "/events"), begin("POST", "/images/create")
	stopped, ended := make(chan bool), make(chan bool)
	go func() { n.stop(); close(stopped) }()
	go func() { io.Copy(io.Discard, events); close(ended) }()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("the request for events does not end")
	}
	select {
	case <-stopped:
		t.Error("the server has not waited for the pull")
	default:
	}
	close(finish)
	if body, err := io.ReadAll(pull); string(body) != "pulled" || err != nil {
		t.Errorf("the pull ended with %q, %v", body, err)
	}
	<-stopped
}

// TestParallel makes and changes containers side by side.
func TestParallel(t *testing.T) {
	n := newNode(t, false, on(abi.PreCreateContainer, func(ev plugin.Event, adj *plugin.Adjustment) error {
		name, _ := ev.Text(abi.Container, abi.ContainerName)
		return adj.SetEntry(abi.Container, abi.ContainerEnv, "NAME", name)
	}))
	pod := n.create(podName, podBody)
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			name := fmt.Sprintf("k8s_c%d_web_shop_6c1d9f0e-0000-4000-8000-000000000001_0", i)
			id := n.create(name, mainBody(pod))
			if got := n.engine.last(t, "POST /v1.41/containers/create?name="+name).body; !strings.Contains(got, fmt.Sprintf(`"NAME=c%d"`, i)) {
				t.Errorf("the body is %s", got)
			}
			n.do("POST", "/containers/"+id+"/start", "")
			n.do("POST", "/containers/"+id+"/update", `{"CpuShares":5}`)
			n.do("POST", "/containers/"+id+"/stop", "")
			n.do("DELETE", "/containers/"+id, "")
		})
	}
	all.Wait()
	if pods, containers := n.store.Len(); pods != 1 || containers != 0 {
		t.Errorf("the store has %d pods and %d containers", pods, containers)
	}
}
