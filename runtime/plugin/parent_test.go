package plugin

import (
	"errors"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
)

// podOf is an event of a pod with this cgroup parent.
type podOf struct {
	Event
	parent string
}

func (podOf) Hook() abi.Hook                                   { return abi.PreRunPodSandbox }
func (p podOf) Text(abi.Object, abi.Field) (string, abi.Errno) { return p.parent, abi.OK }

func TestCgroupParentStaysBelowThePods(t *testing.T) {
	const slice = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice"
	for _, tt := range []struct {
		of, parent string
		want       abi.Errno
	}{
		{"/kubepods/burstable/pod1", "/kubepods/burstable/pod1", abi.OK},
		{"/kubepods/burstable/pod1", "/kubepods/burstable/pod1/batch", abi.OK},
		{"kubepods/burstable/pod1/", "/kubepods/burstable/pod1/batch", abi.OK},
		{"/kubepods/burstable/pod1", "/system/kubelet", abi.Denied},
		{"/kubepods/burstable/pod1", "/kubepods/burstable/pod12", abi.Denied},
		{"/kubepods/burstable/pod1", "/kubepods/burstable", abi.Denied},
		{"/kubepods/burstable/pod1", "/", abi.Invalid},
		{"/", "/system/kubelet", abi.Denied},
		{"", "/system/kubelet", abi.Denied},
		// A runtime takes the last element for a slice beneath the root.
		{"/kubepods/burstable/pod1", "/kubepods/burstable/pod1/system.slice", abi.Denied},
		{slice, slice, abi.OK},
		{slice, "kubepods-burstable-pod1.slice", abi.OK},
		{slice, "kubepods-burstable-pod1-batch.slice", abi.OK},
		{slice, "kubepods-burstable-pod12.slice", abi.Denied},
		{slice, slice + "/system.slice", abi.Denied},
		{slice, slice + "/x", abi.Denied},
		{slice, "system.slice", abi.Denied},
	} {
		adj := (&Member{Capabilities: abi.AllCapabilities}).NewAdjustment(podOf{parent: tt.of}, 0)
		err := adj.SetText(abi.Pod, abi.PodCgroupParent, tt.parent)
		if (err == nil) != (tt.want == abi.OK) || err != nil && !errors.Is(err, tt.want) {
			t.Errorf("%q for a pod of %q: %v, want %v", tt.parent, tt.of, err, tt.want)
		}
	}
}
