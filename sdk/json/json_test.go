package json_test

import (
	stdjson "encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/sdk/internal/vectors"
	"github.com/wasmproxy/wasmproxy/sdk/json"
	"github.com/wasmproxy/wasmproxy/sdk/quantity"
)

func TestVectors(t *testing.T) {
	for _, v := range vectors.Load(t, "..").JSON {
		if err := json.Parse(v.Text).Err(); err != nil && err.Error() != v.Error || err == nil && v.Error != "" {
			t.Errorf("%s: error %v, want %s", v.Text, err, v.Error)
		}
		for _, r := range v.Reads {
			got, err := read(t, v.Text, r)
			if err != nil && err.Error() != r.Error || err == nil && r.Error != "" {
				t.Errorf("%+v of %s: error %v", r, v.Text, err)
			}
			if err == nil && got != r.Is {
				t.Errorf("%+v of %s: got %q", r, v.Text, got)
			}
		}
	}
}

func read(t *testing.T, text string, r vectors.Read) (string, error) {
	o := json.Parse(text)
	if r.In != "" {
		o = o.Object(r.In)
	}
	got := get(t, o, r)
	return got, o.Err()
}

// get calls a getter, and returns what it gives as text.
func get(t *testing.T, o json.Object, v vectors.Read) string {
	number := func(n int64) string {
		if n == 1<<60 {
			return "-"
		}
		return strconv.FormatInt(n, 10)
	}
	switch v.Get {
	case "text":
		return o.Text(v.Key, "-")
	case "one_of":
		return o.OneOf(v.Key, "-", v.Values...)
	case "int":
		return number(o.Int(v.Key, v.Least, v.Most, 1<<60))
	case "parsed":
		return number(o.Parsed(v.Key, quantity.Value, 1<<60))
	case "bool":
		if yes := o.Bool(v.Key, true); yes == o.Bool(v.Key, false) {
			return strconv.FormatBool(yes)
		}
		return "-"
	case "has":
		return strconv.FormatBool(o.Has(v.Key))
	case "object":
		if slices.Contains(o.Keys(), v.Key) || o.Has(v.Key) {
			return strings.Join(o.Object(v.Key).Keys(), "|")
		}
		return "-"
	case "keys":
		return strings.Join(o.Keys(), "|")
	case "text_members":
		var all []string
		for k, text := range o.Object(v.Key).TextMembers() {
			all = append(all, k+"="+text)
		}
		return strings.Join(all, "|")
	case "object_members":
		var all []string
		for k, within := range o.Object(v.Key).ObjectMembers() {
			all = append(all, k+"="+strings.Join(within.Keys(), ","))
		}
		return strings.Join(all, "|")
	case "texts":
		return strings.Join(o.Texts(v.Key), "|")
	case "objects":
		return strconv.Itoa(len(o.Objects(v.Key)))
	case "fail":
		o.Fail(v.Key, "is wrong")
		return ""
	}
	t.Fatalf("unknown getter %q", v.Get)
	return ""
}

// TestObjects goes into a list of objects, whose errors have their place.
func TestObjects(t *testing.T) {
	o := json.Parse(`{"rules": [{"n": 1}, {"n": {"m": "x"}}]}`)
	rules := o.Objects("rules")
	if len(rules) != 2 || rules[0].Int("n", 0, 9, 0) != 1 {
		t.Fatalf("%d rules, error %v", len(rules), o.Err())
	}
	rules[1].Object("n").Int("m", 0, 9, 0)
	const want = `rules[1].n.m at byte 33: "x" is not a whole number from 0 to 9`
	if err := o.Err(); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if o.Fail("rules", "later"); o.Err().Error() != want {
		t.Errorf("the first error became %v", o.Err())
	}
}

// FuzzParse compares with encoding/json.
func FuzzParse(f *testing.F) {
	for _, text := range []string{`{}`, ` {"a" : [1, -2.5e3, true, false, null, ""], "b": {"c": "x\n\u00e9\ud83d\ude00\ud83dy"}} `, `{"a":01}`, `{"a":1.}`,
		`{"a":-}`, `{"a":[1 2]}`, `{"a":[1,]}`, `{"a":"\u12g4"}`, `{"a":"`, `{"a":"\`, `{"a"}`, `{`, `[{}]`, `{"\ud800\udc00":"\udc00\ud800"}`, `{"a":"\/"}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var want map[string]any
		wrong := stdjson.Unmarshal([]byte(text), &want)
		o := json.Parse(text)
		if text == "" || strings.Count(text, "[")+strings.Count(text, "{") > 60 || want == nil && wrong == nil { // null
			return
		}
		if (o.Err() == nil) != (wrong == nil) {
			t.Fatalf("%q: error %v, encoding/json: %v", text, o.Err(), wrong)
		}
		if wrong != nil || strings.ToValidUTF8(text, "") != text {
			return
		}
		for key, v := range want {
			s, isText := v.(string)
			if got := o.Text(key, "-"); isText && o.Err() == nil && got != s {
				t.Fatalf("%q, %q: got %q, want %q", text, key, got, s)
			}
		}
	})
}
