package schema

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"strconv"
	"strings"
)

// maxWeight is how many places of a schema one value of a config may be held
// against. Real schemas come to some hundreds.
const maxWeight = 10_000

// maxDepth is how many objects and lists a schema may have within one another. The library
// takes time with the square of it; a schema of nested objects has two for each.
const maxDepth = 64

// maxWork is how many parts of a schema times values of a config there may be: 400 values
// for a schema of 200 parts. Each takes 1 to 3 µs, and up to 600 bytes if it does not fit.
const maxWork = 80_000

// valueBytes is how long a text takes as much time as another value.
const valueBytes = 1 << 10

// children yields the values of an object by their keys, and those of a list by their places.
func children(node any) iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		switch node := node.(type) {
		case map[string]any:
			maps.All(node)(yield)
		case []any:
			for i, child := range node {
				if !yield(strconv.Itoa(i), child) {
					return
				}
			}
		}
	}
}

// deeper reports whether objects and lists are nested more than so many levels deep.
func deeper(node any, levels int) bool {
	for _, child := range children(node) {
		if levels == 0 || deeper(child, levels-1) {
			return true
		}
	}
	return false
}

// values counts a config's values.
func values(node any) int {
	n := 1
	for _, child := range children(node) {
		n += values(child)
	}
	return n
}

// checkNumbers refuses a config with a number that cannot be computed with, by its key.
func checkNumbers(node any, key string) (err error) {
	for name, child := range children(node) {
		err = cmp.Or(err, checkNumbers(child, key+"/"+name))
	}
	if n, ok := node.(json.Number); ok {
		if err := checkNumber(string(n)); err != nil {
			return fmt.Errorf("%s: %w", cmp.Or(key, "/"), err)
		}
	}
	return err
}

// bounder counts the parts of a schema with all references in place. Without a bound, a few
// hundred bytes of references to references double the work thirty times over; with it, a
// schema takes time in proportion to weight and config.
type bounder struct {
	root    any
	weights map[string]int // by reference; 0 while it is counted
}

// other are the keys that refer to places by something else than where they are.
var other = []string{"$dynamicRef", "$recursiveRef", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$id", "id"}

func (b *bounder) weigh(node any, root bool) (int, error) {
	if n, ok := node.(json.Number); ok {
		return 1, checkNumber(string(n))
	}
	object, _ := node.(map[string]any)
	for _, key := range other {
		if _, isText := object[key].(string); isText && !(root && strings.HasSuffix(key, "id")) {
			return 0, fmt.Errorf("%s is not supported, use $ref with a place such as #/$defs/name", key)
		}
	}
	weight := 1
	for key, child := range children(node) {
		w, err := 0, error(nil)
		if ref, ok := child.(string); ok && key == "$ref" {
			w, err = b.follow(ref)
		} else {
			w, err = b.weigh(child, false)
		}
		if err != nil {
			return 0, err
		}
		weight = min(weight+w, maxWeight+1)
	}
	return weight, nil
}

// maxNumber is how many characters a number may have, and maxExponent what its exponent
// may be, in a schema and in a config: the library computes with all the digits that it
// stands for, 20 ms for 1e999999.
const (
	maxNumber   = 64
	maxExponent = 308
)

func checkNumber(n string) error {
	var exponent int
	var err error
	if e := strings.IndexAny(n, "eE"); e >= 0 {
		exponent, err = strconv.Atoi(n[e+1:])
	}
	if err != nil || len(n) > maxNumber || max(exponent, -exponent) > maxExponent {
		return fmt.Errorf("number %.32s has more digits than are computed with", n)
	}
	return nil
}

// follow weighs what a reference is to: a JSON pointer (RFC 6901) in a fragment.
func (b *bounder) follow(ref string) (int, error) {
	if weight, seen := b.weights[ref]; seen {
		if weight == 0 {
			return 0, fmt.Errorf("$ref %q leads to itself", ref)
		}
		return weight, nil
	}
	pointer, ok := strings.CutPrefix(ref, "#")
	sound := pointer == "" || pointer[0] == '/'
	if !ok || !sound || strings.Contains(pointer, "%") {
		return 0, fmt.Errorf("$ref %q: only references such as #/$defs/name are supported", ref)
	}
	node := b.root
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if pointer == "" {
			break
		}
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		switch at := node.(type) {
		case map[string]any:
			node, ok = at[token]
		case []any:
			i, err := strconv.Atoi(token)
			if ok = err == nil && i >= 0 && i < len(at); ok {
				node = at[i]
			}
		default:
			ok = false
		}
		if !ok {
			return 0, fmt.Errorf("$ref %q: there is nothing", ref)
		}
	}
	b.weights[ref] = 0
	weight, err := b.weigh(node, ref == "#")
	b.weights[ref] = weight
	return weight, err
}
