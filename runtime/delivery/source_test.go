package delivery_test

import (
	"testing"

	"github.com/wasmproxy/wasmproxy/runtime/delivery"
)

// TestSetKey: the key is set where it is or comes first, and all else of the file stays as it is written.
func TestSetKey(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                                 `{"enabled": false}`,
		"{\n  \"order\": \"15\"\n}\n":        "{\"enabled\": false, \n  \"order\": \"15\"\n}\n",
		`{"order": "15", "enabled" :true }`:  `{"order": "15", "enabled" :false }`,
		`{"enabled":null}`:                   `{"enabled":false}`,
		`{"config": {"enabled": true}}`:      `{"enabled": false, "config": {"enabled": true}}`,
		`{"a": 1, "enabled": false, "b": 2}`: `{"a": 1, "enabled": false, "b": 2}`,
		`{"enabled": true, "enabled": true}`: `{"enabled": true, "enabled": false}`, // the last one counts
	} {
		if got, err := delivery.SetKey([]byte(text), "enabled", false); err != nil || string(got) != want {
			t.Errorf("%s becomes %s, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{``, `[]`, `null`, `{"a": }`, `{} {}`} {
		if got, err := delivery.SetKey([]byte(text), "enabled", true); err == nil {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}
