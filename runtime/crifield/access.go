package crifield

import (
	"iter"
	"maps"
	"slices"
	"strconv"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// access is how a field is read and changed. Functions of other types than the field's are
// nil, and set is where nothing can be changed.
type access struct {
	int64   func(Object) (n int64, ok bool)
	text    func(Object) (text string, ok bool)
	entries func(Object) iter.Seq2[string, string]
	lookup  func(o Object, key string) (string, bool)
	list    func(Object) (list []string, ok bool)
	size    func(Object) int // of entries, and of a list that a message may have at any length
	set     func(Object, *plugin.Change)
}

// part is a message, or part of a view, that has fields.
type part[M any] struct {
	of   func(Object) *M // nil if it is not there
	make func(Object) *M // the same, which is made if it is not there
}

// inside returns a part of a message that is in another part. The field is at's of its parent.
func inside[P, M any](parent part[P], at func(*P) **M) part[M] {
	return part[M]{
		of: func(o Object) *M {
			if p := parent.of(o); p != nil {
				return *at(p)
			}
			return nil
		},
		make: func(o Object) *M {
			m := at(parent.make(o))
			if *m == nil {
				*m = new(M)
			}
			return *m
		},
	}
}

// always returns a part that every object of its kind has.
func always[M any](of func(Object) *M) part[M] { return part[M]{of, of} }

// value returns what is at a place in a part, the zero T if the part is not there.
func value[M, T any](p part[M], o Object, at func(*M) *T) (v T) {
	if m := p.of(o); m != nil {
		v = *at(m)
	}
	return v
}

func text[M any](p part[M], at func(*M) *string) access {
	return access{
		text: func(o Object) (string, bool) { return value(p, o, at), true },
		set:  func(o Object, c *plugin.Change) { *at(p.make(o)) = c.Text },
	}
}

func number[M any, N int | int32 | int64 | uint32](p part[M], at func(*M) *N) access {
	return access{
		int64: func(o Object) (int64, bool) { return int64(value(p, o, at)), true },
		set:   func(o Object, c *plugin.Change) { *at(p.make(o)) = N(c.Int) },
	}
}

func flag[M any](p part[M], at func(*M) *bool) access {
	return access{
		int64: func(o Object) (int64, bool) {
			if value(p, o, at) {
				return 1, true
			}
			return 0, true
		},
		set: func(o Object, c *plugin.Change) { *at(p.make(o)) = c.Int != 0 },
	}
}

// optional is a number that may be absent.
func optional[M any](p part[M], at func(*M) **runtimeapi.Int64Value) access {
	return access{
		int64: func(o Object) (int64, bool) { v := value(p, o, at); return v.GetValue(), v != nil },
		set:   func(o Object, c *plugin.Change) { *at(p.make(o)) = &runtimeapi.Int64Value{Value: c.Int} },
	}
}

func stringMap[M any](p part[M], at func(*M) *map[string]string) access {
	entries := func(o Object) iter.Seq2[string, string] {
		m := value(p, o, at)
		return func(yield func(string, string) bool) {
			for _, k := range slices.Sorted(maps.Keys(m)) {
				if !yield(k, m[k]) {
					return
				}
			}
		}
	}
	return access{
		entries: entries,
		lookup:  func(o Object, key string) (string, bool) { v, ok := value(p, o, at)[key]; return v, ok },
		size:    func(o Object) int { return len(value(p, o, at)) },
		set: func(o Object, c *plugin.Change) {
			switch m := at(p.make(o)); {
			case c.Op == plugin.DeleteEntry:
				delete(*m, c.Key)
			case *m == nil:
				*m = map[string]string{c.Key: c.Text}
			default:
				(*m)[c.Key] = c.Text
			}
		},
	}
}

// pairs is a map that CRI has as a list of elements, in the list's order.
// put gives an element a key and a text.
func pairs[M, E any](p part[M], at func(*M) *[]*E, entry func(*E) (key, text string), put func(e *E, key, text string)) access {
	entries := func(o Object) iter.Seq2[string, string] {
		return func(yield func(string, string) bool) {
			for _, e := range value(p, o, at) {
				if !yield(entry(e)) {
					return
				}
			}
		}
	}
	return access{
		entries: entries,
		lookup: func(o Object, key string) (text string, ok bool) {
			for k, v := range entries(o) {
				if k == key {
					text, ok = v, true
				}
			}
			return text, ok
		},
		size: func(o Object) int { return len(value(p, o, at)) },
		set: func(o Object, c *plugin.Change) {
			list := at(p.make(o))
			var kept *E // the last of the name: its place stays, and earlier ones go, so that the new text is the one that counts
			named := func(e *E) bool { key, _ := entry(e); return key == c.Key }
			if c.Op != plugin.DeleteEntry {
				for _, e := range *list {
					if named(e) {
						kept = e
					}
				}
				if kept == nil {
					kept = new(E)
					*list = append(*list, kept)
				}
				put(kept, c.Key, c.Text)
			}
			*list = slices.DeleteFunc(*list, func(e *E) bool { return named(e) && e != kept })
		},
	}
}

func stringList[M any](p part[M], at func(*M) *[]string) access {
	return access{
		list: func(o Object) ([]string, bool) { return value(p, o, at), true },
		size: func(o Object) int { return len(value(p, o, at)) },
		set:  func(o Object, c *plugin.Change) { *at(p.make(o)) = c.Elements() },
	}
}

// element is what the elements of a set are. text is the whole element as plugins have it. take changes an element into
// what a plugin wants of it, and gets the zero E for a new one.
type element[E any] struct {
	key, text func(E) string
	take      func(e E, text string) E
}

func set[M, E any](p part[M], at func(*M) *[]E, e element[E]) access {
	return access{
		list: func(o Object) ([]string, bool) { return each(value(p, o, at), e.text), true },
		size: func(o Object) int { return len(value(p, o, at)) },
		set: func(o Object, c *plugin.Change) {
			list := at(p.make(o))
			named := func(name string) func(E) bool { return func(v E) bool { return e.key(v) == name } }
			if c.Op == plugin.DeleteElement {
				*list = slices.DeleteFunc(*list, named(c.Key))
				return
			}
			var none E
			added := e.take(none, c.Text)
			if i := slices.IndexFunc(*list, named(e.key(added))); i >= 0 { // it stays in its place
				(*list)[i] = e.take((*list)[i], c.Text)
			} else {
				*list = append(*list, added)
			}
		},
	}
}

func each[T any](all []T, f func(T) string) []string {
	texts := make([]string, len(all))
	for i, v := range all {
		texts[i] = f(v)
	}
	return texts
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
