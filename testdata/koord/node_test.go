package koord_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/testdata/bench/incumbent"
	"github.com/wasmproxy/wasmproxy/testdata/bench/process"
)

// patience is how long the tests wait for what takes milliseconds.
const patience = 20 * time.Second

// proxy is one of the two.
type proxy string

const (
	wasmproxy         proxy = "wasmproxy"
	koordRuntimeProxy proxy = "koord-runtime-proxy"
)

// impatient connects as soon as the proxy is there.
var impatient = grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 20 * time.Millisecond, MaxDelay: 20 * time.Millisecond}})

// A node is a proxy as a process between a client, as kubelet is one, and a
// runtime, with a hookserver.d.
type node struct {
	*testing.T
	dir     string
	hookDir string
	proxy   proxy
	program string   // of wasmproxy
	flags   []string // more, of wasmproxy
	inPlace bool     // wasmproxy is called as koord-runtime-proxy
	runtime *runtime
	engine  *engine                     // in the place of the runtime, in Docker mode
	answers func(context.Context) error // nil if the proxy is there
	process *process.Process
	conn    *grpc.ClientConn
	kubelet cri.RuntimeServiceClient
	starts  int
}

// newNode makes a node on which nothing runs yet.
func newNode(t *testing.T, p proxy) *node {
	t.Helper()
	dir, err := os.MkdirTemp("", "koord") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	n := &node{T: t, dir: dir, proxy: p, program: programs.raced, hookDir: filepath.Join(dir, "hookserver.d")}
	if p == koordRuntimeProxy {
		n.hookDir = incumbent.HookDirIn(filepath.Join(dir, "etc"))
	}
	n.must(os.MkdirAll(n.hookDir, 0o755))
	n.must(os.Mkdir(n.path("plugins.d"), 0o755))
	n.must(os.Mkdir(n.path("cgroup"), 0o755))
	n.runtime = newRuntime(n.path("runtime.sock"))
	n.answers = func(ctx context.Context) error {
		_, err := n.kubelet.Version(ctx, &cri.VersionRequest{})
		return err
	}
	t.Cleanup(func() {
		n.runtime.stop()
		n.must(os.RemoveAll(dir))
	})
	return n
}

func (n *node) path(name string) string { return filepath.Join(n.dir, name) }

func (n *node) must(err error) {
	n.Helper()
	if err != nil {
		n.Fatal(err)
	}
}

// start starts the runtime and the proxy, and waits until it serves and its plugins are active.
func (n *node) start() {
	n.Helper()
	if n.engine != nil {
		n.must(n.engine.start())
	} else {
		n.must(n.runtime.start())
	}
	n.startProxy()
	n.awaitServing()
}

// startProxy starts the proxy, for the first time or again. It is stopped with the test.
func (n *node) startProxy() {
	n.Helper()
	n.starts++
	argv, attr := n.command()
	p, err := process.Start(n.dir, fmt.Sprintf("proxy-%d", n.starts), attr, append(argv, n.flags...)...)
	n.must(err)
	n.process = p
	n.Cleanup(func() { n.stopProxy(p) })
	conn, err := grpc.NewClient("unix://"+n.path("proxy.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()), impatient,
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(containerdLimit), grpc.MaxCallSendMsgSize(containerdLimit)))
	n.must(err)
	n.Cleanup(func() { conn.Close() })
	n.conn, n.kubelet = conn, cri.NewRuntimeServiceClient(conn)
}

// command is the proxy's command line.
func (n *node) command() (argv []string, attr *syscall.SysProcAttr) {
	own := []string{"--plugin-dir=" + n.path("plugins.d"), "--cache-dir=", "--state-dir=" + n.path("state"), "--data-dir=" + n.path("data"), "--admin-socket=", "--status-socket=", "--cgroup-root=" + n.path("cgroup"), "--cgroup-mode=v2", "--log-format=json"}
	incumbents := []string{"--koord-runtimeproxy-endpoint=" + n.path("proxy.sock"), "--remote-runtime-service-endpoint=" + n.runtime.socket}
	if n.engine != nil {
		own, incumbents = append(own, "--mode=docker"), append(incumbents, "--backend-runtime-mode=Docker")
	}
	withEtc := []string{programs.self, withEtc, n.path("etc")}
	switch {
	case n.proxy == koordRuntimeProxy:
		return slices.Concat(withEtc, []string{programs.incumbent}, incumbents), incumbent.InEtc()
	case n.inPlace:
		return slices.Concat(withEtc, []string{n.path("koord-runtime-proxy")}, incumbents, own), incumbent.InEtc()
	}
	return slices.Concat([]string{n.program, "serve", "--listen=" + n.path("proxy.sock"), "--backend=" + n.runtime.socket, "--hook-dir=" + n.hookDir}, own), nil
}

