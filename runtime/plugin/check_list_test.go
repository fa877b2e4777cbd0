package plugin_test

import (
	"context"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

func record(pairs ...string) string {
	return string(abi.AppendEntries(nil, func(yield func(k, v string) bool) {
		for i := 0; i < len(pairs) && yield(pairs[i], pairs[i+1]); i += 2 {
		}
	}))
}

// TestElements adds to sets what may be in them and what may not.
func TestElements(t *testing.T) {
	mount := func(more ...string) string {
		return record(append([]string{"container_path", "/data", "host_path", "/srv/data"}, more...)...)
	}
	for _, tt := range []struct {
		field         abi.Field
		element, want string // the key, or "!" and the reason
	}{
		{abi.ContainerMounts, mount(), "/data"},
		{abi.ContainerMounts, mount("readonly", "true", "propagation", "host_to_container", "selinux_relabel", "false"), "/data"},
		{abi.ContainerMounts, mount("readonly", "true", "recursive_read_only", "true"), "/data"},
		{abi.ContainerMounts, mount("recursive_read_only", "true"), "!recursive_read_only needs readonly"},
		{abi.ContainerMounts, mount("readonly", "yes"), `!readonly "yes": want true or false`},
		{abi.ContainerMounts, mount("propagation", "rshared"), `!propagation "rshared": want private, host_to_container or bidirectional`},
		{abi.ContainerMounts, mount("colour", "red"), `!it has no key "colour"`},
		{abi.ContainerMounts, mount("host_path", "/x"), "!it has host_path twice"},
		{abi.ContainerMounts, record("container_path", "/data"), `!host_path "": want an absolute, clean path`},
		{abi.ContainerMounts, record("container_path", "/a/../etc", "host_path", "/x"), `!container_path "/a/../etc": want an absolute, clean path`},
		{abi.ContainerMounts, record("container_path", "/", "host_path", "/x"), "!the root of the container"},
		{abi.ContainerMounts, "/data", "!its encoding is not that of a record"},
		{abi.ContainerMounts, mount() + "x", "!its encoding is not that of a record"},
		{abi.ContainerDevices, record("container_path", "/dev/fuse", "host_path", "/dev/fuse", "permissions", "rw"), "/dev/fuse"},
		{abi.ContainerDevices, record("container_path", "/dev/fuse", "host_path", "/dev/fuse", "permissions", "rwx"), `!permissions "rwx": want any of r, w and m`},
		{abi.ContainerDevices, record("container_path", "/dev/fuse", "host_path", "/dev/fuse"), `!permissions "": want any of r, w and m`},
		{abi.ContainerCDIDevices, "vendor.com/gpu=0", "vendor.com/gpu=0"},
		{abi.ContainerCDIDevices, "gpu0", "!vendor/class=name"},
		{abi.ContainerSupplementalGroups, "1000", "1000"},
		{abi.ContainerSupplementalGroups, "-1", `!"-1": want the number of a group, 0 to 2147483647`},
		{abi.ContainerSupplementalGroups, "007", "!want the number of a group"},
		{abi.ContainerSupplementalGroups, "2147483648", "!want the number of a group"},
	} {
		a := plugin.NewAdjustment(abi.PreCreateContainer, 0)
		err := a.AddElement(abi.Container, tt.field, tt.element)
		reason, bad := strings.CutPrefix(tt.want, "!")
		switch {
		case bad && (plugin.ErrnoOf(err) != abi.Invalid || !strings.Contains(err.Error(), reason)):
			t.Errorf("%q: got %v, want INVALID with %q", tt.element, err, reason)
		case !bad && (err != nil || a.Changes()[0].Key != tt.want):
			t.Errorf("%q: got %v, %+v, want key %q", tt.element, err, a.Changes(), tt.want)
		}
	}
}

// TestRecordsHaveOneForm adds one mount in two forms: two plugins agree on it.
func TestRecordsHaveOneForm(t *testing.T) {
	add := func(element string) function {
		return func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
			return adj.AddElement(abi.Container, abi.ContainerMounts, element)
		}
	}
	s, owned, log, err := dispatch(t,
		member("10-a", plugin.Fail, add(record("host_path", "/h", "container_path", "/c", "readonly", "false"))),
		member("20-b", plugin.Fail, add(record("container_path", "/c", "host_path", "/h"))))
	if err != nil || len(s.applied) != 2 || s.applied[0].Change != s.applied[1].Change {
		t.Errorf("got %+v, %v, want two that are the same", s.applied, err)
	}
	if want := `"field":"container.mounts[\"/c\"]","value":"container_path=/c host_path=/h"`; !strings.Contains(log, want) {
		t.Errorf("logged %s, want %s", log, want)
	}
	_, _, _, err = dispatch(t, member("10-a", plugin.Fail, add(record("container_path", "/c", "host_path", "/h"))),
		member("20-b", plugin.Fail, add(record("container_path", "/c", "host_path", "/other"))))
	if err == nil || !strings.Contains(err.Error(), `conflict over container.mounts["/c"], which plugin 10-a has set`) {
		t.Errorf("got %v after %v, want a conflict", err, owned)
	}
}

