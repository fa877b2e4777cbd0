package remote

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	pb "github.com/wasmproxy/wasmproxy/runtime/remote/runtimehook"
)

// containerChanges asks for what got has other than sent.
func (p *Plugin) containerChanges(
	adj *plugin.Adjustment, hook abi.Hook, sent *pb.ContainerResourceHookRequest, got *pb.ContainerResourceHookResponse,
) error {
	d := differences{adj: adj, hook: hook}
	d.entries(abi.Container, abi.ContainerAnnotations, sent.GetContainerAnnotations(), got.GetContainerAnnotations())
	if r := got.GetContainerResources(); r != nil {
		was, is := containerWith(sent.GetContainerResources()), containerWith(r)
		d.resources(was, is, p.options.ClearUnset || echoes(was, is))
	}
	d.cgroupParent(sent.GetPodCgroupParent(), got.GetPodCgroupParent())
	if had, has := sent.GetContainerEnvs(), got.GetContainerEnvs(); len(has) > 0 {
		// What was sent is replaced. What could not be sent was not the server's to leave out, and stays.
		for _, k := range slices.Sorted(maps.Keys(had)) {
			if _, kept := has[k]; !kept {
				d.ask(plugin.Change{Op: plugin.DeleteEntry, Object: abi.Container, Field: abi.ContainerEnv, Key: k})
			}
		}
		d.entries(abi.Container, abi.ContainerEnv, had, has)
	}
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

func (d *differences) ask(c plugin.Change) {
	if info, _ := abi.FieldOf(c.Object, c.Field); d.err == nil && info.Writable.Has(d.hook) {
		d.err = d.adj.Add(c)
	}
}

// leave says that the server has answered a resource as it was. Hooks other than that of an update have nothing to leave.
func (d *differences) leave(c plugin.Change) {
	if d.err == nil {
		d.err = d.adj.Leave(c)
	}
}

func (d *differences) cgroupParent(sent, got string) {
	if got != "" && got != sent {
		d.ask(plugin.Change{Op: plugin.SetText, Object: abi.Pod, Field: abi.PodCgroupParent, Text: got})
	}
}

// entries adds and overwrites. What a response leaves out stays.
func (d *differences) entries(o abi.Object, f abi.Field, sent, got map[string]string) {
	for _, k := range slices.Sorted(maps.Keys(got)) {
		if had, ok := sent[k]; !ok || had != got[k] {
			d.ask(plugin.Change{Op: plugin.SetEntry, Object: o, Field: f, Key: k, Text: got[k]})
		}
	}
}

// resources asks for what got has other than sent, and leaves what it repeats. What is
// empty in got counts only if got is whole, which is to say that it was emptied.
func (d *differences) resources(sent, got crifield.Object, whole bool) {
	for i := range resourceFields {
		switch f := resourceFields[i].Field; resourceFields[i].Type {
		case abi.Int64:
			was, _ := sent.Int64(f)
			is, _ := got.Int64(f)
			if f == abi.Resources+abi.MemoryLimit && was == 0 && is == -1 {
				continue // there is no limit to lift, and not every runtime takes -1
			}
			c := plugin.Change{Op: plugin.SetInt64, Object: abi.Container, Field: f, Int: is}
			switch counted := (is != 0 || whole) && counts(f, is); {
			case counted && is != was:
				d.ask(c)
			case is == was && is != 0:
				d.leave(c)
			}
		case abi.String:
			was, _ := sent.Text(f)
			is, _ := got.Text(f)
			c := plugin.Change{Op: plugin.SetText, Object: abi.Container, Field: f, Text: is}
			switch {
			case is != was && (is != "" || whole):
				d.ask(c)
			case is == was && is != "":
				d.leave(c)
			}
		case abi.Map:
			all, errno := got.Entries(f)
			if errno != abi.OK {
				d.err = cmp.Or(d.err, fmt.Errorf("%s of the response: %w", resourceFields[i].Name, errno))
				continue
			}
			for k, v := range all {
				c := plugin.Change{Op: plugin.SetEntry, Object: abi.Container, Field: f, Key: k, Text: v}
				if had, errno := sent.Lookup(f, k); errno != abi.OK || had != v {
					d.ask(c)
				} else {
					d.leave(c)
				}
			}
		}
	}
}
