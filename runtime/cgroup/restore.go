package cgroup

import (
	"context"
	"errors"
	"path"

	"golang.org/x/sys/unix"

	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

// Exact returns what the kernel holds for a file that Read shows rounded, for Restore: on v1 the
// CPU shares of cpu.weight, on v2 the weight of cpu.weight.nice. Of cpu.idle it is the share that
// the group has when it is not idle. known is what Exact returned before: it still holds where
// the kernel has its default share, since that is what a group gets that stops being idle.
// It is "" for other files, of an idle group, and if it cannot be read.
func (f *FS) Exact(group, file, known string) string {
	x, rel, err := f.find(group, file)
	if err != nil {
		return ""
	}
	controller, name := x.Exact(f.version)
	if name == "" {
		return ""
	}
	o := f.at(rel)
	defer o.close()
	value, _ := o.readFile(controller, name, "")
	if file != rules.CPUIdle {
		return value
	}
	if idle, err := o.get(x); err != nil || idle != "0" {
		return ""
	}
	if value == defaultShare[f.version] && known != "" {
		return known
	}
	return value
}

// defaultShare is the kernel's, by the version of cgroups: of cpu.shares, and of cpu.weight.
var defaultShare = [...]string{1: "1024", 2: "100"}

// Restore makes a group's file show again what Read returned before, also where a written line
// only adds to the others, and where no cpuset was set. exact is what Exact returned then. The
// codes of its error are Write's.
func (f *FS) Restore(ctx context.Context, group, file, before, exact string) error {
	if exact != "" {
		return f.restoreExact(ctx, group, file, exact)
	}
	now, err := f.Read(group, file)
	if err != nil {
		return err
	}
	value := rules.Set(f.version).Undo(file, before, now)
	if value == "" {
		return nil
	}
	if value != "\n" {
		return f.Write(ctx, group, file, value)
	}
	x, rel, err := f.find(group, file)
	if err != nil {
		return rules.Fail("restore", group, file, value, err)
	}
	o, parent := f.at(rel), f.at(path.Dir(rel))
	defer o.close()
	defer parent.close()
	err = o.set(ctx, x, value)
	if errors.Is(err, unix.ENOSPC) {
		// Linux refuses to empty the cpuset of a group of v2 that has processes. The parent's
		// list means the same, until the parent's changes.
		if value, err = parent.readFile("", file+".effective", ""); err == nil {
			err = o.set(ctx, x, value)
		}
	}
	if err != nil {
		return rules.Fail("restore", group, file, value, err)
	}
	return nil
}

func (f *FS) restoreExact(ctx context.Context, group, file, value string) error {
	x, rel, err := f.find(group, file)
	if err != nil {
		return rules.Fail("restore", group, file, value, err)
	}
	o := f.at(rel)
	defer o.close()
	if file == rules.CPUIdle { // the kernel takes no share before it is 0
		g := f.enter(rel)
		defer f.leave(rel, g)
		if g.updates > 0 { // the update writes the share
			g.keep(file, "0")
			return nil
		}
		delete(g.kept, file)
		err = o.put(x, "0")
	}
	if err == nil {
		controller, name := x.Exact(f.version)
		err = o.writeFile(controller, name, "", value)
	}
	if err != nil {
		return rules.Fail("restore", group, file, value, err)
	}
	o.keep(ctx, x)
	return nil
}
