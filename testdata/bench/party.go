package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/wasmproxy/wasmproxy/testdata/bench/incumbent"
	"github.com/wasmproxy/wasmproxy/testdata/bench/process"
)

// Names of the parties: what is between kubelet and the backend, and what it has loaded.
const (
	direct      = "direct"
	rawRelay    = "relay"
	koord       = "koord"
	koordHook   = "koord+1remote"
	wasmproxy   = "wasmproxy"
	wasmproxy1  = "wasmproxy+1wasm"
	wasmproxy5  = "wasmproxy+5wasm"
	wasmproxy8  = "wasmproxy+8wasm"
	wasmproxy10 = "wasmproxy+10wasm"
	withSinks   = "wasmproxy+1wasm+sinks"
	recorded    = "wasmproxy+1wasm+record"
	shadowed    = "wasmproxy+1wasm+shadow"
	noopWasm    = "wasmproxy+1noop"
	remoteHook  = "wasmproxy+1remote"
)

// The hooks that are measured.
const (
	preRun    = "PreRunPodSandbox"
	preCreate = "PreCreateContainer"
)

// A party is one way from kubelet to the backend.
type party struct {
	name    string
	kubelet *kubelet
	process *process.Process // of the proxy; of the backend where there is none
	plugins int              // how many
	flags   []string         // beyond those that each wasmproxy has
	env     []string         // variables beyond those of the harness
	hooks   []string         // that each plugin has
	asked   map[string]int   // calls that each hook is for
}

// logs is a directory below the node's: a wasmproxy watches those above its plugins, and what a proxy logs is to wake no other one.
const logs = "logs"

// A node is all processes of one run and what they share.
type node struct {
	dir     string // sockets, logs and plugin directories
	memory  string // state directories, in memory as a node's /run
	bin     *binaries
	parties map[string]*party
	missing map[string]string  // parties that cannot run here, and why
	started []*process.Process // in the order in which they depend on one another
	hooks   *process.Process   // the hook server

	recorder *process.Process // of the plugin of one party

	traces    *process.Process // the collector of traces
	tracesURL string
}

func (n *node) path(elem ...string) string { return filepath.Join(append([]string{n.dir}, elem...)...) }

// add starts a party's process and waits until it answers.
func (n *node) add(ctx context.Context, p *party, socket string, start func() (*process.Process, error)) error {
	var err error
	if p.process, err = start(); err != nil {
		return err
	}
	n.started = append(n.started, p.process)
	if p.kubelet, err = dial(socket); err != nil {
		return err
	}
	n.parties[p.name], p.asked = p, map[string]int{}
	if err := p.process.Await(ctx, p.kubelet.version); err != nil {
		return fmt.Errorf("party %s: %w", p.name, err)
	}
	return nil
}

// stop ends all processes, those first that call others.
func (n *node) stop() error {
	var errs []error
	for _, p := range n.parties {
		errs = append(errs, p.kubelet.conn.Close())
	}
	reversed := make([]*process.Process, 0, len(n.started))
	for i := len(n.started) - 1; i >= 0; i-- {
		reversed = append(reversed, n.started[i])
	}
	return errors.Join(append(errs, process.StopAll(reversed))...)
}

// startNode starts every party. The caller stops the node, also after an error.
func startNode(ctx context.Context, dir, memory string, bin *binaries, root string) (*node, error) {
	n := &node{dir: dir, memory: memory, bin: bin, parties: map[string]*party{}, missing: map[string]string{}}
	if err := os.Mkdir(n.path(logs), 0o755); err != nil {
		return n, err
	}
	for _, step := range []func(context.Context) error{n.startBackend, n.startRelay, n.startHookServer, n.startCollector, n.startKoord} {
		if err := step(ctx); err != nil {
			return n, err
		}
	}
	if err := n.startWasmproxies(ctx, root); err != nil {
		return n, err
	}
	if err := n.startRecorder(ctx); err != nil {
		return n, err
	}
	return n, n.awaitShadow(ctx)
}

func (n *node) backendSocket() string { return n.path("backend.sock") }

func (n *node) hookSocket() string { return n.path("hooks.sock") }

func (n *node) startBackend(ctx context.Context) error {
	return n.add(ctx, &party{name: direct}, n.backendSocket(), func() (*process.Process, error) {
		return process.Start(n.path(logs), direct, nil, n.bin.self, cmdBackend, n.backendSocket())
	})
}

func (n *node) startRelay(ctx context.Context) error {
	socket := n.path("relay.sock")
	return n.add(ctx, &party{name: rawRelay}, socket, func() (*process.Process, error) {
		return process.Start(n.path(logs), rawRelay, nil, n.bin.self, cmdRelay, socket, n.backendSocket())
	})
}

func (n *node) startHookServer(ctx context.Context) error {
	p, err := process.Start(n.path(logs), "hookserver", nil, n.bin.hookServer, n.hookSocket())
	if err != nil {
		return err
	}
	n.hooks, n.started = p, append(n.started, p)
	return p.Await(ctx, func(context.Context) error {
		_, err := os.Stat(n.hookSocket())
		return err
	})
}

// startKoord starts koord-runtime-proxy twice, without a hook server and with one. It needs a
// mount namespace; where a user who is not root cannot have one, the two parties are missing.
func (n *node) startKoord(ctx context.Context) error {
	if err := n.tryEtc(); err != nil {
		reason := fmt.Errorf("not run: koord-runtime-proxy reads %s only, and a private /etc for it needs root: %w", incumbent.HookDir, err)
		if os.Geteuid() == 0 {
			return reason
		}
		n.missing[koord], n.missing[koordHook] = reason.Error(), reason.Error()
		return nil
	}
	if err := n.startOneKoord(ctx, koord, ""); err != nil {
		return err
	}
	return n.startOneKoord(ctx, koordHook, n.hookSocket())
}

func (n *node) tryEtc() error {
	p, err := process.Start(n.path(logs), "try-etc", incumbent.InEtc(), n.bin.self, cmdWithEtc, n.dir, "/bin/true")
	if err != nil {
		return err
	}
	if err := p.Cmd.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, p.LastWords())
	}
	return nil
}

func (n *node) startOneKoord(ctx context.Context, name, hookServer string) error {
	etc, socket := n.path(name+".etc"), n.path(name+".sock")
	if err := makeEtc(etc, hookServer); err != nil {
		return err
	}
	p := &party{name: name}
	if hookServer != "" {
		p.plugins, p.hooks = 1, []string{preRun, preCreate}
	}
	return n.add(ctx, p, socket, func() (*process.Process, error) {
		return process.Start(n.path(logs), name, incumbent.InEtc(), n.bin.self, cmdWithEtc, etc, n.bin.koord,
			"--koord-runtimeproxy-endpoint="+socket, "--remote-runtime-service-endpoint="+n.backendSocket())
	})
}

// makeEtc fills dir with what koord-runtime-proxy reads of /etc. An empty hook server
// socket means none.
func makeEtc(dir, hookServer string) error {
	hooks := incumbent.HookDirIn(dir)
	if err := os.MkdirAll(hooks, 0o755); err != nil {
		return err
	}
	if hookServer == "" {
		return nil
	}
	return os.WriteFile(filepath.Join(hooks, "noop.json"), hookServerJSON(hookServer), 0o644)
}

// hookServerJSON registers a hook server, in the form that koordlet uses.
func hookServerJSON(socket string) []byte {
	return fmt.Appendf(nil, `{"remote-endpoint": %q, "failure-policy": "Fail", "runtime-hooks": [%q, %q]}`, socket, preRun, preCreate)
}