func TestLists(t *testing.T) {
	a := plugin.NewAdjustment(abi.PreCreateContainer, 0)
	if err := a.Add(plugin.Change{Op: plugin.SetList, Object: abi.Container, Field: abi.ContainerArgs, Text: string(abi.AppendList(nil, []string{"-v", ""}))}); err != nil {
		t.Fatal(err)
	}
	if got := a.Changes()[0].Elements(); len(got) != 2 || got[0] != "-v" || got[1] != "" {
		t.Errorf("got %q", got)
	}
	for errno, err := range map[abi.Errno]error{
		abi.Invalid:  a.Add(plugin.Change{Op: plugin.SetList, Object: abi.Container, Field: abi.ContainerCommand, Text: string(abi.AppendList(nil, []string{"a\x00"}))}),
		abi.NotFound: a.Add(plugin.Change{Op: plugin.SetList, Object: abi.Container, Field: 99, Text: string(abi.AppendList(nil, nil))}),
		abi.ReadOnly: a.Add(plugin.Change{Op: plugin.SetList, Object: abi.Event, Field: abi.EventCommand, Text: string(abi.AppendList(nil, nil))}),
	} {
		if plugin.ErrnoOf(err) != errno {
			t.Errorf("got %v, want %v", err, errno)
		}
	}
	for name, err := range map[string]error{
		"a set as a list":    a.Add(plugin.Change{Op: plugin.SetList, Object: abi.Container, Field: abi.ContainerMounts, Text: string(abi.AppendList(nil, nil))}),
		"a list as a set":    a.AddElement(abi.Container, abi.ContainerArgs, "x"),
		"a map as a set":     a.DeleteElement(abi.Container, abi.ContainerAnnotations, "x"),
		"an element's key":   a.DeleteElement(abi.Container, abi.ContainerMounts, ""),
		"not UTF-8":          a.Add(plugin.Change{Op: plugin.SetList, Object: abi.Container, Field: abi.ContainerArgs, Text: string(abi.AppendList(nil, []string{"\xff"}))}),
		"an image's name":    a.SetText(abi.Container, abi.ContainerImage, "a b"),
		"no image":           a.SetText(abi.Container, abi.ContainerImage, ""),
		"a working dir":      a.SetText(abi.Container, abi.ContainerWorkingDir, "tmp"),
		"a user":             a.SetInt64(abi.Container, abi.ContainerRunAsUser, -1),
		"a user's name":      a.SetText(abi.Container, abi.ContainerRunAsUsername, "a:b"),
		"an element, no map": a.AddElement(abi.Container, abi.ContainerEnv, "x"),
	} {
		if plugin.ErrnoOf(err) != abi.Invalid {
			t.Errorf("%s: got %v, want INVALID", name, err)
		}
	}
	pod := plugin.NewAdjustment(abi.PreRunPodSandbox, 0)
	if err := pod.SetText(abi.Pod, abi.PodRuntimeHandler, "kata qemu"); plugin.ErrnoOf(err) != abi.Invalid {
		t.Errorf("a runtime handler: %v", err)
	}
	sum := plugin.NewAdjustment(abi.PreUpdatePodSandboxResources, 0)
	if err := sum.SetInt64(abi.Pod, abi.Overhead+abi.CPUQuota, 5); plugin.ErrnoOf(err) != abi.Invalid {
		t.Errorf("a quota of the overhead: %v", err)
	}
	if err := sum.SetInt64(abi.Pod, abi.Resources+abi.CPUQuota, 50_000); err != nil {
		t.Error(err)
	}
}

// store is an event with handles: 16 is its own container, 17 another one, 18 a pod.
type store struct {
	plugin.Event
	hook   abi.Hook
	within func(abi.Object) bool // what the match of a plugin with bounds accepts
}

func (s store) Within(o abi.Object, _ *abi.Match) bool { return s.within(o) }

func (s store) Hook() abi.Hook        { return s.hook }
func (s store) Own(o abi.Object) bool { return o == abi.FirstHandle }
func (s store) Kind(o abi.Object) abi.Object {
	if kind, ok := map[abi.Object]abi.Object{16: abi.Container, 17: abi.Container, 18: abi.Pod}[o]; ok {
		return kind
	}
	return o
}

