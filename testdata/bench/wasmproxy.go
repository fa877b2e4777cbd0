package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/wasmproxy/wasmproxy/testdata/bench/process"
)

// startWasmproxies starts wasmproxy without plugins, with 1, 5 and 8 copies of a real wasm
// plugin, with a wasm plugin that does nothing, and with the hook server. root is the repository.
func (n *node) startWasmproxies(ctx context.Context, root string) error {
	qos, err := os.ReadFile(filepath.Join(root, "plugins-wasm", "qos", "qos.wasm"))
	if err != nil {
		return err
	}
	noop, err := os.ReadFile(filepath.Join(root, "testdata", "wat", "noop.wasm"))
	if err != nil {
		return err
	}
	create, run := []string{preCreate}, []string{preRun}
	for _, p := range []*party{
		{name: wasmproxy}, {name: wasmproxy1, plugins: 1, hooks: create}, {name: wasmproxy5, plugins: 5, hooks: create}, {name: wasmproxy8, plugins: 8, hooks: create},
		{name: recorded, plugins: 1, hooks: create, flags: []string{"--admin-socket=" + n.path(recorded, "admin.sock")}},
		{name: shadowed, plugins: 1, hooks: create, flags: []string{"--admin-socket=" + n.path(shadowed, "admin.sock")}},
		{name: withSinks, plugins: 1, hooks: create, flags: sinks(n), env: n.traced()}, {name: noopWasm, plugins: 1, hooks: run}, {name: remoteHook, plugins: 1, hooks: []string{preRun, preCreate}},
	} {
		module := qos
		if p.name == noopWasm {
			module = noop
		}
		if err := n.startWasmproxy(ctx, p, module); err != nil {
			return err
		}
	}
	return nil
}

func (n *node) startWasmproxy(ctx context.Context, p *party, module []byte) error {
	if err := n.install(p, module); err != nil {
		return err
	}
	if err := n.add(ctx, p, n.socketOf(p), func() (*process.Process, error) { return n.exec(p) }); err != nil {
		return err
	}
	return p.process.Await(ctx, p.loaded)
}

// sinks are the flags that turn on each sink of events which the other parties do not have. Metrics
// are counted in all; here they can also be asked for. A new sink has its flag here.
func sinks(n *node) []string {
	return []string{"--admin-socket=" + n.path(withSinks, "admin.sock"), "--audit-log=" + n.path(logs, "audit.json")}
}

// traced are the variables that turn on traces. The sampler is the default: kubelet sends no trace, so
// that each hooked call is sampled.
func (n *node) traced() []string { return []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + n.tracesURL} }

func (n *node) socketOf(p *party) string { return n.path(p.name, "wasmproxy.sock") }

// exec starts the wasmproxy of a party on what install gave it.
func (n *node) exec(p *party) (*process.Process, error) {
	argv := append(append([]string{"/usr/bin/env"}, p.env...), n.bin.wasmproxy, "serve", "--listen=unix://"+n.socketOf(p), "--backend=unix://"+n.backendSocket(),
		"--plugin-dir="+n.path(p.name, "plugins.d"), "--cache-dir="+n.path(p.name, "cache"), "--state-dir="+filepath.Join(n.memory, p.name), "--data-dir="+n.path(p.name, "data"), "--admin-socket=", "--status-socket=", "--hook-dir="+n.path(p.name, "hookserver.d"),
		"--cgroup-root="+n.path(p.name, "cgroup"), "--cgroup-mode=v2", "--log-format=json")
	return process.Start(n.path(logs), p.name, nil, append(argv, p.flags...)...)
}

// loaded tells whether wasmproxy says that it has loaded all plugins of the party. It answers calls before that.
func (p *party) loaded(context.Context) error {
	said, err := os.ReadFile(p.process.Log)
	if err != nil {
		return err
	}
	if n := bytes.Count(said, []byte(`"msg":"plugin loaded"`)); n < p.plugins {
		return fmt.Errorf("%d plugins loaded, want %d", n, p.plugins)
	}
	return nil
}

