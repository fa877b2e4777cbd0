package docker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/docker"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/peers"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
	"github.com/wasmproxy/wasmproxy/runtime/workqueue"
)

// function is a plugin whose Call is a Go function.
type function func(ev plugin.Event, adj *plugin.Adjustment) error

func (function) Manifest() abi.Manifest      { return abi.Manifest{} }
func (function) Close(context.Context) error { return nil }
func (f function) Call(_ context.Context, _ *plugin.Budget, ev plugin.Event, adj *plugin.Adjustment) error {
	return f(ev, adj)
}

func on(hook abi.Hook, f function) plugin.Member {
	return plugin.Member{ID: "10-test", Plugin: f, Hooks: abi.HookSetOf(hook), Capabilities: abi.AllCapabilities, KeepsPodLimits: true}
}

// engine stands in for dockerd: it keeps what it gets, and answers what a test has set.
type engine struct {
	mu       sync.Mutex
	requests []request
	inspect  map[string]string // answers to ContainerInspect, by name
	answer   http.HandlerFunc  // in the place of all other answers, if it is set
	made     int
}

type request struct {
	line   string
	header http.Header
	host   string
	body   string
}

func (e *engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	answer := e.answer
	e.mu.Unlock()
	if answer != nil {
		answer(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.requests = append(e.requests, request{r.Method + " " + r.URL.RequestURI(), r.Header.Clone(), r.Host, string(body)})
	parts := strings.Split(r.URL.Path, "/")
	switch {
	case strings.HasSuffix(r.URL.Path, "/containers/create"):
		e.made++
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"Id":"%064x","Warnings":[]}`+"\n", e.made)
	case r.URL.Path == "/info":
		io.WriteString(w, `{"NCPU":2}`)
	case strings.HasSuffix(r.URL.Path, "/json"):
		if text, ok := e.inspect[parts[len(parts)-2]]; ok {
			io.WriteString(w, text)
			return
		}
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `{"message":"No such container"}`)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// last returns the last request with this beginning of its line.
func (e *engine) last(t *testing.T, line string) request {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := len(e.requests) - 1; i >= 0; i-- {
		if strings.HasPrefix(e.requests[i].line, line) {
			return e.requests[i]
		}
	}
	t.Fatalf("Docker got no %s among %v", line, e.requests)
	return request{}
}

// node is a Docker with the proxy before it.
type node struct {
	t      *testing.T
	engine *engine
	socket string // the proxy's
	direct string // Docker's
	http   *http.Client
	server *docker.Server
	peers  peers.Set // that are connected to server
	store  *pods.Store
	client *docker.Client
	ledger *enforce.Ledger
	stop   func()
	mu     sync.Mutex
	events []observe.Event
}

func (n *node) Observe(_ context.Context, e observe.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.events = append(n.events, e)
}

func (n *node) Wants(observe.Kind) bool { return true }

func newNode(t *testing.T, all bool, members ...plugin.Member) *node {
	t.Helper()
	dir := t.TempDir()
	n := &node{t: t, engine: &engine{inspect: map[string]string{}}, socket: filepath.Join(dir, "p.sock"), direct: filepath.Join(dir, "d.sock"), store: pods.NewStore(), ledger: enforce.NewLedger()}
	backend := httptest.NewUnstartedServer(n.engine)
	backend.Listener.Close()
	backend.Listener = listen(t, n.direct)
	backend.Start()
	t.Cleanup(backend.Close)
	n.client = docker.NewClient("unix://"+n.direct, all)
	o := intercept.Options{Keep: func() func() { return func() {} }, CallTime: intercept.DefaultCallTime, Enforcer: enforce.Enforcer{
		Observer: n, Store: n.store, Backend: n.client, Node: &crifield.Node{}, Queue: workqueue.New(), Ledger: n.ledger,
	}}
	o.NewChain = func(m ...plugin.Member) *plugin.Chain { return plugin.NewChain(n, 0, m...) }
	o.Chain = o.NewChain(members...)
	n.server = docker.New(docker.Options{Client: n.client, Router: intercept.Router(o), Store: n.store, Observer: n, DrainTimeout: time.Minute})
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	l := listen(t, n.socket)
	go func() { defer close(served); n.server.Serve(ctx, n.peers.Listen(l)) }()
	n.stop = func() { cancel(); <-served }
	t.Cleanup(n.stop)
	n.http = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", n.socket)
	}}}
	return n
}

func listen(t *testing.T, path string) net.Listener {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// do sends a request through the proxy.
func (n *node) do(method, path, body string) (code int, answer string) {
	n.t.Helper()
	req, err := http.NewRequest(method, "http://docker"+path, bytes.NewReader([]byte(body)))
	if err != nil {
		n.t.Fatal(err)
	}
	res, err := n.http.Do(req)
	if err != nil {
		n.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		n.t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// create makes a container of this name, and returns its ID.
func (n *node) create(name, body string) string {
	n.t.Helper()
	code, answer := n.do("POST", "/v1.41/containers/create?name="+url.QueryEscape(name), body)
	var made struct{ Id string }
	if err := json.Unmarshal([]byte(answer), &made); code != 201 || err != nil {
		n.t.Fatalf("create answers %d %s", code, answer)
	}
	return made.Id
}

const (
	podName   = "k8s_POD_web_shop_6c1d9f0e-0000-4000-8000-000000000001_2"
	mainName  = "k8s_main_web_shop_6c1d9f0e-0000-4000-8000-000000000001_3"
	podLabels = `"io.kubernetes.docker.type":"podsandbox","io.kubernetes.pod.name":"web","io.kubernetes.pod.namespace":"shop","app":"web","annotation.example.com/boost":"2x"`
	podBody   = `{"Hostname":"web","Image":"pause","Labels":{` + podLabels + `},"HostConfig":{"CpuShares":2,"OomScoreAdj":-998,"CgroupParent":"kubepods-pod6c1d9f0e.slice"}}`
)

func mainBody(pod string) string {
	return `{"Env":["A=1","B","C=<&>"],"Future":{"b":1.50,"a":1e2},"Image":"busybox","Labels":{"io.kubernetes.docker.type":"container","io.kubernetes.sandbox.id":"` + pod +
		`","annotation.x":"y"},"HostConfig":{"CpuPeriod":100000,"CpuQuota":50000 ,"Memory":1048576,"MemorySwap":1048576,"CgroupParent":"kubepods-pod6c1d9f0e.slice","Later":null}}`
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after a minute there is still not: %s", what)
		}
	}
}

// dial connects to the proxy.
func (n *node) dial() *net.UnixConn {
	n.t.Helper()
	conn, err := net.Dial("unix", n.socket)
	if err == nil {
		err = conn.SetDeadline(time.Now().Add(time.Minute)) // instead of a test that hangs
	}
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { conn.Close() })
	return conn.(*net.UnixConn)
}
