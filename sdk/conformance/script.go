package conformance

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
)

// What an argument in the script is.
const (
	number = iota // i64
	text          // u32 length, bytes: gives a pointer and a length
	repeat        // u32 length, u8: likewise
	buffer        // u32: a buffer of so many bytes, shown as far as the result says
	place         // u32: a pointer to so many bytes, shown whatever the result
	end    = 0xff // in the place of a function: i32, what the program returns
)

// outside is in no guest's memory, and neither is what follows.
const outside = 0xffff_fff0

// defaultCap is the size of a buffer.
const defaultCap = 1536

var little = binary.LittleEndian

// encoder writes one call, and the line that the program logs of it.
type encoder struct {
	call *Call
	n    string // which time it is
	args []any  // that are still to be encoded
	kind abi.Object
	info abi.FieldInfo

	out   []byte
	given byte
}

// instruction is the number of the function, the number of arguments, and those.
func (e *encoder) instruction() ([]byte, error) {
	e.args = e.call.Args
	for _, a := range e.call.Function.Arguments() {
		if err := e.argument(a); err != nil {
			return nil, fmt.Errorf("%s: %w", a.Name, err)
		}
	}
	if len(e.args) > 0 {
		return nil, fmt.Errorf("too many arguments: %v", e.args)
	}
	return append([]byte{byte(e.call.number), e.given}, e.out...), nil
}

func (e *encoder) argument(a abi.Argument) error {
	switch {
	case a.Shape == abi.Number:
		e.place(8)
		return nil
	case a.Shape == abi.Buffer && e.call.Buf == "outside":
		e.pointer(e.cap())
		return nil
	case a.Shape == abi.Buffer && e.call.Name() == "random": // it takes the length of what it fills
		e.place(uint32(e.cap()))
		e.number(e.cap())
		return nil
	case a.Shape == abi.Buffer:
		e.tag(buffer)
		e.out = little.AppendUint32(e.out, uint32(e.cap()))
		return nil
	}
	if len(e.args) == 0 {
		return fmt.Errorf("there is no argument")
	}
	arg := e.args[0]
	e.args = e.args[1:]
	switch {
	case a.Shape == abi.Text:
		return e.text(arg)
	case a.Name == "object" || a.Name == "pod":
		object, kind, err := objectOf(arg)
		e.kind = kind
		e.number(object)
		return err
	case a.Name == "field":
		field, kind, err := fieldOf(arg, e.kind)
		e.info, _ = abi.FieldOf(kind, field)
		e.number(int64(field))
		return err
	}
	n, err := numberOf(arg)
	e.number(n)
	return err
}

func (e *encoder) tag(tag byte) {
	e.out = append(e.out, tag)
	e.given++
}

func (e *encoder) number(n int64) {
	e.tag(number)
	e.out = little.AppendUint64(e.out, uint64(n))
}

// pointer points to so many bytes outside of the memory.
func (e *encoder) pointer(length int64) {
	e.number(outside)
	e.number(length)
}

func (e *encoder) cap() int64 {
	if e.call.Cap != nil {
		return *e.call.Cap
	}
	return defaultCap
}

func (e *encoder) place(n uint32) {
	if e.call.Buf == "outside" {
		e.number(outside)
		return
	}
	e.tag(place)
	e.out = little.AppendUint32(e.out, n)
}

func (e *encoder) text(arg any) error {
	if long, ok := arg.(map[string]any); ok && long["repeat"] != nil {
		n, err := numberOf(long["times"])
		e.tag(repeat)
		e.out = append(little.AppendUint32(e.out, uint32(n)), fmt.Sprint(long["repeat"])[0])
		return err
	} else if ok && long["outside"] != nil {
		n, err := numberOf(long["outside"])
		if err != nil {
			return err
		}
		e.pointer(n)
		return nil
	}
	b, err := e.bytes(arg)
	e.tag(text)
	e.out = append(little.AppendUint32(e.out, uint32(len(b))), b...)
	return err
}

// bytes encodes what is text, a list, a record, or bytes in hexadecimal.
func (e *encoder) bytes(arg any) ([]byte, error) {
	switch arg := arg.(type) {
	case string:
		return []byte(strings.ReplaceAll(arg, "{n}", e.n)), nil
	case []any:
		list, err := e.list(arg)
		return abi.AppendList(nil, list), err
	case map[string]any:
		if digits, ok := arg["hex"].(string); ok {
			return hex.DecodeString(digits)
		}
		pairs, ok := arg["pairs"].([]any)
		if !ok {
			for _, key := range slices.Sorted(maps.Keys(arg)) {
				pairs = append(pairs, []any{key, arg[key]})
			}
		}
		return abi.AppendEntries(nil, pairsOf(pairs)), nil
	}
	return nil, fmt.Errorf("%v is neither text nor list nor record", arg)
}

// pairsOf are entries in this order, of which several may have one key.
func pairsOf(pairs []any) iter.Seq2[string, string] {
	return func(yield func(k, v string) bool) {
		for _, p := range pairs {
			if kv, ok := p.([]any); !ok || len(kv) != 2 || !yield(fmt.Sprint(kv[0]), fmt.Sprint(kv[1])) {
				return
			}
		}
	}
}

// list encodes the elements of a list: those of a record in the order of its keys.
func (e *encoder) list(elements []any) ([]string, error) {
	list := make([]string, len(elements))
	for i, element := range elements {
		switch element := element.(type) {
		case string:
			list[i] = element
		case map[string]any:
			list[i] = string(abi.AppendRecord(nil, e.info.RecordKeys(), func(key string) string {
				v, _ := element[key].(string)
				return v
			}))
		default:
			return nil, fmt.Errorf("%v is neither text nor record", element)
		}
	}
	return list, nil
}
