package recording

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// shape is how bytes are written in JSON, where they can be: else in hexadecimal.
type shape uint8

const (
	text    shape = iota
	list          // of texts, or of records
	element       // a text, or a record
	entries       // an object, or pairs
	handles       // numbers
	octets        // always in hexadecimal
)

// shapes are those of arguments that are not text, by the names of parameters, and of answers, by those of functions.
var shapes = map[string]shape{
	"list": list, "files": list, "element": element, "objects": octets,
	"map_dump": entries, "cgroup_read": entries, "list_dump": list, "pod_list": handles, "container_list": handles,
}

// arguments are those of a function that a question has: all but what the host writes.
func arguments(f *abi.Function) []abi.Argument {
	return slices.DeleteFunc(f.Arguments(), func(a abi.Argument) bool { return a.Shape == abi.Buffer || a.Shape == abi.Number })
}

// recordKeys are the keys of the records that the elements of the question's field are; nil if they are none.
func recordKeys(q *plugin.Question) []string {
	if len(q.Args) < 2 {
		return nil
	}
	info, _ := abi.FieldOf(q.Kind, abi.Field(q.Args[1].Number))
	return info.RecordKeys()
}

func spellArgs(q *plugin.Question) []any {
	all := make([]any, len(q.Args))
	for i, p := range arguments(q.Function) {
		arg := q.Args[i]
		switch {
		case arg.IsText:
			all[i] = spell(shapes[p.Name], []byte(arg.Text), recordKeys(q))
		case p.Name == "object", p.Name == "pod":
			all[i] = arg.Number
			if o := abi.Object(arg.Number); o >= abi.Event && o <= abi.Node {
				all[i] = o.String()
			}
		case p.Name == "field":
			all[i] = arg.Number
			if info, ok := abi.FieldOf(q.Kind, abi.Field(arg.Number)); ok {
				all[i] = info.Name
				if abi.Object(q.Args[0].Number) >= abi.FirstHandle {
					all[i] = q.Kind.String() + "." + info.Name
				}
			}
		default:
			all[i] = arg.Number
		}
	}
	return all
}

// spellAnswer returns nil for an error, for what was hidden, and where there is nothing to answer.
func spellAnswer(q *plugin.Question) any {
	switch name := q.Function.Name; {
	case q.Errno != abi.OK:
		return nil
	case name == "get_i64", name == "pod_find":
		return q.Number
	case q.Data == nil:
		return nil
	default:
		return spell(shapes[name], q.Data, recordKeys(q))
	}
}

// spell writes bytes in the first form that can be read again.
func spell(s shape, b []byte, keys []string) any {
	var forms []any
	switch s {
	case text:
		forms = []any{string(b)}
	case list:
		all := []any{}
		abi.EachElement(string(b), func(e string) bool { all = append(all, record(e, keys)); return true })
		forms = []any{all}
	case element:
		forms = []any{record(string(b), keys), string(b)}
	case entries:
		object, pairs := map[string]any{}, []any{}
		abi.EachEntry(string(b), func(k, v string) bool {
			object[k] = v
			pairs = append(pairs, []any{k, v})
			return true
		})
		forms = []any{object, map[string]any{"pairs": pairs}}
	case handles:
		all := []any{}
		for rest := b; len(rest) >= 4; rest = rest[4:] {
			all = append(all, int64(int32(binary.LittleEndian.Uint32(rest))))
		}
		forms = []any{all}
	case octets:
	}
	for _, v := range forms {
		if again, err := unspell(s, v, keys); err == nil && bytes.Equal(again, b) {
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

// unspell returns the bytes that are written so.
func unspell(s shape, v any, keys []string) ([]byte, error) {
	switch v := v.(type) {
	case string:
		if !utf8.ValidString(v) {
			return nil, errForm
		}
		return []byte(v), nil
	case []any:
		return unspellList(s, v, keys)
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, errForm
	}
	if digits, ok := object["hex"].(string); ok && len(object) == 1 {
		return hex.DecodeString(digits)
	}
	if pairs, ok := object["pairs"].([]any); ok && len(object) == 1 {
		return unspellPairs(pairs)
	}

	// An object whose values are texts. In a record empty ones are left out.
	names := slices.Sorted(maps.Keys(object))
	if keys != nil && s != entries {
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
			if (value != "" || s == entries) && !yield(name, value) {
				return
			}
		}
	}), nil
}

func unspellList(s shape, all []any, keys []string) ([]byte, error) {
	var numbers []byte
	elements := make([]string, 0, len(all))
	for _, v := range all {
		if s == handles {
			n, err := integer(v)
			if err != nil {
				return nil, err
			}
			numbers = binary.LittleEndian.AppendUint32(numbers, uint32(n))
			continue
		}
		b, err := unspell(element, v, keys)
		if err != nil {
			return nil, err
		}
		elements = append(elements, string(b))
	}
	if s == handles {
		return append([]byte{}, numbers...), nil
	}
	return abi.AppendList(nil, elements), nil
}

func unspellPairs(pairs []any) ([]byte, error) {
	var flat []string
	for _, p := range pairs {
		pair, ok := p.([]any)
		if !ok || len(pair) != 2 {
			return nil, errForm
		}
		for _, v := range pair {
			b, err := unspell(text, v, nil)
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

func integer(v any) (int64, error) {
	switch v := v.(type) {
	case int64:
		return v, nil
	case json.Number:
		return v.Int64()
	}
	return 0, fmt.Errorf("%v is no number", v)
}
