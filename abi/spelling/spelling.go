// Package spelling has how arguments and answers of host functions are written in JSON: in the vectors of testdata/abi, and
// in recordings of plugins.
package spelling

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/wasmproxy/wasmproxy/abi"
)

// Form is how bytes are written in JSON, where they can be: else in hexadecimal.
type Form uint8

// The forms.
const (
	Text    Form = iota
	List         // of texts, or of records
	Element      // a text, or a record
	Entries      // an object, or pairs
	Handles      // numbers
	Octets       // always in hexadecimal
)

// FormOf has those of arguments that are not text, by the names of parameters, and of answers, by those of functions.
var FormOf = map[string]Form{
	"list": List, "files": List, "element": Element, "objects": Octets,
	"map_dump": Entries, "cgroup_read": Entries, "list_dump": List, "pod_list": Handles, "container_list": Handles,
}

// Object reads an object's name, or its number, which may be that of a handle.
func Object(v any) (abi.Object, error) {
	name, ok := v.(string)
	if !ok {
		n, err := Integer(v)
		return abi.Object(n), err
	}
	for o := abi.Event; o <= abi.Node; o++ {
		if o.String() == name {
			return o, nil
		}
	}
	return 0, fmt.Errorf("there is no object %q: want event, pod, container, node or the number of a handle", name)
}

// Field reads the name of an object's field, or its number. The name on a handle says what that stands for: container.id.
func Field(v any, object abi.Object) (field abi.Field, kind abi.Object, err error) {
	name, ok := v.(string)
	if !ok {
		n, err := Integer(v)
		return abi.Field(n), object, err
	}
	kind = object
	for _, o := range []abi.Object{abi.Pod, abi.Container} {
		if rest, found := strings.CutPrefix(name, o.String()+"."); found {
			kind, name = o, rest
		}
	}
	if kind >= abi.FirstHandle {
		return 0, 0, fmt.Errorf("%q: want the kind before the field of a handle, as in container.id", name)
	}
	info, ok := abi.FieldByName(kind, name)
	if !ok {
		return 0, 0, fmt.Errorf("%v has no field %q", kind, name)
	}
	return info.Field, kind, nil
}

// Write writes bytes in the first way that can be read again. keys are those of the records that elements are; nil if they
// are none.
func Write(s Form, b []byte, keys []string) any {
	var forms []any
	switch s {
	case Text:
		forms = []any{string(b)}
	case List:
		all := []any{}
		abi.EachElement(string(b), func(e string) bool { all = append(all, record(e, keys)); return true })
		forms = []any{all}
	case Element:
		forms = []any{record(string(b), keys), string(b)}
	case Entries:
		object, pairs := map[string]any{}, []any{}
		abi.EachEntry(string(b), func(k, v string) bool {
			object[k] = v
			pairs = append(pairs, []any{k, v})
			return true
		})
		forms = []any{object, map[string]any{"pairs": pairs}}
	case Handles:
		all := []any{}
		for rest := b; len(rest) >= 4; rest = rest[4:] {
			all = append(all, int64(int32(binary.LittleEndian.Uint32(rest))))
		}
		forms = []any{all}
	case Octets:
	}
	for _, v := range forms {
		if again, err := Read(s, v, keys); err == nil && bytes.Equal(again, b) {
			return v
		}
	}
	return map[string]any{"hex": hex.EncodeToString(b)}
}

// record is an element: an object if there are keys.
func record(e string, keys []string) any {
	if keys == nil {
		return e
	}
	all := map[string]any{}
	abi.EachEntry(e, func(k, v string) bool { all[k] = v; return true })
	return all
}

var errForm = errors.New("want a text, a list of texts, an object of texts, or an object with the one key hex or pairs")

// Read returns the bytes that are written so.
func Read(s Form, v any, keys []string) ([]byte, error) {
	switch v := v.(type) {
	case string:
		if !utf8.ValidString(v) {
			return nil, errForm
		}
		return []byte(v), nil
	case []any:
		return readList(s, v, keys)
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, errForm
	}
	if digits, ok := object["hex"].(string); ok && len(object) == 1 {
		return hex.DecodeString(digits)
	}
	if pairs, ok := object["pairs"].([]any); ok && len(object) == 1 {
		return readPairs(pairs)
	}

	// An object whose values are texts. In a record empty ones are left out.
	names := slices.Sorted(maps.Keys(object))
	if keys != nil && s != Entries {
		names = keys
	}
	for name := range object {
		if _, ok := object[name].(string); !ok || !slices.Contains(names, name) {
			return nil, errForm
		}
	}
	return abi.AppendEntries(nil, func(yield func(k, v string) bool) {
		for _, name := range names {
			value, _ := object[name].(string)
			if (value != "" || s == Entries) && !yield(name, value) {
				return
			}
		}
	}), nil
}

func readList(s Form, all []any, keys []string) ([]byte, error) {
	var numbers []byte
	elements := make([]string, 0, len(all))
	for _, v := range all {
		if s == Handles {
			n, err := Integer(v)
			if err != nil {
				return nil, err
			}
			numbers = binary.LittleEndian.AppendUint32(numbers, uint32(n))
			continue
		}
		b, err := Read(Element, v, keys)
		if err != nil {
			return nil, err
		}
		elements = append(elements, string(b))
	}
	if s == Handles {
		return append([]byte{}, numbers...), nil
	}
	return abi.AppendList(nil, elements), nil
}

func readPairs(pairs []any) ([]byte, error) {
	var flat []string
	for _, p := range pairs {
		pair, ok := p.([]any)
		if !ok || len(pair) != 2 {
			return nil, errForm
		}
		for _, v := range pair {
			b, err := Read(Text, v, nil)
			if err != nil {
				return nil, err
			}
			flat = append(flat, string(b))
		}
	}
	return abi.AppendEntries(nil, func(yield func(k, v string) bool) {
		for pair := range slices.Chunk(flat, 2) {
			if !yield(pair[0], pair[1]) {
				return
			}
		}
	}), nil
}

// Integer reads a number.
func Integer(v any) (int64, error) {
	switch v := v.(type) {
	case int64:
		return v, nil
	case json.Number:
		return v.Int64()
	}
	return 0, fmt.Errorf("%v is no number", v)
}