// putInPlace puts wasmproxy where koord-runtime-proxy was, under its name.
func (n *node) putInPlace() {
	n.Helper()
	n.inPlace = true
	n.must(os.Symlink(n.program, n.path("koord-runtime-proxy")))
	n.hookDir = incumbent.HookDirIn(n.path("etc"))
	n.must(os.MkdirAll(n.hookDir, 0o755))
}

// stopProxy ends the proxy. wasmproxy must end well, and without a data race.
func (n *node) stopProxy(p *process.Process) {
	if p.Cmd.ProcessState != nil {
		return
	}
	err := p.Stop()
	said, _ := os.ReadFile(p.Log)
	if n.proxy != wasmproxy {
		return
	}
	if err != nil || bytes.Contains(said, []byte("DATA RACE")) {
		n.Errorf("wasmproxy ended with %v", err)
	}
	if n.Failed() {
		n.Logf("its log ends:\n%s", p.LastWords())
	}
}

// kill ends the proxy without warning.
func (n *node) kill() {
	n.must(n.process.Cmd.Process.Kill())
	n.process.Cmd.Wait()
}

// awaitServing waits until the proxy answers and has read hookserver.d: it
// reads it at its start, and wasmproxy says so.
func (n *node) awaitServing() {
	n.Helper()
	n.must(n.process.Await(n.Context(), n.answers))
	files, err := os.ReadDir(n.hookDir)
	n.must(err)
	if n.proxy == wasmproxy && len(files) > 0 {
		n.eventually("what is to be loaded is, and calls ask it", func() error {
			log := n.log()
			ended := strings.Count(log, `"msg":"plugin loaded"`) + strings.Count(log, `"msg":"plugin replaced"`) + strings.Count(log, `"msg":"plugin not loaded`)
			current := strings.LastIndex(log, `"msg":"plugins active"`)
			if ended < strings.Count(log, `"msg":"plugin loading"`) || current <= strings.LastIndex(log, `"msg":"plugin loaded"`) {
				return errors.New("it is not")
			}
			return nil
		})
	}
}

// awaitLog waits until the proxy has logged a line.
func (n *node) awaitLog(words string) {
	n.Helper()
	n.eventually("the proxy logs "+words, func() error {
		if !strings.Contains(n.log(), words) {
			return errors.New("it does not")
		}
		return nil
	})
}

// log is all that the running proxy has said.
func (n *node) log() string {
	n.Helper()
	said, err := os.ReadFile(n.process.Log)
	n.must(err)
	return string(said)
}

func (n *node) eventually(what string, try func() error) {
	n.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			n.Fatalf("%s: not within %v: %v\n%s", what, patience, err, n.process.LastWords())
		}
	}
}

var lastCry = regexp.MustCompile(`(?m)^(panic|fatal error): .*$`)

// sick says how the proxy ended if it has; nil if it is alive.
func (n *node) sick() error {
	if !n.process.Exited() {
		return nil
	}
	return fmt.Errorf("the proxy has ended: %s", lastCry.FindString(n.log()))
}

// well returns an error that says what failed: err, which may be nil, and with
// it that the proxy has ended, if it has.
func (n *node) well(err error) error {
	wait := time.Duration(0)
	switch {
	case err == nil:
	case strings.Contains(err.Error(), "error reading from server"): // it ends, which may take long on a busy machine
		wait = patience
	default: // it may be ending
		wait = 100 * time.Millisecond
	}
	for end := time.Now().Add(wait); time.Now().Before(end) && !n.process.Exited(); {
		time.Sleep(10 * time.Millisecond)
	}
	return errors.Join(n.sick(), err)
}

// serve starts a hook server, which ends with the test, and registers it under a file name.
func (n *node) serve(file string, a answer, policy string, hooks ...string) *hookServer {
	n.Helper()
	s := &hookServer{socket: n.path(strings.TrimSuffix(file, ".json") + ".sock"), answer: a}
	n.must(s.start())
	n.Cleanup(s.stop)
	n.register(file, registration(s.socket, policy, hooks...))
	return s
}

// register puts a file into hookserver.d, whole at once.
func (n *node) register(file, content string) {
	n.Helper()
	draft := n.path("draft")
	n.must(os.WriteFile(draft, []byte(content), 0o644))
	n.must(os.Rename(draft, filepath.Join(n.hookDir, file)))
}
