package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/sdk/fixture"
)

// TestExpectationsCanFail alters each thing that a vector expects, alone, and looks
// whether the answer that was right is still taken for right.
func TestExpectationsCanFail(t *testing.T) {
	p, altered := build(t, "wat"), 0
	p.Keep(t, empty)
	for _, v := range allVectors(t) {
		c := fixtureOf(t, v)
		answer := p.Answer(t, c)
		if err := c.Want.Compare(answer); err != nil {
			t.Errorf("%s: %v", v.Name, err)
		}
		for what, want := range alterations(c.Want) {
			if altered++; want.Compare(answer) == nil {
				t.Errorf("%s: nobody sees that %s is altered", v.Name, what)
			}
		}
	}
	t.Logf("%d alterations", altered)
}

// alterations are all that differ from a Want in one thing.
func alterations(w *fixture.Want) map[string]*fixture.Want {
	all := map[string]*fixture.Want{}
	alter := func(what string, f func(*fixture.Want)) {
		other := *w
		other.Log, other.Changes = slices.Clone(w.Log), maps.Clone(w.Changes)
		other.Metrics, other.KV = maps.Clone(w.Metrics), maps.Clone(w.KV)
		f(&other)
		all[what] = &other
	}
	for i, line := range w.Log {
		alter(fmt.Sprintf("line %d, %s", i, line), func(o *fixture.Want) { o.Log[i] = alterLine(line) })
	}
	for target, v := range w.Changes {
		alter(target, func(o *fixture.Want) { o.Changes[target] = v + "0" })
		alter("the loss of "+target, func(o *fixture.Want) { delete(o.Changes, target) })
	}
	alter("another change", func(o *fixture.Want) { o.Changes = fixture.Changes{"container.resources.cpu_period": "1"} })
	if w.Reject != nil {
		alter("the code", func(o *fixture.Want) { o.Reject = &fixture.Rejection{Code: w.Reject.Code + 1, Reason: w.Reject.Reason} })
		alter("the reason", func(o *fixture.Want) {
			o.Reject = &fixture.Rejection{Code: w.Reject.Code, Reason: w.Reject.Reason + "."}
		})
	}
	alter("the refusal", func(o *fixture.Want) {
		if o.Reject = nil; w.Reject == nil {
			o.Reject = &fixture.Rejection{Code: 7}
		}
	})
	alter("the error", func(o *fixture.Want) { o.Error += " as never" })
	for name, v := range w.Metrics {
		alter(name, func(o *fixture.Want) { o.Metrics[name] = v + 1 })
	}
	for key := range w.KV {
		alter(key, func(o *fixture.Want) { delete(o.KV, key) })
	}
	return all
}

// alterLine makes another result, or another last byte, of a line.
func alterLine(line string) string {
	if strings.HasSuffix(line, "1") {
		return line[:len(line)-1] + "2"
	}
	return line[:len(line)-1] + "1"
}

// TestFieldsCanFail lets every call of a vector be about a field that there is not, and
// looks whether each answers something else.
func TestFieldsCanFail(t *testing.T) {
	p, altered := build(t, "wat"), 0
	p.Keep(t, empty)
	for _, v := range allVectors(t) {
		other, places := alterFields(t, v)
		if len(places) == 0 {
			continue
		}
		want, got := fixtureOf(t, v).Want.Log, p.Answer(t, fixtureOf(t, other)).Log
		if len(got) != len(want) {
			t.Errorf("%s: %d lines, want %d", v.Name, len(got), len(want))
			continue
		}
		for line, call := range places {
			if altered++; got[line] == want[line] {
				t.Errorf("%s: nobody sees that %s is about another field than %v", v.Name, call.Name(), call.Args[:2])
			}
		}
	}
	t.Logf("%d alterations", altered)
}

// alterFields returns the vector with other fields, and the calls by their lines. What
// is refused whatever the field keeps it.
func alterFields(t *testing.T, v Vector) (Vector, map[int]Call) {
	t.Helper()
	places, line := map[int]Call{}, 0
	alter := func(calls []Call) []Call {
		calls = slices.Clone(calls)
		for i, c := range calls {
			_, lines, err := c.compile()
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := c.Field(); ok && len(lines) > 0 && !c.whateverTheField() {
				for n := range lines {
					places[line+n] = c
				}
				calls[i].Args = append([]any{c.Args[0], json.Number("63")}, c.Args[2:]...)
				calls[i].Is, calls[i].Length, calls[i].Error = nil, nil, "NOT_FOUND"
			}
			line += len(lines)
		}
		return calls
	}
	v.Configure = alter(v.Configure)
	line++ // the hook's number
	v.Calls = alter(v.Calls)
	return v, places
}

// whateverTheField reports whether the call is refused before the field is looked at, or
// as one that there is not.
func (c *Call) whateverTheField() bool {
	if c.Name() == "list_set" && c.Error == "INVALID" { // an encoding that is none
		_, encoded := c.Args[2].(map[string]any)
		return encoded
	}
	return slices.Contains([]string{"NOT_FOUND", "TOO_LARGE", "LIMIT"}, c.Error)
}

// TestValuesDiffer looks whether a vector would notice if a getter answered another field
// of the object and type.
func TestValuesDiffer(t *testing.T) {
	seen := map[string]string{}
	for v, c := range calls(t) {
		info, ok := c.Field()
		if !ok || c.Name() != getters[info.Type] || c.Is == nil || !strings.HasPrefix(v.Name, "every field") {
			continue
		}
		key := fmt.Sprint(v.Name, info.Object, info.Type, c.Is)
		if other, taken := seen[key]; taken && other != info.Name {
			t.Errorf("%s: %s and %s are both %v", v.Name, other, info.Name, c.Is)
		}
		seen[key] = info.Name
	}
	if len(seen) < 90 {
		t.Errorf("only %d fields", len(seen))
	}
}
