package intercept

import (
	"context"
	"fmt"
	"slices"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/ledger"
)

// fieldsOf are the resources of a running container that plugins want, and of which a cgroup file
// shows the value. A file that a plugin sets itself counts more than a resource, and so does a key
// of unified, which runtimes write last. files are those that the ledger has.
func (i *interceptor) fieldsOf(id ledger.ID, files []string) (fields []ledger.SentField) {
	if id.Container == "" {
		return nil
	}
	fields = i.Ledger.Fields(id)
	if len(fields) == 0 {
		return nil
	}
	c, known := i.Store.Container(id.Container)
	if !known || c.State != runtimeapi.ContainerState_CONTAINER_RUNNING {
		return nil
	}
	unified := c.Config.GetLinux().GetResources().GetUnified()
	return slices.DeleteFunc(fields, func(f ledger.SentField) bool {
		x, ok := fileOf(f.Target)
		_, keyed := unified[x.file]
		return !ok || slices.Contains(files, x.file) || slices.Contains(files, rules.OtherView(x.file)) || keyed && x.field != abi.Resources+abi.Unified
	})
}

// withFilesOf adds the files of resources to names of files.
func withFilesOf(fields []ledger.SentField, files []string) []string {
	for _, f := range fields {
		if x, _ := fileOf(f.Target); !slices.Contains(files, x.file) {
			files = append(files, x.file)
		}
	}
	return files
}

// others returns which of the fields the kernel does not hold as the runtime got them last, with what
// their files show.
func (i *interceptor) others(id ledger.ID, fields []ledger.SentField, g groupFiles) (found map[ledger.Target]string) {
	if len(fields) == 0 {
		return nil
	}
	c, _ := i.Store.Container(id.Container)
	for _, f := range fields {
		x, _ := fileOf(f.Target)
		held := g.held[x.file]
		if f.Shown == ledger.AsRead(held) || g.holdsField(x, f.Sent, held, c.Config.GetLinux().GetResources()) {
			continue
		}
		if found == nil {
			found = map[ledger.Target]string{}
		}
		found[f.Target] = held
	}
	return found
}

// overwritten reports whether something seems to have overwritten one of the fields. A file that
// could not be read tells nothing.
func (i *interceptor) overwritten(id ledger.ID, fields []ledger.SentField, g groupFiles) bool {
	fields = readable(fields, g)
	found := i.others(id, fields, g)
	fresh := func(f ledger.SentField) bool { return f.Fresh }
	return (len(found) > 0 || slices.ContainsFunc(fields, fresh)) && i.Ledger.Seen(id, fields, found)
}

// readable are the fields of which the file could be read.
func readable(fields []ledger.SentField, g groupFiles) []ledger.SentField {
	return slices.DeleteFunc(fields, func(f ledger.SentField) bool {
		x, _ := fileOf(f.Target)
		_, known := g.held[x.file]
		return !known
	})
}

// readFields is others of what the kernel holds now, of the fields that could be read.
func (i *interceptor) readFields(ctx context.Context, id ledger.ID, c *crifield.Container) (fields []ledger.SentField, found map[ledger.Target]string) {
	fields = i.fieldsOf(id, i.Ledger.Files(id))
	if i.Cgroups == nil || len(fields) == 0 {
		return nil, nil
	}
	g := i.read(ctx, id, crifield.Object{Container: c}, withFilesOf(fields, nil)) // without a group nothing is readable
	defer g.Close()
	fields = readable(fields, g)
	return fields, i.others(id, fields, g)
}

// noteOverwritten has the ledger note which resources of a container something else has overwritten.
// The caller is in the container's queue: no update is under way.
func (i *interceptor) noteOverwritten(ctx context.Context, id ledger.ID, c *crifield.Container, why ledger.Why) {
	fields, found := i.readFields(ctx, id, c)
	if i.Cut.hasBegun() || !i.Ledger.Seen(id, fields, found) {
		return
	}
	for _, w := range i.Ledger.Overwritten(id, found, why) {
		i.fieldWritten(ctx, id, c, w, nil)
	}
}

// repaired tells of repairs that the runtime has carried out. If the kernel shows the same as before,
// the runtime does not write the field, or something else has overwritten it again at once.
func (i *interceptor) repaired(ctx context.Context, id ledger.ID, c *crifield.Container, repairs []ledger.Write, sent fieldResets) {
	fields, still := i.readFields(ctx, id, c)
	for _, w := range repairs {
		t := ledger.Field(w.Field)
		if _, ok := sent[t]; !ok {
			continue
		}
		var err error
		if shown, ok := still[t]; ok {
			err = fmt.Errorf("the container runtime was sent it again, and the kernel still shows %.64q", shown)
			i.Ledger.Unmoved(id, t, shown, err)
		}
		i.fieldWritten(ctx, id, c, w, err)
	}
	i.Ledger.Seen(id, fields, still)
}

// fieldWritten makes the event of a field.
func (i *interceptor) fieldWritten(ctx context.Context, id ledger.ID, c *crifield.Container, w ledger.Write, err error) {
	x, _ := fileOf(ledger.Field(w.Field))
	w.File, w.Found = x.file, strings.TrimSpace(w.Found)
	i.fileWritten(ctx, i.about(id, crifield.Object{Container: c}), &ledger.Done{Write: w, Err: err})
}

// namePartners has an update of the host's own name what runtimes write together, as the runtime has
// it. To crun, a period without a quota means that there is no quota, and it does not write a quota
// of -1 without a period. To containerd, a limit of memory alone means that there is no swap.
func namePartners(r, has *runtimeapi.LinuxContainerResources) {
	if r.CpuQuota != 0 || r.CpuPeriod != 0 {
		setIfZero(&r.CpuQuota, has.GetCpuQuota())
		setIfZero(&r.CpuPeriod, has.GetCpuPeriod())
	}
	if r.MemorySwapLimitInBytes != 0 {
		setIfZero(&r.MemoryLimitInBytes, has.GetMemoryLimitInBytes())
	}
	if swap := has.GetMemorySwapLimitInBytes(); r.MemoryLimitInBytes > 0 && (swap < 0 || swap >= r.MemoryLimitInBytes) {
		setIfZero(&r.MemorySwapLimitInBytes, swap)
	}
}

func setIfZero(n *int64, value int64) {
	if *n == 0 {
		*n = value
	}
}
