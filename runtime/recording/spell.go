package recording

import (
	"slices"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/abi/spelling"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

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
			all[i] = spelling.Write(spelling.FormOf[p.Name], []byte(arg.Text), recordKeys(q))
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
		return spelling.Write(spelling.FormOf[name], q.Data, recordKeys(q))
	}
}
