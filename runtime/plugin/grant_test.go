package plugin_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// A grant that is bound reaches the paths that it names with what is below them, or the kinds of CDI devices.
func TestBoundGrants(t *testing.T) {
	rights := plugin.Rights{Declared: abi.AllCapabilities, Granted: abi.AllCapabilities, Bounds: plugin.GrantBounds{
		abi.WriteMounts: {"/opt/tools", "/var/log/*/app"}, abi.WriteDevices: {"/dev/nvidia*"}, abi.WriteCDI: {"nvidia.com/*"},
	}}
	member := &plugin.Member{Capabilities: abi.AllCapabilities, Rights: rights}
	record := func(host string, more ...string) string {
		return string(abi.AppendEntries(nil, func(yield func(k, v string) bool) {
			_ = yield("container_path", "/x") && yield("host_path", host) && (more == nil || yield(more[0], more[1]))
		}))
	}
	device := func(host string) string { return record(host, "permissions", "rw") }
	for _, tt := range []struct {
		field   abi.Field
		element string
		allowed bool
	}{
		{abi.ContainerMounts, record("/opt/tools"), true},
		{abi.ContainerMounts, record("/opt/tools/bin/x"), true},
		{abi.ContainerMounts, record("/var/log/web/app"), true},
		{abi.ContainerMounts, record("/var/log/web/app/today"), true},
		{abi.ContainerMounts, record("/var/log/web"), false},
		{abi.ContainerMounts, record("/var/log/web/x/app"), false},
		{abi.ContainerMounts, record("/opt/toolsx"), false},
		{abi.ContainerMounts, record("/opt"), false},
		{abi.ContainerMounts, record("/"), false},
		{abi.ContainerDevices, device("/dev/nvidia0"), true},
		{abi.ContainerDevices, device("/dev/mem"), false},
		{abi.ContainerCDIDevices, "nvidia.com/gpu=0", true},
		{abi.ContainerCDIDevices, "other.com/gpu=0", false},
	} {
		err := member.NewAdjustment(store{hook: abi.PreCreateContainer}, 0).AddElement(abi.Container, tt.field, tt.element)
		if tt.allowed != (err == nil) || err != nil && !errors.Is(err, abi.Denied) {
			t.Errorf("%q: %v", tt.element, err)
		}
		if err != nil && !strings.Contains(err.Error(), "alone, and this is") {
			t.Errorf("%q: %v does not say what is granted", tt.element, err)
		}
	}
	some := plugin.Rights{
		Declared: abi.AllCapabilities, Granted: abi.DefaultGrant() | abi.CapabilitySetOf(abi.WriteMounts), File: "10-a.json",
		Bounds: plugin.GrantBounds{abi.WriteMounts: {"/opt/tools"}},
	}
	if line := some.Line(); !strings.Contains(line, `"args", {"mounts":["/opt/tools"]}, "devices"`) {
		t.Errorf("the line that grants all is %s", line)
	}
}
