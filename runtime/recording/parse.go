package recording

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// parse reads a question with its answer.
func parse(name string, args []any, is any, failed string, hidden bool) (*plugin.Question, error) {
	i := slices.IndexFunc(abi.Functions, func(f abi.Function) bool { return f.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("there is no host function %q", name)
	}
	q := &plugin.Question{Function: &abi.Functions[i]}
	want := arguments(q.Function)
	if len(args) != len(want) {
		return nil, fmt.Errorf("it has %d arguments, want %d", len(args), len(want))
	}
	for i, p := range want {
		var arg plugin.Arg
		var err error
		switch {
		case p.Shape == abi.Text:
			var b []byte
			b, err = unspell(shapes[p.Name], args[i], recordKeys(q))
			arg = plugin.Arg{Text: string(b), IsText: true}
		case p.Name == "object", p.Name == "pod":
			q.Kind, err = objectOf(args[i])
			arg.Number = int64(q.Kind)
		case p.Name == "field":
			arg.Number, err = fieldOf(q, args[i])
		default:
			arg.Number, err = integer(args[i])
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
		q.Args = append(q.Args, arg)
	}
	var known bool
	if q.Errno, known = abi.ErrnoByName(failed); !known && failed != "" {
		return nil, fmt.Errorf("error: there is no error %q", failed)
	}

	var err error
	silent := Writes(q) || name == "reject"
	excused := hidden || silent || q.Errno != abi.OK
	switch {
	case is == nil && !excused:
		err = errors.New("there is no answer: give the key is or the key error")
	case is == nil:
	case q.Errno != abi.OK:
		err = errors.New("there are both an answer and an error")
	case silent:
		err = fmt.Errorf("%s answers nothing but errors", name)
	case name == "get_i64", name == "pod_find":
		q.Number, err = integer(is)
	default:
		q.Data, err = unspell(shapes[name], is, recordKeys(q))
	}
	if err != nil {
		return nil, fmt.Errorf("is: %w", err)
	}
	return q, nil
}

func objectOf(v any) (abi.Object, error) {
	name, ok := v.(string)
	if !ok {
		n, err := integer(v)
		return abi.Object(n), err
	}
	for o := abi.Event; o <= abi.Node; o++ {
		if o.String() == name {
			return o, nil
		}
	}
	return 0, fmt.Errorf("there is no object %q: want event, pod, container, node or the number of a handle", name)
}

// fieldOf reads a field's name, or its number. The name on a handle says what that stands for: container.id.
func fieldOf(q *plugin.Question, v any) (int64, error) {
	name, ok := v.(string)
	if !ok {
		return integer(v)
	}
	if q.Kind >= abi.FirstHandle {
		object, field, _ := strings.Cut(name, ".")
		kind, err := objectOf(object)
		if err != nil {
			return 0, fmt.Errorf("%q: want the kind before the field of a handle, as in container.id", name)
		}
		q.Kind, name = kind, field
	}
	info, ok := abi.FieldByName(q.Kind, name)
	if !ok {
		return 0, fmt.Errorf("%v has no field %q", q.Kind, name)
	}
	return int64(info.Field), nil
}
