package wasm

import (
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// A guest gets a number for what the host refuses. What it fails with tells the reason, which
// only the host knows: which field or file, why, and what to do.
func TestFailureHasTheHostsReason(t *testing.T) {
	ev := newEvent()
	granted := abi.DefaultGrant()
	const quota, unified = abi.Resources + abi.CPUQuota, abi.Resources + abi.Unified
	rights := plugin.Rights{Declared: abi.AllCapabilities &^ abi.CapabilitySetOf(abi.WriteMounts), Granted: granted, File: "10-functions.json"}
	for _, tt := range []struct {
		name  string
		errno abi.Errno
		call  string
		args  []any
		want  string // what is added, or nothing
	}{
		{"out of range", abi.Invalid, "set_i64", []any{abi.Container, quota, 999},
			"container.resources.cpu_quota: invalid: 999: want 1000 to 17592186044415 µs, or -1 for no limit"},
		{"a file's value", abi.Invalid, "cgroup_set", []any{abi.Container, "memory.high", "100Mi"},
			`container cgroup file memory.high: invalid: "100Mi": want bytes, or max`},
		{"a file that is not on the list", abi.Denied, "cgroup_set", []any{abi.Container, "cgroup.kill", "1"},
			"container cgroup file cgroup.kill: denied: no plugin may write this file of a container with cgroup_set, only cpu.weight, cpu.weight.nice, cpu.max,"},
		{"unified", abi.Denied, "map_set", []any{abi.Container, unified, "cgroup.procs", "1"},
			`container.resources.unified["cgroup.procs"]: denied: no plugin may write this file of a container with unified, only cpu.weight,`},
		{"kubelet's", abi.Denied, "map_set", []any{abi.Container, abi.ContainerAnnotations, "io.kubernetes.x", "1"},
			`container.annotations["io.kubernetes.x"]: denied: keys that begin with io.kubernetes. are kubelet's`},
		{"not in this hook", abi.ReadOnly, "map_set", []any{abi.Pod, abi.PodLabels, "a", "b"},
			`pod.labels["a"]: read-only here: PreCreateContainer cannot change it, only PreRunPodSandbox`},
		{"in no hook", abi.ReadOnly, "set_bytes", []any{abi.Pod, abi.PodName, "x"}, "pod.name: read-only here: no hook can change it"},
		{"a file of another object", abi.ReadOnly, "cgroup_set", []any{abi.Pod, "cpu.idle", "1"},
			"pod cgroup file cpu.idle: read-only here: PreCreateContainer cannot change it, only PreRunPodSandbox, PostRunPodSandbox, Synchronize"},
		{"declared and not granted", abi.Denied, "list_set", []any{abi.Container, abi.ContainerArgs, "\x00\x00\x00\x00"},
			`container.args: denied: the capability args is declared but not granted: ` + rights.Remedy()},
		{"not declared", abi.Denied, "list_del", []any{abi.Container, abi.ContainerMounts, "/x"},
			`container.mounts["/x"]: denied: the plugin's manifest does not declare the capability mounts`},
		{"a field that may not be read", abi.Denied, "map_get", []any{abi.Container, abi.ContainerEnv, "HOME", buffer, 8},
			`map_get container.env["HOME"]: denied: the capability env is declared but not granted: ` + rights.Remedy()},
		{"a function", abi.Denied, "cri_raw", []any{buffer, 8}, "cri_raw: denied: the capability cri.raw is declared but not granted"},
		{"what is not there", abi.NotFound, "map_get", []any{abi.Pod, abi.PodLabels, "none", buffer, 8}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCaller(t, ev, PluginOptions{Granted: granted})
			adj := (&plugin.Member{Capabilities: granted, Rights: rights}).NewAdjustment(ev, 2)
			c.c.adj = adj
			c.wantErrno(tt.errno, tt.call, tt.args...)
			c.c.reason = "it did not work"
			want := "failed: it did not work"
			if tt.want != "" {
				want += "; the host refused " + tt.want
			}
			if err := c.c.verdict(int32(tt.errno)); !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got  %v\nwant %s", err, want)
			}
			if err := c.c.verdict(int32(abi.Conflict)); err.Error() != "failed: it did not work" {
				t.Errorf("of another number: %v", err)
			}
			c.c.reason = ""
			if err := c.c.verdict(int32(tt.errno)); !strings.Contains(err.Error(), tt.want) {
				t.Errorf("without words of its own: %v", err)
			}
		})
	}
}

// A plugin that goes on after refusals fails with the first that it did not handle, or with one
// of its own choice: the reasons of all that had its number are told, as far as they are kept.
func TestFailureHasTheReasonsOfSeveralRefusals(t *testing.T) {
	ev := newEvent()
	c := newCaller(t, ev, PluginOptions{})
	for n := range 100 {
		c.wantErrno(abi.Denied, "map_set", abi.Container, abi.ContainerAnnotations, "io.kubernetes."+strings.Repeat("x", n), "1")
	}
	c.wantErrno(abi.Invalid, "set_i64", abi.Container, abi.Resources+abi.CPUShares, 1)
	c.wantErrno(abi.Invalid, "set_i64", abi.Container, abi.Resources+abi.CPUShares, 1)
	c.c.reason = "SetCPUShares: invalid"
	if got, want := c.c.verdict(int32(abi.Invalid)).Error(), "failed: SetCPUShares: invalid; the host refused container.resources.cpu_shares: invalid: 1: want 2 to 262144"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	c.c.reason = "SetAnnotation: denied"
	got := c.c.verdict(int32(abi.Denied)).Error()
	if !strings.HasPrefix(got, `failed: SetAnnotation: denied; the host refused container.annotations["io.kubernetes."]: denied: `) || len(got) > 4<<10 {
		t.Errorf("got %s", got)
	}
}

// A value that was refused may be a secret.
func TestHostsReasonHasNoSecret(t *testing.T) {
	ev := newEvent()
	const secret = "hunter2-hunter2"
	ev.maps[slot{abi.Container, abi.ContainerEnv}]["PASSWORD"] = secret
	c := newCaller(t, ev, PluginOptions{Granted: abi.AllCapabilities})
	c.wantErrno(abi.Invalid, "set_bytes", abi.Container, abi.ContainerImage, "no image "+secret)
	c.wantErrno(abi.Invalid, "map_set", abi.Container, abi.Resources+abi.HugepageLimits, "2MB", secret)
	err := c.c.verdict(int32(abi.Invalid))
	if strings.Contains(err.Error(), secret) || strings.Count(err.Error(), "(hidden)") != 2 {
		t.Errorf("got %v", err)
	}
}
