package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/abi/spelling"
)

// Call is a call of a host function, or the end of the program.
type Call struct {
	Function *abi.Function // nil: the program returns Return
	Return   int32

	Args   []any  // in the order of the function's parameters, without those of its buffer
	Is     any    // what it answers; nil: it succeeds, and there is nothing to see
	Error  string // the name of the error that it answers
	Length *int64 // what it answers if that does not fit into Cap
	Cap    *int64 // bytes of the buffer
	Buf    string // "outside": the buffer is not in the guest's memory
	Trap   bool   // it does not come back
	Times  int    // how often it is made; "{n}" in its arguments is the number of the time

	number int // of the function in the script: its place in the table, which only grows
}

// Name is that of the function.
func (c *Call) Name() string {
	if c.Function == nil {
		return "return"
	}
	return c.Function.Name
}

// UnmarshalJSON reads `{"get": ["pod", "name"], "is": "web"}`.
func (c *Call) UnmarshalJSON(b []byte) error {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(b, &keys); err != nil {
		return err
	}
	for key, text := range keys {
		if err := c.set(key, text); err != nil {
			return fmt.Errorf("%s: %s: %w", b, key, err)
		}
	}
	if _, returns := keys["return"]; c.Function == nil && !returns {
		return fmt.Errorf("%s: no host function", b)
	}
	return nil
}

func (c *Call) set(key string, text json.RawMessage) error {
	to, ok := map[string]any{
		"return": &c.Return, "is": &c.Is, "error": &c.Error, "length": &c.Length, "cap": &c.Cap,
		"buf": &c.Buf, "trap": &c.Trap, "times": &c.Times,
	}[key]
	if !ok {
		number := slices.IndexFunc(abi.Functions, func(f abi.Function) bool { return f.Name == key })
		if number < 0 || c.Function != nil {
			return fmt.Errorf("neither a host function nor known")
		}
		c.number, c.Function, to = number, &abi.Functions[number], &c.Args
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(to); err != nil {
		return err
	}
	if c.Is == nil && key == "is" {
		return fmt.Errorf("null")
	}
	if _, known := abi.ErrnoByName(c.Error); c.Error != "" && !known {
		return fmt.Errorf("there is no error %q", c.Error)
	}
	return nil
}

// compile returns the instructions of the call, and the lines that come of it.
func (c *Call) compile() (script []byte, lines []string, err error) {
	if c.Function == nil {
		return nil, nil, nil
	}
	for n := range max(c.Times, 1) {
		e := encoder{call: c, n: strconv.Itoa(n)}
		instruction, err := e.instruction()
		if err != nil {
			return nil, nil, err
		}
		line, err := e.line()
		if err != nil {
			return nil, nil, err
		}
		script = append(script, instruction...)
		if line != "" {
			lines = append(lines, line)
		}
	}
	return script, lines, nil
}

// Field is the field that the call is about; ok is false if it is about none that
// there is.
func (c *Call) Field() (info abi.FieldInfo, ok bool) {
	if c.Function == nil || len(c.Args) < 2 || c.Function.Params[1].Name != "field" {
		return info, false
	}
	object, err := spelling.Object(c.Args[0])
	if err != nil {
		return info, false
	}
	field, kind, err := spelling.Field(c.Args[1], object)
	if err != nil || object < 0 {
		return info, false
	}
	return abi.FieldOf(kind, field)
}
