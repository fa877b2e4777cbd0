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
	if err != nil || x.Exact(g.fs.version) == "" {
		return ""
	}
	value, _ := g.readFile(x.Exact(g.fs.version), "")
	if file == rules.CPUIdle {
		if idle, _ := g.get(x); idle != "0" {
			return ""
		}
		if value == defaultShare[g.fs.version] && known != "" {
			return known
		}
	}
	return value
}

// defaultShare is the kernel's, by the version of cgroups: of cpu.shares, and of cpu.weight.
var defaultShare = [...]string{1: "1024", 2: "100"}

// Restore makes the group's file show again what Read returned before, also where a written line
// only adds to the others, and where no cpuset was set. exact is what Exact returned then. The
// codes of its error are Write's.
func (g *Group) Restore(ctx context.Context, file, before, exact string) error {
	x, err := g.find(file)
	switch {
	case err != nil:
		return rules.Fail("restore", g.path, file, before, err)
	case exact != "":
		return rules.Fail("restore", g.path, file, exact, g.restoreExact(ctx, x, exact))
	}
	now, err := g.Read(file)
	if err != nil {
		return err
	}
	value := rules.Set(g.fs.version).Undo(file, before, now)
	switch value {
	case "":
		return nil
	case "\n":
		return rules.Fail("restore", g.path, file, value, g.empty(ctx, x))
	}
	return g.Write(ctx, file, value)
}

// empty makes a cpuset empty again.
func (g *Group) empty(ctx context.Context, x *rules.File) error {
	err := g.set(ctx, x, "\n")
	if errors.Is(err, unix.ENOSPC) {
		// Linux refuses to empty the cpuset of a group of v2 that has processes. The parent's
		// list means the same, until the parent's changes.
		parent := &Group{fs: g.fs, rel: path.Dir(g.rel), open: map[string]int{}} // it may be the root
		defer parent.Close()
		list, readErr := parent.readFile(x.Name+".effective", "")
		if err = readErr; err == nil {
			err = g.set(ctx, x, list)
		}
	}
	return err
}

// restoreExact writes the kernel's file that holds exactly what the file shows.
func (g *Group) restoreExact(ctx context.Context, x *rules.File, value string) error {
	if x.Name == rules.CPUIdle { // the kernel takes no share before it is 0
		use := g.fs.enter(g.rel)
		defer g.fs.leave(g.rel, use)
		if use.updates > 0 { // the update writes the share
			use.kept[x.Name] = "0"
			return nil
		}
		delete(use.kept, x.Name)
	}
	return g.keeping(ctx, x, func() (err error) {
		if x.Name == rules.CPUIdle {
			err = g.put(x, "0")
		}
		if err == nil {
			err = g.writeFile(x.Exact(g.fs.version), "", value)
		}
		return err
	})
}
