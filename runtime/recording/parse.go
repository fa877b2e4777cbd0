package recording

import (
	"errors"
	"fmt"
	"slices"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/abi/spelling"
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
			b, err = spelling.Read(spelling.FormOf[p.Name], args[i], recordKeys(q))
			arg = plugin.Arg{Text: string(b), IsText: true}
		case p.Name == "object", p.Name == "pod":
			q.Kind, err = spelling.Object(args[i])
			arg.Number = int64(q.Kind)
		case p.Name == "field":
			var field abi.Field
			field, q.Kind, err = spelling.Field(args[i], q.Kind)
			arg.Number = int64(field)
		default:
			arg.Number, err = spelling.Integer(args[i])
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
		q.Number, err = spelling.Integer(is)
	default:
		q.Data, err = spelling.Read(spelling.FormOf[name], is, recordKeys(q))
	}
	if err != nil {
		return nil, fmt.Errorf("is: %w", err)
	}
	return q, nil
}