// TestHandles writes through handles in each kind of hook.
func TestHandles(t *testing.T) {
	const quota = abi.Resources + abi.CPUQuota
	for _, tt := range []struct {
		hook       abi.Hook
		own, other abi.Errno // what a write of resources and files answers
	}{
		{abi.PreCreateContainer, abi.ReadOnly, abi.OK},
		{abi.PreExec, abi.ReadOnly, abi.OK},
		{abi.PostStartContainer, abi.OK, abi.OK},
		{abi.Synchronize, abi.OK, abi.OK},
		{abi.Tick, abi.OK, abi.OK},
		{abi.PreStopContainer, abi.ReadOnly, abi.ReadOnly},
		{0, abi.ReadOnly, abi.ReadOnly},
	} {
		a := (&plugin.Member{Capabilities: abi.AllCapabilities}).NewAdjustment(store{hook: tt.hook}, 2)
		for what, err := range map[string][2]error{
			"own quota":         {tt.own, a.SetInt64(16, quota, 50_000)},
			"own file":          {tt.own, a.WriteFile(16, "cpu.idle", "1")},
			"other quota":       {tt.other, a.SetInt64(17, quota, 50_000)},
			"other file":        {tt.other, a.WriteFile(17, "cpu.idle", "1")},
			"pod's file":        {tt.other, a.WriteFile(18, "cpu.idle", "1")},
			"QoS class's file":  {abi.ReadOnly, a.WriteFile(abi.QOSClass+18, "cpu.idle", "1")},
			"own class's file":  {abi.ReadOnly, a.WriteFile(abi.QOSClass+abi.Pod, "cpu.idle", "1")},
			"QoS class's quota": {abi.ReadOnly, a.SetInt64(abi.QOSClass+18, quota, 50_000)},
			"annotation":        {abi.ReadOnly, a.SetEntry(17, abi.ContainerAnnotations, "k", "v")},
			"pod's quota":       {abi.ReadOnly, a.SetInt64(18, quota, 50_000)},
			"no handle":         {abi.NotFound, a.SetInt64(19, quota, 50_000)},
			"file, no one's":    {abi.NotFound, a.WriteFile(19, "cpu.idle", "1")},
		} {
			if got := plugin.ErrnoOf(err[1]); got != err[0] {
				t.Errorf("%v: %s: got %v, want %v", tt.hook, what, err[1], err[0])
			}
		}
	}
	a := (&plugin.Member{Capabilities: abi.AllCapabilities}).NewAdjustment(store{hook: abi.Tick}, 2)
	_ = a.SetInt64(17, quota, 50_000)
	if c := a.Changes()[0]; c.Target() != "other container.resources.cpu_quota" || c.Kind() != abi.Container || c.Object != 17 {
		t.Errorf("got %+v, which is %s", c, c.Target())
	}
}

// TestCapabilities makes one change of each field with all capabilities but those
// that the table says it needs, and with no other.
func TestCapabilities(t *testing.T) {
	for _, info := range abi.Fields {
		for _, h := range info.Writable.Names() {
			hook, _ := abi.HookByName(h)
			for _, tt := range []struct {
				has    abi.CapabilitySet
				denied bool
			}{{abi.CapabilitySetOf(info.Writing), false}, {abi.AllCapabilities &^ abi.CapabilitySetOf(info.Writing), true}} {
				a := (&plugin.Member{Capabilities: tt.has}).NewAdjustment(store{hook: hook}, 2)
				if got := plugin.ErrnoOf(change(a, info)); (got == abi.Denied) != tt.denied {
					t.Errorf("%v %s.%s with %v: %v", hook, info.Object, info.Name, tt.has.Names(), got)
				}
			}
		}
	}
	for _, tt := range []struct {
		has  abi.CapabilitySet
		want abi.Errno
	}{
		{abi.CapabilitySetOf(abi.WriteResources), abi.Denied},
		{abi.CapabilitySetOf(abi.UpdateOthers), abi.Denied},
		{abi.CapabilitySetOf(abi.UpdateOthers, abi.WriteResources), abi.OK},
	} {
		a := (&plugin.Member{Capabilities: tt.has}).NewAdjustment(store{hook: abi.Tick}, 2)
		if err := a.SetInt64(17, abi.Resources+abi.CPUQuota, 50_000); plugin.ErrnoOf(err) != tt.want {
			t.Errorf("a handle with %v: %v", tt.has.Names(), err)
		}
	}
	a := (&plugin.Member{Capabilities: abi.AllCapabilities &^ abi.CapabilitySetOf(abi.CgroupWrite)}).NewAdjustment(store{hook: abi.PreCreateContainer}, 2)
	err := a.WriteFile(abi.Container, "cpu.idle", "1")
	if plugin.ErrnoOf(err) != abi.Denied || !strings.Contains(err.Error(), "container cgroup file cpu.idle: denied: the plugin's manifest does not declare the capability cgroup.write") {
		t.Error(err)
	}
}

// change makes a change of a field, good or not.
func change(a *plugin.Adjustment, info abi.FieldInfo) error {
	switch info.Type {
	case abi.Int64:
		return a.SetInt64(info.Object, info.Field, 2000)
	case abi.String:
		return a.SetText(info.Object, info.Field, "x")
	case abi.Map:
		return a.SetEntry(info.Object, info.Field, "k", "v")
	case abi.List:
		return a.Add(plugin.Change{Op: plugin.SetList, Object: info.Object, Field: info.Field, Text: string(abi.AppendList(nil, nil))})
	}
	return a.AddElement(info.Object, info.Field, "x")
}
