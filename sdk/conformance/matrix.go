package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/abi/spelling"
)

// Sample is a field that a plugin may write in some hook, and how.
type Sample struct {
	Call   Call
	Target string // of the change
	Value  json.RawMessage
}

// ReadSamples reads them: calls with the change that comes of each.
func ReadSamples(text []byte) ([]Sample, error) {
	var list []struct {
		Call    Call
		Changes map[string]json.RawMessage
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("samples: %w", err)
	}
	samples := make([]Sample, len(list))
	for i, l := range list {
		for target, v := range l.Changes {
			samples[i] = Sample{l.Call, target, v}
		}
	}
	return samples, nil
}

// Matrix says what a hook lets a plugin do. The vector tries every sample: those that
// are named come through, all others are READ_ONLY.
type Matrix struct {
	Writable []string // fields, all of a group as "container.resources.*", and "container cgroup file"
}

// fill adds the calls to a vector, and the changes that come of them.
func (m *Matrix) fill(v *Vector, samples []Sample) error {
	changes, used := map[string]json.RawMessage{}, map[string]bool{}
	for _, s := range samples {
		if name := m.names(s.Target); name != "" {
			changes[s.Target], used[name] = s.Value, true
		} else {
			s.Call.Error = "READ_ONLY"
		}
		v.Calls = append(v.Calls, s.Call)
	}
	for _, name := range m.Writable {
		if !used[name] {
			return fmt.Errorf("no sample is %s", name)
		}
	}
	text, err := json.Marshal(changes)
	if err != nil {
		return err
	}
	return v.Want.Changes.UnmarshalJSON(text)
}

// names returns which of the writable is a change's target, "" if none is.
func (m *Matrix) names(target string) string {
	field, _, _ := strings.Cut(target, "[")
	if i := strings.Index(field, " file "); i >= 0 {
		field = field[:i+len(" file")]
	}
	group := field
	for _, name := range []string{".overhead.", ".resources."} {
		if i := strings.Index(field, name); i >= 0 {
			group = field[:i+len(name)] + "*"
		}
	}
	for _, name := range []string{field, group} {
		if slices.Contains(m.Writable, name) {
			return name
		}
	}
	return ""
}

// handle returns the handle that the call is about.
func (c *Call) handle() (n int64, ok bool) {
	if len(c.Args) == 0 || c.Function.Params[0].Name != "object" {
		return 0, false
	}
	n, err := spelling.Integer(c.Args[0])
	return n, err == nil && n >= int64(abi.FirstHandle)
}

// writes reports whether the function changes a field.
func (c *Call) writes() bool {
	switch c.Name() {
	case "set_i64", "set_bytes", "map_set", "map_del", "list_set", "list_add", "list_del":
		return true
	}
	return false
}
