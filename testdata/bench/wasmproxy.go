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
)

// startWasmproxies starts wasmproxy without plugins, with 1, 5 and 8 copies of the wasm
// plugin whose file is qos, and with the hook server.
func (n *node) startWasmproxies(ctx context.Context, qos string) error {
	module, err := os.ReadFile(qos)
	if err != nil {
		return err
	}
	for _, p := range []*party{
		{name: wasmproxy}, {name: wasmproxy1, plugins: 1}, {name: wasmproxy5, plugins: 5}, {name: wasmproxy8, plugins: 8}, {name: remoteHook, plugins: 1},
	} {
		if err := n.startWasmproxy(ctx, p, module); err != nil {
			return err
		}
	}
	return nil
}

func (n *node) startWasmproxy(ctx context.Context, p *party, module []byte) error {
	dir := n.path(p.name)
	plugins, hooks, socket := filepath.Join(dir, "plugins.d"), filepath.Join(dir, "hookserver.d"), filepath.Join(dir, "wasmproxy.sock")
	for _, d := range []string{plugins, hooks, filepath.Join(dir, "cgroup")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	if err := n.install(p, module, plugins, hooks); err != nil {
		return err
	}
	err := n.add(ctx, p, socket, func() (*process, error) {
		return start(n.dir, p.name, nil, n.bin.wasmproxy, "serve", "--listen=unix://"+socket, "--backend=unix://"+n.backendSocket(),
			"--plugin-dir="+plugins, "--cache-dir="+filepath.Join(dir, "cache"), "--hook-dir="+hooks, "--cgroup-root="+filepath.Join(dir, "cgroup"), "--cgroup-mode=v2", "--log-format=json")
	})
	if err != nil {
		return err
	}
	return p.process.await(ctx, p.loaded)
}

// loaded tells whether wasmproxy says that it has loaded all plugins of the party. It answers calls before that.
func (p *party) loaded(context.Context) error {
	said, err := os.ReadFile(p.process.log)
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
	for _, name := range []string{wasmproxy1, wasmproxy5, wasmproxy8} {
		p := n.parties[name]
		if err := createIn(annotated)(ctx, p); err != nil {
			return fmt.Errorf("party %s: %w", name, err)
		}
		resources, err := p.kubelet.arrived(ctx)
		if err != nil {
			return fmt.Errorf("party %s: %w", name, err)
		}
		if resources.GetUnified()["memory.high"] != memoryHighBytes {
			return fmt.Errorf("party %s: a container of the annotated pod arrived with %v; the plugin's memory.high is not there", name, resources)
		}
	}
	return nil
}

// install gives a party its plugins, under names that order them.
func (n *node) install(p *party, module []byte, plugins, hooks string) error {
	if p.name == remoteHook {
		return os.WriteFile(filepath.Join(hooks, "10-noop.json"), hookServerJSON(n.hookSocket()), 0o600)
	}
	for i := range p.plugins {
		if err := os.WriteFile(filepath.Join(plugins, fmt.Sprintf("%d0-qos.wasm", i+1)), module, 0o600); err != nil {
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
			remote += p.creates
		}
		if err := p.checkServed(); err != nil {
			return fmt.Errorf("party %s: %w", p.name, err)
		}
	}
	called, err := strconv.Atoi(string(bytes.TrimSpace(n.hooks.lastWords())))
	if err != nil {
		return fmt.Errorf("count of the hook server: %w", err)
	}
	if called != remote {
		return fmt.Errorf("the hook server was called %d times for %d containers", called, remote)
	}
	return nil
}

// checkServed tells whether a wasmproxy's own count agrees with what was asked of it.
func (p *party) checkServed() error {
	if !strings.HasPrefix(p.name, wasmproxy) {
		return nil
	}
	words := bytes.TrimSpace(p.process.lastWords())
	var s served
	if err := json.Unmarshal(words[bytes.LastIndexByte(words, '\n')+1:], &s); err != nil || s.Msg != "served" {
		return fmt.Errorf("its last line is not the count of what it served: %s", words)
	}
	for hook, failed := range s.Failures {
		if failed > 0 {
			return fmt.Errorf("%d failures at %s; its log ends:\n%s", failed, hook, words)
		}
	}
	if got, want := s.Hooks["PreCreateContainer"], p.creates*p.plugins; got != want {
		return fmt.Errorf("plugins were called %d times for %d containers, want %d", got, p.creates, want)
	}
	return nil
}
