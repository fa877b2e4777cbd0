package faults_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/isolation"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// act is a part of a fault.
type act func(t *testing.T, c *cluster)

// fault is what befalls the node while calls are held.
type fault struct {
	name   string
	means  string // for the table of results
	before act    // the pods are made; nil: there is nothing to do
	strike act    // makes the fault; then the calls that are held go on
	mend   act    // ends it
	after  act    // the pods are gone; nil: there is nothing to do
}

// frozen is how long the container runtime does nothing, or the proxy can open no file.
const frozen = 5 * time.Second

// slow is how long a slow hook server takes for an answer.
const slow = 400 * time.Millisecond

// faults are all faults: the kills and the freeze also with a slow and with a hung plugin.
var faults = func() (all []fault) {
	all = []fault{
		{"kill-proxy", "kill -9 of wasmproxy, and a start", nil, killProxy, startProxy, nil},
		{"kill-backend", "kill -9 of the container runtime, and a start", nil, killBackend, startBackend, nil},
		{"kill-hookserver", "kill -9 of a hook server with policy Fail, and a start 2 s later", nil, killHookServer, startHookServer, nil},
		{"kill-kubelet", "kill -9 of kubelet, and a start", nil, killKubelet, startKubelet, nil},
		{"freeze-backend", "SIGSTOP of the container runtime for 5 s", nil, freezeBackend, thawBackend, nil},
	}
	for _, f := range all {
		all = append(all,
			fault{f.name + "+slow", "the same with a hook server that answers after 0.4 s", slowDown, f.strike, f.mend, speedUp},
			fault{f.name + "+hung", "the same with a plugin that never returns, and policy Ignore", hang, f.strike, f.mend, unhang},
		)
	}
	return append(all,
		fault{"full-cache", "no space in the cache directory, kill -9 of wasmproxy, a start, a new plugin, and space again", smallCache, fillCache, startWithFullCache, largeCache},
		fault{"half-plugin", "half of a plugin's file in its place for 5 s, and then the whole", nil, halvePlugin, restorePlugin, nil},
		fault{"no-descriptors", "wasmproxy can open no file and no connection for 5 s", nil, takeDescriptors, giveDescriptors, nil},
	)
}()

func killProxy(_ *testing.T, c *cluster) {
	c.proxy.Kill()
	c.front.Cut()
}

func startProxy(t *testing.T, c *cluster) {
	c.proxy.Start(t)
	must(t, c.front.Open())
}

func killBackend(_ *testing.T, c *cluster) {
	c.runtime.Kill()
	c.back.Cut()
}

func startBackend(t *testing.T, c *cluster) {
	c.runtime.StartAgain(t)
	must(t, c.back.Open())
}

func killHookServer(_ *testing.T, c *cluster) {
	c.server.Kill()
	c.hooks.Cut()
}

func startHookServer(t *testing.T, c *cluster) {
	time.Sleep(2 * time.Second) // in which calls are refused
	c.server.Start(t)
	must(t, c.hooks.Open())
}

func killKubelet(_ *testing.T, c *cluster) { c.kubelet.Kill() }

func startKubelet(t *testing.T, c *cluster) { c.kubelet.StartAgain(t) }

func freezeBackend(t *testing.T, c *cluster) { must(t, c.runtime.Signal(syscall.SIGSTOP)) }

func thawBackend(t *testing.T, c *cluster) {
	time.Sleep(frozen)
	must(t, c.runtime.Signal(syscall.SIGCONT))
}

func slowDown(_ *testing.T, c *cluster) { c.hooks.Delay(slow) }

func speedUp(_ *testing.T, c *cluster) { c.hooks.Delay(0) }

// hang adds a plugin that loops for ever.
func hang(t *testing.T, c *cluster) { c.proxy.Add(t, node.Loop) }

func unhang(t *testing.T, c *cluster) { c.proxy.Remove(t, node.Loop) }

// smallCache starts wasmproxy with a file system of its own for the cache.
func smallCache(t *testing.T, c *cluster) {
	killProxy(t, c)
	must(t, unix.Mount("cache", c.proxy.CacheDir, "tmpfs", 0, "size=64m,mode=700"))
	startProxy(t, c)
}

func fillCache(t *testing.T, c *cluster) {
	file, err := os.Create(ballast(c))
	must(t, err)
	defer file.Close()
	for err == nil {
		_, err = file.Write(make([]byte, 1<<12))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	killProxy(t, c)
}

var addedPlugin = node.Roster("80-roster")

// startWithFullCache adds a plugin that has to be compiled, for whose code there is no space. When
// there is, it must become active though nothing changes its file.
func startWithFullCache(t *testing.T, c *cluster) {
	startProxy(t, c)
	c.proxy.Install(t, addedPlugin)
	must(t, poll(t.Context(), time.Minute, "the new plugin finds no space", func() error {
		return c.expectPending(t, "80-roster", "inactive", "no space left on device")
	}))
	must(t, os.Remove(ballast(c)))
	c.proxy.AwaitPlugins(t)
}

func ballast(c *cluster) string { return filepath.Join(c.proxy.CacheDir, "ballast") }

// expectPending demands that a plugin has this state, and a version that failed for this reason.
func (c *cluster) expectPending(t *testing.T, id, state, reason string) error {
	t.Helper()
	var status struct {
		Plugins []struct {
			ID, State string
			Pending   *struct{ State, Reason string }
		}
	}
	must(t, c.proxy.Ask(t.Context(), &status, "status"))
	for _, p := range status.Plugins {
		if p.ID == id && p.State == state && p.Pending != nil && p.Pending.State == "failed" && strings.Contains(p.Pending.Reason, reason) {
			return nil
		}
	}
	return fmt.Errorf("the plugins are %+v, want %s %s, with a version that failed with %q", status.Plugins, id, state, reason)
}

func largeCache(t *testing.T, c *cluster) {
	c.proxy.Remove(t, addedPlugin)
	killProxy(t, c)
	must(t, unix.Unmount(c.proxy.CacheDir, 0))
	startProxy(t, c)
}

// halvePlugin writes over the witness's file, as a copy does that has not ended.
func halvePlugin(t *testing.T, c *cluster) {
	module, err := os.ReadFile(isolation.Current().Program(node.Noop.Program))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(c.proxy.PluginDir, node.Noop.File), module[:len(module)/2], 0o644))
}

// restorePlugin looks whether the last good version has stayed, and writes the whole file.
func restorePlugin(t *testing.T, c *cluster) {
	time.Sleep(frozen)
	must(t, poll(t.Context(), time.Minute, "half a file is refused", func() error {
		return c.expectPending(t, witness, "active", "")
	}))
	module, err := os.ReadFile(isolation.Current().Program(node.Noop.Program))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(c.proxy.PluginDir, node.Noop.File), module, 0o644))
}

// takeDescriptors lowers the limit of the running wasmproxy to the descriptors that it has.
func takeDescriptors(t *testing.T, c *cluster) { limitDescriptors(t, c.proxy.PID(), 3) }

func giveDescriptors(t *testing.T, c *cluster) {
	time.Sleep(frozen)
	limitDescriptors(t, c.proxy.PID(), 1<<16)
}

func limitDescriptors(t *testing.T, pid int, n uint64) {
	t.Helper()
	var now unix.Rlimit
	must(t, unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &now))
	must(t, unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: min(n, now.Max), Max: now.Max}, nil))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// kills reports whether the fault ends a part of the node, such as proxy, without warning.
func (f fault) kills(part string) bool {
	return strings.HasPrefix(f.name, "kill-"+part) || part == "proxy" && f.name == "full-cache"
}
