package remote

import (
	"slices"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// resourceFields are the fields of LinuxContainerResources, as a container has them.
var resourceFields = slices.DeleteFunc(slices.Clone(abi.Fields), func(f abi.FieldInfo) bool {
	return f.Object != abi.Container || f.Field < abi.Resources
})

// containerWith returns a container with these resources, by which their fields are read and set.
func containerWith(r *runtimeapi.LinuxContainerResources) crifield.Object {
	return crifield.Object{Container: &crifield.Container{Resources: crifield.Resources{Now: r, Own: true}}}
}

// resources reads the event's fields from base on: abi.Resources or abi.Overhead.
func resources(ev plugin.Event, o abi.Object, base abi.Field) *runtimeapi.LinuxContainerResources {
	r, c := &runtimeapi.LinuxContainerResources{}, plugin.Change{}
	container := containerWith(r)
	for i := range resourceFields {
		info := &resourceFields[i]
		from := base + info.Field - abi.Resources
		c.Field = info.Field
		switch info.Type {
		case abi.Int64:
			c.Int = number(ev, o, from)
			container.Set(&c)
		case abi.String:
			c.Text = text(ev, o, from)
			container.Set(&c)
		case abi.Map:
			all, errno := ev.Entries(o, from)
			if errno != abi.OK {
				continue
			}
			for c.Key, c.Text = range all {
				if canSend(c.Key, c.Text) {
					container.Set(&c)
				}
			}
		}
	}
	return r
}

// nonEmpty returns nil for a message that says nothing.
func nonEmpty(r *runtimeapi.LinuxContainerResources) *runtimeapi.LinuxContainerResources {
	if proto.Size(r) == 0 {
		return nil
	}
	return r
}

// counts reports whether a number of a response counts. The protocol has no presence, so
// that zero may mean "not set" or "set to zero".
func counts(f abi.Field, n int64) bool {
	switch f - abi.Resources {
	case abi.CPUPeriod, abi.CPUShares:
		return n > 0
	case abi.MemoryLimit, abi.MemorySwap:
		return n > 0 || n == -1 // which is unlimited, and which the incumbent ignores
	case abi.OOMScoreAdj:
		return true
	}
	return n != 0
}

// echoes reports whether got was made from sent by writing over a copy of it,
// as koordlet does, rather than from nothing. Then a cpuset or score that sent
// has and got lacks was emptied on purpose; else it just was not mentioned. The
// sign of a copy: nothing else is missing, and something was left unchanged.
func echoes(was, is crifield.Object) bool {
	unchanged := false
	for i := range resourceFields {
		switch f := resourceFields[i].Field; resourceFields[i].Type {
		case abi.Int64:
			had, _ := was.Int64(f)
			has, _ := is.Int64(f)
			if had != 0 && has == 0 && f != abi.Resources+abi.OOMScoreAdj {
				return false
			}
			unchanged = unchanged || had != 0 && has == had
		case abi.String:
			had, _ := was.Text(f)
			has, _ := is.Text(f)
			unchanged = unchanged || had != "" && has == had
		}
	}
	sent, got := was.Container.Resources.Now, is.Container.Resources.Now
	return unchanged && len(got.HugepageLimits) >= len(sent.HugepageLimits) && len(got.Unified) >= len(sent.Unified)
}
