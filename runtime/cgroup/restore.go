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
func (g *Group) Exact(file, known string) string {
	x, err := g.find(file)
	if err != nil {
		return ""
	}
	controller, name := x.Exact(g.fs.version)
	if name == "" {
		return ""
	}
	value, _ := g.readFile(controller, name, "")
	if file != rules.CPUIdle {
		return value
	}
	if idle, err := g.get(x); err != nil || idle != "0" {
		return ""
	}
	if value == defaultShare[g.fs.version] && known != "" {
		return known
	}
	return value
}

// defaultShare is the kernel's, by the version of cgroups: of cpu.shares, and of cpu.weight.
var defaultShare = [...]string{1: "1024", 2: "100"}

// Restore makes the group's file show again what Read returned before, also where a written line
// only adds to the others, and where no cpuset was set. exact is what Exact returned then. The
// codes of its error are Write's.
func (g *Group) Restore(ctx context.Context, file, before, exact string) error {
	if exact != "" {
		return g.restoreExact(ctx, file, exact)
	}
	now, err := g.Read(file)
	if err != nil {
		return err
	}
	value := rules.Set(g.fs.version).Undo(file, before, now)
	if value == "" {
		return nil
	}
	if value != "\n" {
		return g.Write(ctx, file, value)
	}
	x, err := g.find(file)
	if err != nil {
		return rules.Fail("restore", g.path, file, value, err)
	}
	err = g.set(ctx, x, value)
	if errors.Is(err, unix.ENOSPC) {
		// Linux refuses to empty the cpuset of a group of v2 that has processes. The parent's
		// list means the same, until the parent's changes.
		parent := g.fs.at(path.Dir(g.rel))
		defer parent.Close()
		if value, err = parent.readFile("", file+".effective", ""); err == nil {
			err = g.set(ctx, x, value)
		}
	}
	if err != nil {
		return rules.Fail("restore", g.path, file, value, err)
	}
	return nil
}

func (g *Group) restoreExact(ctx context.Context, file, value string) error {
	x, err := g.find(file)
	if err != nil {
		return rules.Fail("restore", g.path, file, value, err)
	}
	if file == rules.CPUIdle { // the kernel takes no share before it is 0
		use := g.fs.enter(g.rel)
		defer g.fs.leave(g.rel, use)
		if use.updates > 0 { // the update writes the share
			use.keep(file, "0")
			return nil
		}
		delete(use.kept, file)
		err = g.put(x, "0")
	}
	if err == nil {
		controller, name := x.Exact(g.fs.version)
		if g.fs.version == 2 {
			err = g.writeBoth(name, "", value)
		} else {
			err = g.writeFile(controller, name, "", value)
		}
	}
	if err != nil {
		return rules.Fail("restore", g.path, file, value, err)
	}
	g.keep(ctx, x)
	return nil
}
