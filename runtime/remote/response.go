package remote

import (
	"fmt"
	"maps"
	"slices"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	pb "github.com/wasmproxy/wasmproxy/runtime/remote/runtimehook"
)

// podChanges asks for what got has other than sent. The response's resources
// count for nothing: CRI has no such field to set.
func podChanges(adj *plugin.Adjustment, hook abi.Hook, sent *pb.PodSandboxHookRequest, got *pb.PodSandboxHookResponse) error {
	d := differences{adj: adj, hook: hook}
	d.entries(abi.Pod, abi.PodLabels, sent.GetLabels(), got.GetLabels())
	d.entries(abi.Pod, abi.PodAnnotations, sent.GetAnnotations(), got.GetAnnotations())
	d.cgroupParent(sent.GetCgroupParent(), got.GetCgroupParent())
	return d.err
}

// containerChanges asks for what got has other than sent.
func (p *Plugin) containerChanges(adj *plugin.Adjustment, hook abi.Hook, sent *pb.ContainerResourceHookRequest, got *pb.ContainerResourceHookResponse) error {
	d := differences{adj: adj, hook: hook}
	d.entries(abi.Container, abi.ContainerAnnotations, sent.GetContainerAnnotations(), got.GetContainerAnnotations())
	if r := got.GetContainerResources(); r != nil {
		d.resources(sent.GetContainerResources(), r, p.clear || echoes(sent.GetContainerResources(), r))
	}
	d.cgroupParent(sent.GetPodCgroupParent(), got.GetPodCgroupParent())
	d.env(sent.GetContainerEnvs(), got.GetContainerEnvs())
	return d.err
}

// differences makes changes of what differs. What the hook cannot change is
// ignored: a server may answer every hook alike, and always could. The
// first change that is not accepted ends it.
type differences struct {
	adj  *plugin.Adjustment
	hook abi.Hook
	err  error
}

func (d *differences) can(o abi.Object, f abi.Field) bool {
	info, _ := abi.FieldOf(o, f)
	return d.err == nil && info.Writable.Has(d.hook)
}

func (d *differences) text(o abi.Object, f abi.Field, s string) {
	if d.can(o, f) {
		d.err = d.adj.SetText(o, f, s)
	}
}

func (d *differences) cgroupParent(sent, got string) {
	if got != "" && got != sent {
		d.text(abi.Pod, abi.PodCgroupParent, got)
	}
}

// entries adds and overwrites. What a response leaves out stays.
func (d *differences) entries(o abi.Object, f abi.Field, sent, got map[string]string) {
	for _, k := range slices.Sorted(maps.Keys(got)) {
		if had, ok := sent[k]; (!ok || had != got[k]) && d.can(o, f) {
			d.err = d.adj.SetEntry(o, f, k, got[k])
		}
	}
}

// env replaces what was sent, unless the response has none. What could not be
// sent was not the server's to leave out, and stays.
func (d *differences) env(sent, got map[string]string) {
	if len(got) == 0 {
		return
	}
	for _, k := range slices.Sorted(maps.Keys(sent)) {
		if _, kept := got[k]; !kept && d.can(abi.Container, abi.ContainerEnv) {
			d.err = d.adj.DeleteEntry(abi.Container, abi.ContainerEnv, k)
		}
	}
	d.entries(abi.Container, abi.ContainerEnv, sent, got)
}

// resources asks for what got has other than sent. What is empty in got counts
// only if got is whole, which is to say that it was emptied.
func (d *differences) resources(sent, got *runtimeapi.LinuxContainerResources, whole bool) {
	before, after := containerWith(sent), containerWith(got)
	for _, info := range resourceFields {
		switch f := info.Field; info.Type {
		case abi.Int64:
			was, _ := before.Int64(f)
			is, _ := after.Int64(f)
			if f == abi.Resources+abi.MemoryLimit && was == 0 && is == -1 {
				continue // there is no limit to lift, and CRI-O refuses -1 as too low
			}
			if is != was && counts(f, is) && (is != 0 || whole) && d.can(abi.Container, f) {
				d.err = d.adj.SetInt64(abi.Container, f, is)
			}
		case abi.String:
			was, _ := before.Text(f)
			is, _ := after.Text(f)
			if is != was && (is != "" || whole) {
				d.text(abi.Container, f, is)
			}
		case abi.Map:
			is, errno := after.Entries(f)
			if errno != abi.OK && d.err == nil {
				d.err = fmt.Errorf("%s of the response: %w", info.Name, errno)
			}
			if was, none := before.Entries(f); errno == abi.OK && none == abi.OK {
				d.entries(abi.Container, f, maps.Collect(was), maps.Collect(is))
			}
		}
	}
}
