package conformance

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/sdk/fixture"
)

// Vector is a fixture with the calls that the program makes, and what each is to
// answer. Its case has neither a configuration nor the lines that are to be logged:
// those follow from the calls.
type Vector struct {
	fixture.Case
	Configure []Call // before the first event
	Calls     []Call
	Withheld  []string                   // capabilities that the plugin has not, though they are granted by default
	Needs     []string                   // groups beside those of the hook and the calls
	keys      map[string]json.RawMessage // those of a fixture, and withheld
}

// Read reads a list of vectors. samples are for those that try every field.
func Read(text []byte, samples []Sample) ([]Vector, error) {
	var list []map[string]json.RawMessage
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("vectors: %w", err)
	}
	vectors := make([]Vector, len(list))
	for i, keys := range list {
		v, err := parse(keys, samples)
		if err != nil {
			return nil, fmt.Errorf("vector %d, %s: %w", i+1, keys["name"], err)
		}
		vectors[i] = v
	}
	return vectors, nil
}

func parse(keys map[string]json.RawMessage, samples []Sample) (Vector, error) {
	v := Vector{keys: keys}
	var matrix *Matrix
	for key, to := range map[string]any{"configure": &v.Configure, "calls": &v.Calls, "matrix": &matrix, "withheld": &v.Withheld, "needs": &v.Needs} {
		if err := decode(keys[key], to); err != nil {
			return v, fmt.Errorf("%s: %w", key, err)
		}
		if key != "withheld" {
			delete(keys, key)
		}
	}
	ofFixture := maps.Clone(keys)
	delete(ofFixture, "withheld")
	text, err := json.Marshal(ofFixture)
	if err != nil {
		return v, err
	}
	cases, err := fixture.Parse("", text)
	if err != nil {
		return v, err
	}
	v.Case = cases[0]
	for _, name := range v.Withheld {
		c, ok := abi.CapabilityByName(name)
		if !ok {
			return v, fmt.Errorf("withheld: unknown capability %q", name)
		}
		v.Grant &^= abi.CapabilitySetOf(c)
	}
	if v.Want == nil {
		v.Want = &fixture.Want{}
	}
	if matrix != nil {
		if err := matrix.fill(&v, samples); err != nil {
			return v, fmt.Errorf("matrix: %w", err)
		}
	}
	return v, nil
}

func decode(text json.RawMessage, to any) error {
	if text == nil {
		return nil
	}
	return json.Unmarshal(text, to)
}

// Fixture returns the case for the program.
func (v *Vector) Fixture() (fixture.Case, error) {
	script, lines, refused, err := compile(v.Configure)
	if err == nil && refused == 0 {
		more, expected, _, failure := compile(v.Calls)
		script, err = append(script, more...), failure
		lines = append(append(lines, "info: "+strconv.Itoa(int(v.Hook))), expected...)
	}
	if err != nil {
		return fixture.Case{}, fmt.Errorf("%s: %w", v.Name, err)
	}
	c, want := v.Case, *v.Want
	c.Config = `"` + hex.EncodeToString(script) + `"`
	for i, line := range lines {
		lines[i] = strings.ReplaceAll(line, configLength, strconv.Itoa(len(c.Config)))
	}
	want.Log, c.Want = lines, &want
	return c, nil
}

// compile returns the script of calls with its end, the lines that come of them, and
// what the program returns.
func compile(calls []Call) (script []byte, lines []string, result int32, err error) {
	for _, c := range calls {
		instructions, expected, err := c.compile()
		if err != nil {
			return nil, nil, 0, fmt.Errorf("%s: %w", c.Name(), err)
		}
		script, lines = append(script, instructions...), append(lines, expected...)
		result += c.Return
	}
	return little.AppendUint32(append(script, end), uint32(result)), lines, result, nil
}
