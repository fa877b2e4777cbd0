package cgroup

import (
	"context"
	"errors"
	"path"

	"golang.org/x/sys/unix"

	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

// Restore makes a group's file show again what Read returned before, also where a written line
// only adds to the others, and where no cpuset was set. The codes of its error are Write's.
func (f *FS) Restore(ctx context.Context, group, file, before string) error {
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
