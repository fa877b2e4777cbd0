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
	wp.Plugin("cpu-boost", "1.0.0").OnPreCreateContainer(boost) // in an init function

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
