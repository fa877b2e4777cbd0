package plugin_test

import (
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// limited is an event of a container with a quota of 50 ms of each 100 ms, in a pod with limits.
type limited struct {
	subject
	files map[string]string // of the pod
	asked int
}

func (l *limited) PodLimit(_ abi.Object, file string) (string, bool) {
	l.asked++
	value, ok := l.files[file]
	return value, ok
}

func (l *limited) Int64(_ abi.Object, f abi.Field) (int64, abi.Errno) {
	switch f {
	case abi.Resources + abi.CPUQuota:
		return 50_000, abi.OK
	case abi.Resources + abi.CPUPeriod:
		return 100_000, abi.OK
	}
	return 0, abi.NotFound
}

type adjust = func(*plugin.Adjustment) error

func setResource(f abi.Field, v int64) adjust {
	return func(a *plugin.Adjustment) error { return a.SetInt64(abi.Container, abi.Resources+f, v) }
}

func setUnified(key, v string) adjust {
	return func(a *plugin.Adjustment) error { return a.SetEntry(abi.Container, abi.Resources+abi.Unified, key, v) }
}

// TestLimitAbovePod sets limits of a container without the capability pod.limits: a finite one
// above the pod's is refused, and the error names both.
func TestLimitAbovePod(t *testing.T) {
	pod := map[string]string{"cpu.max": "50000 100000", "memory.max": "134217728"}
	for _, tt := range []struct {
		name  string
		files map[string]string
		set   []adjust // the last one counts
		names []string // by the error; nil: it is allowed
	}{
		{"a quota", pod, []adjust{setResource(abi.CPUQuota, 100_000)}, []string{`"100000 100000"`, `"50000 100000"`}},
		{"the pod's quota", pod, []adjust{setResource(abi.CPUQuota, 50_000)}, nil},
		{"no quota", pod, []adjust{setResource(abi.CPUQuota, -1)}, nil},
		{"a quota in a pod without", map[string]string{"cpu.max": "max 100000"}, []adjust{setResource(abi.CPUQuota, 100_000)}, nil},
		{"a quota in a pod that is not known", nil, []adjust{setResource(abi.CPUQuota, 100_000)}, nil},
		{"a quota in a pod with another period", map[string]string{"cpu.max": "10000 20000"}, []adjust{setResource(abi.CPUQuota, 50_001)}, []string{`"50001 100000"`, `"10000 20000"`}},
		{"the same share in another period", map[string]string{"cpu.max": "10000 20000"}, []adjust{setResource(abi.CPUQuota, 50_000)}, nil},
		{"a shorter period", pod, []adjust{setResource(abi.CPUPeriod, 99_999)}, []string{`"50000 99999"`}},
		{"a longer period, and then the quota", pod, []adjust{setResource(abi.CPUPeriod, 200_000), setResource(abi.CPUQuota, 100_000)}, nil},
		{"the largest quota", pod, []adjust{setResource(abi.CPUPeriod, 1_000), setResource(abi.CPUQuota, 17_592_186_044_415)}, []string{`"17592186044415 100000"`}},
		{"memory", pod, []adjust{setResource(abi.MemoryLimit, 134217729)}, []string{`"134217729"`, `"134217728"`}},
		{"the pod's memory", pod, []adjust{setResource(abi.MemoryLimit, 134217728)}, nil},
		{"memory by unified", pod, []adjust{setUnified("memory.max", "134221824")}, []string{`"134221824"`, `"134217728"`}},
		{"CPU by unified", pod, []adjust{setUnified("cpu.max", "60000 100000")}, []string{`"60000 100000"`, `"50000 100000"`}},
		{"no limit by unified", pod, []adjust{setUnified("cpu.max", "max 100000")}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ev := &limited{subject: subject{hook: abi.PreCreateContainer}, files: tt.files}
			member := &plugin.Member{Capabilities: abi.DefaultGrant(), Rights: plugin.Rights{Declared: abi.CapabilitySetOf(abi.WriteResources, abi.WriteUnified, abi.PodLimits), Granted: abi.DefaultGrant(), File: "10-a.json"}}
			a := member.NewAdjustment(ev, 2)
			var err error
			for _, set := range tt.set {
				err = set(a)
			}
			if tt.names == nil {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if plugin.ErrnoOf(err) != abi.Denied {
				t.Fatalf("the error is %v, want %v", err, abi.Denied)
			}
			for _, name := range append(tt.names, `add  "grant": ["pod.limits"]  to 10-a.json`) {
				if !strings.Contains(err.Error(), name) {
					t.Errorf("%q does not name %s", err, name)
				}
			}
		})
	}
}

// TestLimitAbovePodGranted has the capability: v2 raises the pod's limit, and v1 cannot.
func TestLimitAbovePodGranted(t *testing.T) {
	member := &plugin.Member{Capabilities: abi.AllCapabilities}
	for _, value := range []int64{100_000, 40_000, -1} {
		ev := &limited{subject: subject{hook: abi.PreCreateContainer}, files: map[string]string{"cpu.max": "50000 100000"}}
		a := member.NewAdjustment(ev, 2)
		if err := a.SetInt64(abi.Container, abi.Resources+abi.CPUQuota, value); err != nil || !a.Changes()[0].Raises {
			t.Errorf("quota %d: %v, %+v; want a change that raises the pod's", value, err, a.Changes())
		}
		a = member.NewAdjustment(ev, 1)
		err := a.SetInt64(abi.Container, abi.Resources+abi.CPUQuota, value)
		if want := map[bool]abi.Errno{true: abi.Unsupported, false: abi.OK}[value == 100_000]; plugin.ErrnoOf(err) != want {
			t.Errorf("quota %d on cgroup v1: %v, want %v", value, err, want)
		}
	}
}

// TestPodLimitIsNotRead makes changes that have nothing to do with limits, and has a hook server
// which keeps pods' limits itself: no file is read.
func TestPodLimitIsNotRead(t *testing.T) {
	ev := &limited{subject: subject{hook: abi.PreCreateContainer}, files: map[string]string{"cpu.max": "50000 100000"}}
	a := (&plugin.Member{Capabilities: abi.DefaultGrant()}).NewAdjustment(ev, 2)
	server := (&plugin.Member{Capabilities: abi.AllCapabilities, KeepsPodLimits: true}).NewAdjustment(ev, 2)
	for _, err := range []error{
		setResource(abi.CPUShares, 1024)(a), a.SetEntry(abi.Container, abi.ContainerAnnotations, "k", "v"),
		setUnified("memory.high", "4096")(a), setResource(abi.CPUQuota, 100_000)(server),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	if ev.asked > 0 {
		t.Errorf("the pod's limits were read %d times", ev.asked)
	}
	if server.Changes()[0].Raises {
		t.Error("a hook server's limit raises the pod's")
	}
}
