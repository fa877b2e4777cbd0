package json_test

import (
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/plugins-wasm/internal/json"
)

func TestElements(t *testing.T) {
	for text, want := range map[string]string{``: "", `[]`: "", `["a", "b/c:1" ,2]`: "a|b/c:1|2", ` [ [1,2] ]`: "[1,2]"} {
		if got, err := json.Elements(text); strings.Join(got, "|") != want || err != nil {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
	for _, wrong := range []string{`{}`, `["a`, `["a"`, `x`} {
		if got, err := json.Elements(wrong); err == nil {
			t.Errorf("%s: %q", wrong, got)
		}
	}
}

func TestFind(t *testing.T) {
	const text = `{"a": {"b": [1, {"c": "}"}], "d": "x\"y"}, "e":-1.5 ,"f":true}`
	for _, tc := range []struct {
		path []string
		want string
	}{
		{[]string{"a", "b"}, `[1, {"c": "}"}]`},
		{[]string{"a", "d"}, `x\"y`},
		{[]string{"e"}, "-1.5"},
		{[]string{"f"}, "true"},
	} {
		if got, ok, err := json.Find(text, tc.path...); got != tc.want || !ok || err != nil {
			t.Errorf("%v: %q, %v, %v", tc.path, got, ok, err)
		}
	}
	for _, path := range [][]string{{"x"}, {"a", "x"}, {"c"}} {
		if got, ok, err := json.Find(text, path...); ok || err != nil {
			t.Errorf("%v: %q, %v", path, got, err)
		}
	}
	for _, wrong := range []string{`[]`, `{"a" 1}`, `{"a": "1}`, `{a: 1}`, `x`, `{"b": 1`} {
		if got, ok, err := json.Find(wrong, "a"); ok || err == nil {
			t.Errorf("%s: %q, %v", wrong, got, err)
		}
	}
	if _, ok, err := json.Find("", "a"); ok || err != nil {
		t.Errorf("nothing: %v, %v", ok, err)
	}
}
