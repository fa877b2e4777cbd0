package recording

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// Asked is a question and its answer, in the spelling of the ABI's vectors:
//
//	{"get": ["pod", "name"], "is": "web-0"}
//	{"set_i64": ["container", "resources.cpu_quota", 999], "error": "INVALID"}
type Asked struct {
	Question plugin.Question
	Hidden   bool // a part of the question or of the answer was a secret, and is left out
	Is       any  // the answer as JSON has it; nil: an error, what was hidden, or nothing
	args     []any
}

// Spell spells a question. Without env, names of environment variables are hidden; their values always are, and so is
// what the redactor knows as a secret.
func Spell(q plugin.Question, env bool, r *plugin.Redactor) Asked {
	a := Asked{Question: q}
	a.hide(env)
	a.args, a.Is = spellArgs(&a.Question), spellAnswer(&a.Question)
	for i, arg := range a.args {
		a.args[i] = a.redact(arg, r)
	}
	a.Is = a.redact(a.Is, r)
	return a
}

// Key is the question without its answer. It is equal for equal questions.
func (a *Asked) Key() string {
	text, _ := json.Marshal(append([]any{}, a.args...)) // texts, numbers, lists and maps of them: it cannot fail
	return `{"` + a.Question.Function.Name + `":` + string(text) + "}"
}

// Writes reports whether a question is to change something, the plugin's own values included.
func Writes(q *plugin.Question) bool {
	return slices.Contains([]string{
		"set_i64", "set_bytes", "map_set", "map_del", "list_set", "list_add", "list_del", "cgroup_set", "withdraw", "kv_set", "kv_del",
	}, q.Function.Name)
}

// hide leaves out what is of the environment or lastApplied, and requests as a whole.
func (a *Asked) hide(env bool) {
	q := &a.Question
	name := q.Function.Name
	keyed := slices.Contains([]string{"map_get", "map_set", "map_del", "withdraw"}, name)
	applied, ofMap := keyed && q.Args[2].Text == lastApplied, keyed || name == "map_dump"
	variable := ofMap && ofEnv(q)
	if name != "cri_raw" && !applied && !variable {
		return
	}
	q.Args = slices.Clone(q.Args)
	env = env || applied // its name is no secret
	switch name {
	case "cri_raw":
		a.Hidden = q.Data != nil
		q.Data = nil
		return
	case "map_dump":
		a.Hidden = q.Data != nil
		entries := string(q.Data)
		if q.Data = nil; a.Hidden && env { // the entries without their values
			q.Data = abi.AppendEntries(nil, func(yield func(k, v string) bool) {
				abi.EachEntry(entries, func(k, _ string) bool { return yield(k, plugin.Redacted) })
			})
		}
		return
	case "map_get":
		a.Hidden = !env || q.Data != nil
		q.Data = nil
	case "map_set":
		q.Args[3].Text = plugin.Redacted
	}
	if !env {
		q.Args[2].Text = plugin.Redacted
	}
}

// ofEnv reports whether a question on a field is of the environment.
func ofEnv(q *plugin.Question) bool {
	return q.Kind == abi.Container && abi.Field(q.Args[1].Number) == abi.ContainerEnv
}

// OwnVariables are the values that a plugin has given to variables of containers, or was not let.
func OwnVariables(asked []plugin.Question) (values []string) {
	for i := range asked {
		if q := &asked[i]; q.Function.Name == "map_set" && ofEnv(q) {
			values = append(values, q.Args[3].Text)
		}
	}
	return values
}

// lastApplied is the annotation in which kubectl keeps the whole manifest, environment included.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// redact returns a value without secrets, and notes if it had one.
func (a *Asked) redact(v any, r *plugin.Redactor) any {
	switch v := v.(type) {
	case string:
		shown := r.Text(v)
		a.Hidden = a.Hidden || shown != v
		return shown
	case []any:
		for i := range v {
			v[i] = a.redact(v[i], r)
		}
		if len(v) == 2 && v[0] == lastApplied { // a pair
			v[1], a.Hidden = plugin.Redacted, true
		}
	case map[string]any:
		if digits, ok := v["hex"].(string); ok && len(v) == 1 {
			if b, err := hex.DecodeString(digits); err == nil && r.Text(string(b)) != string(b) {
				a.Hidden = true
				return plugin.Redacted
			}
		}
		shown := map[string]any{}
		for key, value := range v {
			if key == lastApplied {
				value, a.Hidden = plugin.Redacted, true
			}
			name, _ := a.redact(key, r).(string)
			shown[name] = a.redact(value, r)
		}
		return shown
	}
	return v
}

// MarshalJSON implements json.Marshaler.
func (a Asked) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	put := func(before string, v any) error {
		text, err := encode(v)
		b.WriteString(before)
		b.Write(bytes.TrimSuffix(text, []byte("\n")))
		return err
	}
	err := put(`{"`+a.Question.Function.Name+`":`, append([]any{}, a.args...))
	switch {
	case a.Question.Errno != abi.OK:
		err = errors.Join(err, put(`,"error":`, abi.ErrnoName(a.Question.Errno)))
	case a.Is != nil:
		err = errors.Join(err, put(`,"is":`, a.Is))
	}
	if a.Hidden {
		b.WriteString(`,"hidden":true`)
	}
	b.WriteByte('}')
	return b.Bytes(), err
}

// UnmarshalJSON implements json.Unmarshaler.
func (a *Asked) UnmarshalJSON(b []byte) error {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(b, &keys); err != nil {
		return err
	}
	var name, failed string
	args, is := []any{}, any(nil)
	for key, text := range keys {
		var err error
		switch key {
		case "is":
			err = number(text, &is)
		case "error":
			err = json.Unmarshal(text, &failed)
		case "hidden":
			err = json.Unmarshal(text, &a.Hidden)
		default:
			if name != "" {
				return fmt.Errorf("asked: %s and %s in one question", min(name, key), max(name, key))
			}
			name = key
			err = number(text, &args)
		}
		if err != nil {
			return fmt.Errorf("asked: %s: %w", key, err)
		}
	}
	q, err := parse(name, args, is, failed, a.Hidden)
	if err != nil {
		return fmt.Errorf("asked: %s: %w", plugin.Printable(b, 120), err)
	}
	a.Question, a.args, a.Is = *q, spellArgs(q), spellAnswer(q)
	return nil
}

func number(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(into)
}