// checkChange tells whether what the wasm plugins ask for reaches the backend.
func (n *node) checkChange(ctx context.Context) error {
	for _, name := range []string{wasmproxy1, recorded, shadowed, withSinks, wasmproxy5, wasmproxy8} {
		p := n.parties[name]
		if err := p.checkChange(ctx); err != nil {
			return fmt.Errorf("party %s: %w", name, err)
		}
	}
	return nil
}

func (p *party) checkChange(ctx context.Context) error {
	if err := createIn(annotated)(ctx, p); err != nil {
		return err
	}
	resources, err := p.kubelet.arrived(ctx)
	if err != nil {
		return err
	}
	if resources.GetUnified()["memory.high"] != memoryHighBytes {
		return fmt.Errorf("a container of the annotated pod arrived with %v; the plugin's memory.high is not there", resources)
	}
	return nil
}

// install gives a party its directories and its plugins, under names that order them.
func (n *node) install(p *party, module []byte) error {
	plugins, hooks := n.path(p.name, "plugins.d"), n.path(p.name, "hookserver.d")
	for _, dir := range []string{plugins, hooks, n.path(p.name, "cgroup")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if p.name == remoteHook {
		return os.WriteFile(filepath.Join(hooks, "10-noop.json"), hookServerJSON(n.hookSocket()), 0o600)
	}
	settings := map[string]any{"runtime-hooks": p.hooks} // of those that the module has
	if p.name == shadowed {
		settings["shadow"] = map[string]string{"wasm-module": "01-measured.wasm"}
	}
	file, err := json.Marshal(settings)
	if err != nil {
		return err
	}
	for i := range p.plugins {
		name := filepath.Join(plugins, fmt.Sprintf("%02d-measured", i+1))
		if err := os.WriteFile(name+".json", file, 0o600); err != nil {
			return err
		}
		if err := os.WriteFile(name+".wasm", module, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// served is what wasmproxy says when it ends.
type served struct {
	Msg      string         `json:"msg"`
	Hooks    map[string]int `json:"hooks"`
	Failures map[string]int `json:"hook_failures"`
}

// checkHooks tells whether each plugin was called for each container asked for. It reads what the processes wrote
// when they ended.
func (n *node) checkHooks() error {
	remote := 0
	for _, p := range n.parties {
		switch p.name {
		case koordHook, remoteHook:
			remote += p.asked[preRun] + p.asked[preCreate]
		}
		if err := p.checkServed(); err != nil {
			return fmt.Errorf("party %s: %w", p.name, err)
		}
	}
	called, err := strconv.Atoi(string(bytes.TrimSpace(n.hooks.LastWords())))
	if err != nil {
		return fmt.Errorf("count of the hook server: %w", err)
	}
	if called != remote {
		return fmt.Errorf("the hook server was called %d times for %d pods and containers", called, remote)
	}
	return nil
}

// checkServed tells whether a wasmproxy's own count agrees with what was asked of it.
func (p *party) checkServed() error {
	if !strings.HasPrefix(p.name, wasmproxy) {
		return nil
	}
	words := bytes.TrimSpace(p.process.LastWords())
	var s served
	if err := json.Unmarshal(words[bytes.LastIndexByte(words, '\n')+1:], &s); err != nil || s.Msg != "served" {
		return fmt.Errorf("its last line is not the count of what it served: %s", words)
	}
	for hook, failed := range s.Failures {
		if failed > 0 {
			return fmt.Errorf("%d failures at %s; its log ends:\n%s", failed, hook, words)
		}
	}
	for _, hook := range p.hooks {
		if got, want := s.Hooks[hook], p.asked[hook]*p.plugins; got != want {
			return fmt.Errorf("plugins were called %d times at %s for %d calls, want %d", got, hook, p.asked[hook], want)
		}
	}
	return nil
}
