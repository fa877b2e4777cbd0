package cgroup

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

// suspendedFiles can make the kernel refuse a resource update. With 0 in it none does.
var suspendedFiles = [...]string{rules.CPUIdle, rules.CPUBurst}

// Update is what SuspendForUpdate has to know of a resource update.
type Update struct {
	Quota   int64             // the CPU quota as CRI gives it: µs, negative for none, 0 for not named
	Unified map[string]string // cgroup v2 files that the update itself names
}

// Suspension is the values of a group that are suspended while a resource update is under
// way. A nil Suspension has none.
type Suspension struct {
	fs     *FS
	path   string // as the caller gave it
	rel    string
	update Update
	group  *inUse
	once   sync.Once
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
	rel, err := clean(group)
	if err != nil {
		return nil, rules.Fail("suspend", group, "", "", err)
	}
	h := &Suspension{fs: f, path: group, rel: rel, update: update, group: f.enter(rel)}
	h.group.updates++
	g := f.at(rel)
	defer g.Close()
	for _, name := range suspendedFiles {
		if err := h.clear(g, name); err != nil {
			err = errors.Join(rules.Fail("suspend", group, name, "", err), h.end(ctx))
			f.leave(rel, h.group)
			return nil, err
		}
	}
	h.group.mu.Unlock() // it stays a user until Restore
	return h, nil
}

// Restore ends the suspension. With accepted the backend took the update: the burst comes
// back no larger than the quota then allows, and a file that Update.Unified names stays as
// the backend wrote it. Otherwise the old values come back as they were. A group that no
// longer exists is no error. ctx bounds what systemd is asked, and not the files. On another error the value is kept, and written when the
// group's next suspension ends. Only the first call has an effect.
func (h *Suspension) Restore(ctx context.Context, accepted bool) (err error) {
	if h == nil {
		return nil
	}
	h.once.Do(func() {
		h.group.mu.Lock()
		if accepted {
			for name := range h.update.Unified {
				delete(h.group.kept, name)
			}
		}
		err = h.end(ctx)
		h.fs.leave(h.rel, h.group)
	})
	return err
}

// clear sets one file to 0 and keeps its value. A value that a Write kept during another
// suspension is newer than the kernel's, and stays.
func (h *Suspension) clear(g *Group, name string) error {
	x, err := rules.Lookup(name)
	if err != nil {
		return err
	}
	value, err := g.get(x)
	if absent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if value == "0" || name == rules.CPUBurst && !h.update.conflictsWith(value) {
		return nil
	}
	if err := g.put(x, "0"); err != nil && !absent(err) {
		return err
	}
	if _, kept := h.group.kept[name]; !kept || h.group.updates == 1 {
		h.group.keep(name, value)
	}
	return nil
}

// conflictsWith reports whether the kernel might refuse the update because of this burst.
// A runtime may also write files that the update does not name: containerd hands runc the
// whole spec.
func (u Update) conflictsWith(burst string) bool {
	_, named := u.Unified["cpu.max"]
	b, err := strconv.ParseInt(burst, 10, 64)
	return named || err != nil || u.Quota == 0 || u.Quota > 0 && u.Quota < b
}

// end writes the kept values back if this was the group's last suspension. The caller has
// locked the group.
func (h *Suspension) end(ctx context.Context) error {
	h.group.updates--
	if h.group.updates > 0 {
		return nil
	}
	g := h.fs.at(h.rel)
	defer g.Close()
	var errs []error
	for _, name := range suspendedFiles {
		value, ok := h.group.kept[name]
		if !ok {
			continue
		}
		err := g.putBack(ctx, name, value)
		if err == nil || absent(err) {
			delete(h.group.kept, name)
			continue
		}
		errs = append(errs, rules.Fail("restore", h.path, name, value, err))
	}
	return errors.Join(errs...)
}

func (g *Group) putBack(ctx context.Context, name, value string) error {
	x, err := rules.Lookup(name)
	if err != nil {
		return err
	}
	if name == rules.CPUBurst {
		if value, err = g.clamp(value); err != nil {
			return err
		}
	}
	return g.set(ctx, x, value)
}

// clamp lowers a burst to the kernel's present quota. Without a quota any burst is valid.
func (g *Group) clamp(burst string) (string, error) {
	x, err := rules.Lookup("cpu.max")
	if err != nil {
		return "", err
	}
	held, err := g.get(x)
	quota, _, _ := strings.Cut(held, " ")
	if absent(err) || quota == "max" {
		return burst, nil
	}
	if err != nil {
		return "", err
	}
	q, err := strconv.ParseInt(quota, 10, 64)
	b, burstErr := strconv.ParseInt(burst, 10, 64)
	if err := errors.Join(err, burstErr); err != nil {
		return "", err
	}
	return strconv.FormatInt(min(b, q), 10), nil
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
	use.keep(x.Name, value)
	return nil
}

func suspendable(name string) bool { return name == rules.CPUIdle || name == rules.CPUBurst }

func (use *inUse) keep(name, value string) {
	if use.kept == nil {
		use.kept = map[string]string{}
	}
	use.kept[name] = value
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
		use = &inUse{}
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
