package cgroup

import (
	"errors"
	"strconv"
	"strings"
	"sync"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

// heldFiles are those that can make the kernel refuse a resource update. Each
// is out of the way at 0.
var heldFiles = [...]string{rules.CPUIdle, rules.CPUBurst}

// Update is what Hold has to know of a resource update.
type Update struct {
	Quota   int64             // the CPU quota as CRI gives it: µs, negative for none, 0 for not named
	Unified map[string]string // cgroup v2 files that the update itself names
}

// Hold is a group's values held back while a resource update is under way. A
// nil Hold holds nothing.
type Hold struct {
	fs     *FS
	path   string // as the caller gave it
	rel    string
	update Update
	group  *group
	end    sync.Once
}

// group is what is remembered of one cgroup while anybody uses it.
type group struct {
	users int // calls inside and open holds; guarded by FS.mu

	mu    sync.Mutex        // held for a few file accesses, never across an update
	holds int               // updates under way
	kept  map[string]string // by file: the value to write when the last one ends
}

// Hold takes back what the group holds of cpu.idle and cpu.max.burst as far as
// it could make the kernel refuse the update. The values are read from the
// kernel, whoever wrote them. A group or a file that is not there is no error.
// Several updates of one group may be held at once; the values come back when the
// last has ended. If Hold fails it has put everything back and returns nil.
//
// The caller runs the update and then always calls Restore. What it wants
// to write itself to these files, it writes before Restore.
func (f *FS) Hold(group string, update Update) (*Hold, error) {
	rel, err := clean(group)
	if err != nil {
		return nil, rules.Fail("hold", group, "", "", err)
	}
	h := &Hold{fs: f, path: group, rel: rel, update: update, group: f.enter(rel)}
	h.group.holds++
	for _, name := range heldFiles {
		if err := h.takeBack(name); err != nil {
			err = errors.Join(rules.Fail("hold", group, name, "", err), h.release())
			f.leave(rel, h.group)
			return nil, err
		}
	}
	h.group.mu.Unlock() // still a user, until Restore
	return h, nil
}

// Restore ends the hold. With accepted the backend took the update: the burst
// comes back no larger than the quota then allows, and a file that Update.Unified
// named is left as the backend wrote it. Otherwise the old values come back as they
// were. A group that has gone is no error. On another error the value
// is kept, and tried again when the group's next hold ends. Only the first call
// does anything.
func (h *Hold) Restore(accepted bool) (err error) {
	if h == nil {
		return nil
	}
	h.end.Do(func() {
		h.group.mu.Lock()
		if accepted {
			for name := range h.update.Unified {
				delete(h.group.kept, name)
			}
		}
		err = h.release()
		h.fs.leave(h.rel, h.group)
	})
	return err
}

// takeBack sets one file to 0 and remembers what it held. What a Write noted
// under another open hold is newer than what the kernel holds, and stays.
func (h *Hold) takeBack(name string) error {
	x, err := rules.Lookup(name)
	if err != nil {
		return err
	}
	value, err := h.fs.get(h.rel, x)
	if absent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if value == "0" || name == rules.CPUBurst && !h.update.meets(value) {
		return nil
	}
	if err := h.fs.put(h.rel, x, "0"); err != nil && !absent(err) {
		return err
	}
	if _, noted := h.group.kept[name]; !noted || h.group.holds == 1 {
		h.group.keep(name, value)
	}
	return nil
}

// meets tells whether the kernel might refuse the update because of this burst.
// A runtime may also write what the update does not name: containerd hands runc
// the whole spec.
func (u Update) meets(burst string) bool {
	_, named := u.Unified["cpu.max"]
	b, err := strconv.ParseInt(burst, 10, 64)
	return named || err != nil || u.Quota == 0 || u.Quota > 0 && u.Quota < b
}

// release ends one hold of the group, and writes back what is kept if it was
// the last. The caller has locked the group.
func (h *Hold) release() error {
	h.group.holds--
	if h.group.holds > 0 {
		return nil
	}
	var errs []error
	for _, name := range heldFiles {
		value, ok := h.group.kept[name]
		if !ok {
			continue
		}
		err := h.fs.putBack(h.rel, name, value)
		if err == nil || absent(err) {
			delete(h.group.kept, name)
			continue
		}
		errs = append(errs, rules.Fail("restore", h.path, name, value, err))
	}
	return errors.Join(errs...)
}

func (f *FS) putBack(rel, name, value string) error {
	x, err := rules.Lookup(name)
	if err != nil {
		return err
	}
	if name == rules.CPUBurst {
		if value, err = f.clamp(rel, value); err != nil {
			return err
		}
	}
	return f.put(rel, x, value)
}

// clamp lowers a burst to the quota that the kernel holds now. Without a quota
// any burst will do.
func (f *FS) clamp(rel, burst string) (string, error) {
	held, err := f.get(rel, &rules.File{Name: "cpu.max", Controller: "cpu", V1: "cpu.cfs_quota_us"})
	quota, _, _ := strings.Cut(held, " ") // v2 adds the period
	if absent(err) || quota == "max" || quota == "-1" {
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

// writeHoldable writes a held file, or notes the value while a hold is open.
func (f *FS) writeHoldable(rel string, x *rules.File, value string) error {
	g := f.enter(rel)
	defer f.leave(rel, g)
	if g.holds == 0 {
		delete(g.kept, x.Name) // left by a failed Restore, and overtaken now
		return f.put(rel, x, value)
	}
	if _, err := f.get(rel, x); err != nil {
		return err
	}
	g.keep(x.Name, value)
	return nil
}

func holdable(name string) bool { return name == rules.CPUIdle || name == rules.CPUBurst }

func (g *group) keep(name, value string) {
	if g.kept == nil {
		g.kept = map[string]string{}
	}
	g.kept[name] = value
}

// absent tells whether the group or the file is not there.
func absent(err error) bool {
	if err == nil {
		return false
	}
	code := rules.CodeOf(err)
	return code == abi.NotFound || code == abi.Unsupported
}

// enter counts a user of the group and locks it; leave undoes both. A group that
// nobody uses is forgotten, unless a value could not be put back.
func (f *FS) enter(rel string) *group {
	f.mu.Lock()
	g := f.groups[rel]
	if g == nil {
		g = &group{}
		f.groups[rel] = g
	}
	g.users++
	f.mu.Unlock()
	g.mu.Lock()
	return g
}

func (f *FS) leave(rel string, g *group) {
	g.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	g.users--
	if g.users == 0 && len(g.kept) == 0 {
		delete(f.groups, rel)
	}
}
