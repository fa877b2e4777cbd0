package faults_test

import (
	"syscall"
	"testing"
	"time"
)

// fault is what befalls the node while calls are held.
type fault struct {
	name  string
	means string // for the table of results
	// strike makes the fault. The calls that are held go on when it returns.
	strike func(t *testing.T, c *cluster)
	// mend ends it.
	mend func(t *testing.T, c *cluster)
}

// frozen is how long the container runtime does nothing.
const frozen = 5 * time.Second

var faults = []fault{
	{"kill-proxy", "kill -9 of wasmproxy, and a start", killProxy, startProxy},
	{"kill-backend", "kill -9 of the container runtime, and a start", killBackend, startBackend},
	{"kill-hookserver", "kill -9 of a hook server with policy Fail, and a start", killHookServer, startHookServer},
	{"kill-kubelet", "kill -9 of kubelet, and a start", killKubelet, startKubelet},
	{"freeze-backend", "SIGSTOP of the container runtime for 5 s", freezeBackend, thawBackend},
}

func killProxy(_ *testing.T, c *cluster) {
	c.proxy.Kill()
	c.front.Cut()
}

func startProxy(t *testing.T, c *cluster) {
	c.proxy.Start(t)
	if err := c.front.Open(); err != nil {
		t.Fatal(err)
	}
}

func killBackend(_ *testing.T, c *cluster) {
	c.runtime.Kill()
	c.back.Cut()
}

func startBackend(t *testing.T, c *cluster) {
	c.runtime.StartAgain(t)
	if err := c.back.Open(); err != nil {
		t.Fatal(err)
	}
}

func killHookServer(_ *testing.T, c *cluster) { c.server.Kill() }

func startHookServer(t *testing.T, c *cluster) {
	time.Sleep(2 * time.Second) // in which calls are refused
	c.server.Start(t)
}

func killKubelet(_ *testing.T, c *cluster) { c.kubelet.Kill() }

func startKubelet(t *testing.T, c *cluster) { c.kubelet.StartAgain(t) }

func freezeBackend(t *testing.T, c *cluster) {
	if err := c.runtime.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
}

func thawBackend(t *testing.T, c *cluster) {
	time.Sleep(frozen)
	if err := c.runtime.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}
