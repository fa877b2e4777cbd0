package pods

import "strings"

// A table holds the records of one kind by ID, and reconciles what is read from
// the backend with what calls did meanwhile. The store's lock guards it.
type table[T any] struct {
	records map[string]T
	reads   map[*reading[T]]struct{}
	begun   int // readings so far
}

// A reading is one read of the backend while calls go on: its result may be older than
// what was observed since it began, and that wins.
type reading[T any] struct {
	of    string                 // the ID, or the start of it, that is read; "" for all
	order int                    // of those that have begun
	since map[string]*changes[T] // by ID, only of records that changed
}

// changes is what happened to one record since a reading began.
type changes[T any] struct {
	removed bool
	edits   []func(T) T // in order; kept for a record that was not known yet
}

func newTable[T any]() table[T] {
	return table[T]{records: map[string]T{}, reads: map[*reading[T]]struct{}{}}
}

// idLength is how many digits the IDs of containerd, CRI-O and Docker have, 256 bits in hex.
const idLength = 64

// find returns a record by its ID, or by a prefix of one ID only: runtimes take
// those too. It returns the whole ID.
func (t *table[T]) find(id string) (string, T, bool) {
	rec, ok := t.records[id]
	if ok || id == "" || len(id) >= idLength { // no prefix: a new container is looked for among all of the node's
		return id, rec, ok
	}
	var full string
	for k := range t.records {
		if !strings.HasPrefix(k, id) {
			continue
		}
		if full != "" {
			return id, rec, false
		}
		full = k
	}
	if full == "" {
		return id, rec, false
	}
	return full, t.records[full], true
}

func (t *table[T]) put(id string, rec T) {
	t.records[id] = rec
	t.record(id, t.begun, func(c *changes[T]) { *c = changes[T]{} })
}

// edit changes a record, or, if it is not known, the one that a reading under
// way may still bring.
func (t *table[T]) edit(id string, f func(T) T) {
	id, rec, ok := t.find(id)
	if ok {
		t.records[id] = f(rec)
	}
	t.record(id, t.begun, func(c *changes[T]) { c.edits = append(c.edits, f) })
}

func (t *table[T]) remove(id string) {
	delete(t.records, id)
	t.record(id, t.begun, func(c *changes[T]) { *c = changes[T]{removed: true} })
}

// record notes that a record changed, in the readings under way. last is the youngest of them.
func (t *table[T]) record(id string, last int, change func(*changes[T])) {
	for r := range t.reads {
		if r.order > last || !strings.HasPrefix(id, r.of) {
			continue
		}
		c := r.since[id]
		if c == nil {
			c = &changes[T]{}
			r.since[id] = c
		}
		change(c)
	}
}

func (t *table[T]) begin(of string) *reading[T] {
	t.begun++
	r := &reading[T]{of: of, order: t.begun, since: map[string]*changes[T]{}}
	t.reads[r] = struct{}{}
	return r
}

func (t *table[T]) end(r *reading[T]) { delete(t.reads, r) }

// reconcile makes a record of what r read of id: merge combines it with the record that is
// there, if known. It returns the valid record, and whether the table now holds it.
func (t *table[T]) reconcile(r *reading[T], id string, merge func(old T, known bool) T) (T, bool) {
	old, known := t.records[id]
	c := r.since[id]
	if c != nil && known {
		return old, true
	}
	rec := merge(old, known)
	if c != nil {
		for _, edit := range c.edits {
			rec = edit(rec)
		}
	}
	if _, current := t.reads[r]; !current || t.removed(r, id) {
		return rec, false
	}
	t.records[id] = rec
	t.record(id, r.order-1, func(c *changes[T]) { *c = changes[T]{} }) // a later reading knows better
	return rec, true
}

// removed reports whether a call removed a record since r began.
func (t *table[T]) removed(r *reading[T], id string) bool {
	c := r.since[id]
	return c != nil && c.removed
}

// outlived reports whether a record that r did not find at the backend is to go:
// no call has made or changed it since r began.
func (t *table[T]) outlived(r *reading[T], id string) bool {
	_, current := t.reads[r]
	return current && r.since[id] == nil
}

// vanished lists the records that are not among those r found, and are to go. Readings that
// began before r, and could bring one of them back, end.
func (t *table[T]) vanished(r *reading[T], found map[string]bool) []string {
	for earlier := range t.reads {
		if earlier.order < r.order && (earlier.of == "" || !found[earlier.of]) {
			t.end(earlier)
		}
	}
	var gone []string
	for id := range t.records {
		if !found[id] && t.outlived(r, id) {
			gone = append(gone, id)
		}
	}
	return gone
}
