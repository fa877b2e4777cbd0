package intercept

import (
	"hash/maphash"
	"slices"
	"sync"

	"github.com/wasmproxy/wasmproxy/runtime/cgroup"
	"github.com/wasmproxy/wasmproxy/runtime/ledger"
)

// lookAfter is after how many scans a container is looked at again of which nothing was heard: what
// the kernel changes by itself is not heard of.
const lookAfter = 10

// Watch remembers of which containers a scan has found each value in its place, and hears what may
// change that: somebody writes a file of a container's cgroup, or the ledger notes something. A scan
// leaves out those of which nothing was heard. Its zero value remembers none. The caller closes it.
type Watch struct {
	mu     sync.Mutex
	groups *cgroup.Watch // nil before the first scan, and where the kernel has no more of them
	looks  map[ledger.ID]look
	scans  uint64
	seed   maphash.Seed
}

// look is what a scan has found of a container.
type look struct {
	group string
	stamp uint64 // of the ledger, before it
	right bool   // each value was in its place, and the group was watched before
}

// Close ends the watch of the cgroups.
func (w *Watch) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.groups == nil {
		return nil
	}
	return w.groups.Close()
}

// due begins a scan of all objects with records, and returns those that it has to look at.
func (w *Watch) due(l *ledger.Ledger) (ids []ledger.ID) {
	ids = l.Objects()
	if w == nil {
		return ids
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.groups == nil {
		groups, err := cgroup.NewWatch()
		if err != nil { // the kernel has no more of them for this user: all are looked at
			return ids
		}
		w.groups, w.seed = groups, maphash.MakeSeed()
	}
	written, err := w.groups.Written()
	w.scans++
	before, groups := w.looks, map[string]bool{}
	w.looks = make(map[ledger.ID]look, len(ids))
	due := slices.DeleteFunc(ids, func(id ledger.ID) bool {
		last, known := before[id]
		last.right = last.right && err == nil && !written[last.group] && last.stamp == l.Stamp(id) && maphash.String(w.seed, id.Container)%lookAfter != w.scans%lookAfter
		if known {
			w.looks[id], groups[last.group] = last, true
		}
		return last.right
	})
	w.groups.Retain(func(group string) bool { return groups[group] }) // the others' records have ended
	return due
}

// looked notes what a scan has found of a container, whose files it has read in g. The ledger had this
// stamp before.
func (w *Watch) looked(id ledger.ID, stamp uint64, g *cgroup.Group, right bool) {
	if w == nil || id.Container == "" { // there are few pods, and what they are to hold depends on their containers
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.groups != nil {
		before := w.groups.Add(g)
		w.looks[id] = look{g.Path(), stamp, before && right}
	}
}
