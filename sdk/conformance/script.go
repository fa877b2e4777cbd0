package conformance

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/abi/spelling"
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
	call   *Call
	n      string // which time it is
	args   []any  // that are still to be encoded
	object abi.Object
	info   abi.FieldInfo

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
		object, err := spelling.Object(arg)
		e.object = object
		e.number(int64(object))
		return err
	case a.Name == "field":
		field, kind, err := spelling.Field(arg, e.object)
		e.info, _ = abi.FieldOf(kind, field)
		e.number(int64(field))
		return err
	}
	n, err := spelling.Integer(arg)
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
		n, err := spelling.Integer(long["times"])
		e.tag(repeat)
		e.out = append(little.AppendUint32(e.out, uint32(n)), fmt.Sprint(long["repeat"])[0])
		return err
	} else if ok && long["outside"] != nil {
		n, err := spelling.Integer(long["outside"])
		if err != nil {
			return err
		}
		e.pointer(n)
		return nil
	}
	b, err := e.bytes(spelling.Entries, arg)
	e.tag(text)
	e.out = append(little.AppendUint32(e.out, uint32(len(b))), b...)
	return err
}

// bytes encodes what is text, a list, a record, or bytes in hexadecimal.
func (e *encoder) bytes(form spelling.Form, arg any) ([]byte, error) {
	if text, ok := arg.(string); ok {
		arg = strings.ReplaceAll(text, "{n}", e.n)
	}
	return spelling.Read(form, arg, e.info.RecordKeys())
}
