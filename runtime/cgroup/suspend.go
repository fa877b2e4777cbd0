package cgroup

import (
	"context"
	"errors"
	"strconv"
	"sync"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

// suspendedFiles can make the kernel refuse a resource update. With 0 in it none does.
var suspendedFiles = []string{rules.CPUIdle, rules.CPUBurst}

// Update is what SuspendForUpdate has to know of a resource update.
type Update struct {
	Quota   int64             // the CPU quota as CRI gives it: µs, negative for none, 0 for not named
	Unified map[string]string // cgroup v2 files that the update itself names
}

// Suspension is the values of a group that are suspended while a resource update is under
// way. A nil Suspension has none.
type Suspension struct {
	group  *Group
	update Update
	use    *inUse // nil once it has ended
}

// inUse is what is remembered of one cgroup while anybody uses it.
type inUse struct {
	users int // calls inside and suspensions; guarded by FS.mu

	mu      sync.Mutex        // held for a few file accesses, never across an update
	updates int               // under way
	kept    map[string]string // by file: the value to write when the last one ends
}

// SuspendForUpdate sets the group's cpu.idle and cpu.max.burst to 0 as far as they could
// make the kernel refuse the update. The values are read from the kernel, whoever wrote
// them. A group or a file that does not exist is no error. A group may have several
// suspensions at once; the values come back when the last one ends. If SuspendForUpdate
// fails it has restored everything and returns nil.
//
// The caller runs the update and then always calls Restore. It writes its own values of
// these files before Restore.
func (f *FS) SuspendForUpdate(ctx context.Context, group string, update Update) (*Suspension, error) {
	g := f.Group(group)
	defer g.Close() // until Restore, too
	if g.wrong != nil {
		return nil, rules.Fail("suspend", group, "", "", g.wrong)
	}
	h := &Suspension{group: g, update: update, use: f.enter(g.rel)}
	h.use.updates++
	for _, name := range suspendedFiles {
		if err := h.clear(name); err != nil {
			return nil, errors.Join(rules.Fail("suspend", group, name, "", err), h.end(ctx))
		}
	}
	h.use.mu.Unlock() // it stays a user until Restore
	return h, nil
}

// Restore ends the suspension. With accepted the backend took the update: the burst comes
// back no larger than the quota then allows, and a file that Update.Unified names stays as
// the backend wrote it. Otherwise the old values come back as they were. A group that no
// longer exists is no error. ctx bounds what systemd is asked, and not the files. On another error the
// value is kept, and written when the group's next suspension ends. Only the first call has an effect.
func (h *Suspension) Restore(ctx context.Context, accepted bool) (err error) {
	if h == nil || h.use == nil {
		return nil
	}
	h.use.mu.Lock()
	if accepted {
		for name := range h.update.Unified {
			delete(h.use.kept, name)
		}
	}
	return h.end(ctx)
}

// clear sets one file to 0 and keeps its value. A value that a Write kept during another
// suspension is newer than the kernel's, and stays.
func (h *Suspension) clear(name string) error {
	x, err := h.group.find(name)
	value := ""
	if err == nil {
		value, err = h.group.get(x)
	}
	if err == nil && h.update.conflictsWith(name, value) {
		if err = h.group.put(x, "0"); err == nil {
			if _, kept := h.use.kept[name]; !kept || h.use.updates == 1 {
				h.use.kept[name] = value
			}
		}
	}
	if absent(err) {
		return nil
	}
	return err
}

// conflictsWith reports whether the kernel might refuse the update because of what a file holds.
// A runtime may also write files that the update does not name: containerd hands runc the
// whole spec.
func (u Update) conflictsWith(file, value string) bool {
	if value == "0" || file != rules.CPUBurst {
		return value != "0"
	}
	if _, named := u.Unified[rules.CPUMax]; named || u.Quota == 0 {
		return true
	}
	burst, err := strconv.ParseInt(value, 10, 64)
	return err != nil || u.Quota > 0 && u.Quota < burst
}

// end writes the kept values back if this was the group's last suspension, and leaves the group, which
// the caller has locked.
func (h *Suspension) end(ctx context.Context) error {
	g, use := h.group, h.use
	defer g.Close()
	defer g.fs.leave(g.rel, use)
	h.use = nil
	use.updates--
	if use.updates > 0 {
		return nil
	}
	var errs []error
	for _, name := range suspendedFiles {
		value, ok := use.kept[name]
		if !ok {
			continue
		}
		var limit string
		var err error
		if name == rules.CPUBurst { // it is no larger than the kernel's present quota
			limit, err = g.get(rules.Find(rules.CPUMax))
		}
		if err == nil || absent(err) {
			err = g.set(ctx, rules.Find(name), rules.FitBurst(value, limit))
		}
		if err == nil || absent(err) {
			delete(use.kept, name)
			continue
		}
		errs = append(errs, rules.Fail("restore", g.path, name, value, err))
	}
	return errors.Join(errs...)
}

// writeSuspendable writes one of suspendedFiles, or keeps the value during a suspension.
func (g *Group) writeSuspendable(ctx context.Context, x *rules.File, value string) error {
	use := g.fs.enter(g.rel)
	defer g.fs.leave(g.rel, use)
	if use.updates == 0 {
		delete(use.kept, x.Name) // left by a failed Restore, and overtaken now
		return g.set(ctx, x, value)
	}
	if _, err := g.get(x); err != nil {
		return err
	}
	use.kept[x.Name] = value
	return nil
}

// absent reports whether the group or the file does not exist.
func absent(err error) bool {
	if err == nil {
		return false
	}
	code := rules.CodeOf(err)
	return code == abi.NotFound || code == abi.Unsupported
}

// enter counts a user of the group and locks it; leave undoes both. A group that
// nobody uses is forgotten, unless a value could not be put back.
func (f *FS) enter(rel string) *inUse {
	f.mu.Lock()
	use := f.groups[rel]
	if use == nil {
		use = &inUse{kept: map[string]string{}}
		f.groups[rel] = use
	}
	use.users++
	f.mu.Unlock()
	use.mu.Lock()
	return use
}

func (f *FS) leave(rel string, use *inUse) {
	use.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	use.users--
	if use.users == 0 && len(use.kept) == 0 {
		delete(f.groups, rel)
	}
}
