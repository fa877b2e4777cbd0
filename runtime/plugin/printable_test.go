package plugin_test

import (
	"encoding/json"
	"testing"
	"unicode"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// TestPrintableJSON: the value is the same, and no rune of the text controls a terminal or the direction of text.
func TestPrintableJSON(t *testing.T) {
	value := "plain \"\\é世😀\x00\n\x1b[31m\x7f\u0080\u009b31m\u00a0\u200b\u200e\u2028\u202a\u202e\u2066\u2069\ufeff\U000e0001\U0010ffff<&"
	text, err := json.Marshal(map[string]string{value: value})
	if err != nil {
		t.Fatal(err)
	}
	shown := plugin.PrintableJSON(text)
	for _, r := range string(shown) {
		if !unicode.IsPrint(r) {
			t.Errorf("%U is left", r)
		}
	}
	var got map[string]string
	if err := json.Unmarshal(shown, &got); err != nil || got[value] != value {
		t.Errorf("%s is %q, %v", shown, got, err)
	}
	if same := `{"a": "é世😀"}` + "\n"; string(plugin.PrintableJSON([]byte(same))) != same {
		t.Error("what is printable is changed")
	}
}
