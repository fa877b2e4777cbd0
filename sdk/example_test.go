package sdk_test

import (
	"fmt"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	wp "github.com/wasmproxy/wasmproxy/sdk"
	"github.com/wasmproxy/wasmproxy/sdk/sdktest"
)

// A plugin doubles the CPU quota of containers whose pod asks for it.
func ExamplePlugin() {
	boost := func(c *wp.PreCreateContainer) error {
		if v, _ := c.Pod().Annotation("example.com/boost"); v != "2x" {
			return nil
		}
		c.Resources().SetCPUQuota(2 * c.Resources().CPUQuota())
		return c.SetAnnotation("example.com/boosted", "true")
	}
	wp.Plugin("cpu-boost", "1.0.0").Needs(wp.CapResources, wp.CapAnnotations).
		OnPreCreateContainer(boost, wp.Match{Namespaces: []string{"prod-*"}}) // in an init function

	var t testing.T // a test's own
	changes, err := sdktest.Case{
		Hook:      abi.PreCreateContainer,
		Pod:       sdktest.Fields{"annotations": map[string]string{"example.com/boost": "2x"}},
		Container: sdktest.Fields{"resources.cpu_quota": 50_000},
	}.Call(&t, sdktest.Native(&t, "", nil))
	fmt.Println(changes["container.resources.cpu_quota"], err)
	// Output: 100000 <nil>
}

// A plugin that can do without cgroup v2 goes on where the node has v1.
func ExampleHandled() {
	_ = func(c *wp.PreCreateContainer) error {
		err := c.Resources().SetUnified("memory.high", "268435456")
		if wp.Handled(err, wp.ErrUnsupported) {
			wp.Log(wp.LevelInfo, "no memory.high on cgroup v1")
			return nil
		}
		return err
	}
}

// A plugin refuses pods that it does not want on this node.
func ExamplePreRunPodSandbox() {
	_ = func(p *wp.PreRunPodSandbox) error {
		if p.RuntimeHandler() == "" && p.Namespace() == "untrusted" {
			return p.Reject(wp.FailedPrecondition, "pods of namespace untrusted need a sandboxing RuntimeClass")
		}
		return nil
	}
}

// A plugin lowers the CPU weight of the containers of a namespace, every ten seconds.
func ExampleRegistration_OnTick() {
	everyTenSeconds := func(*wp.Tick) error {
		for _, pod := range wp.Pods("batch") {
			for _, c := range pod.Containers() {
				if c.State() == "running" && c.Resources().CPUShares() > 2 {
					c.Resources().SetCPUShares(2)
				}
			}
		}
		return nil
	}
	_ = func() {
		wp.Plugin("calm", "1.0.0").Needs(wp.CapStoreRead, wp.CapResources, wp.CapUpdateOthers).OnTick(everyTenSeconds, 10_000)
	}
}

// A plugin refuses shells in containers of some pods.
func ExamplePreExec() {
	_ = func(e *wp.PreExec) error {
		if command := e.ExecCommand(); e.TTY() && len(command) > 0 {
			return e.Reject(wp.PermissionDenied, command[0]+": no terminals in this pod")
		}
		return nil
	}
}
