package schema_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/runtime/wasm/schema"
)

const limits = `{
	"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://example.com/limits",
	"type": "object", "additionalProperties": false, "required": ["tier"],
	"properties": {
		"tier": {"enum": ["gold", "silver"]},
		"limits": {"type": "object", "properties": {"max": {"$ref": "#/$defs/count"}, "min": {"$ref": "#/$defs/count"}}},
		"id": {"type": "string"},
		"list": {"type": "array", "items": {"type": "string", "pattern": "^[a-z]+$"}}
	},
	"$defs": {"count": {"type": "integer", "minimum": 1}}
}`

func TestCheck(t *testing.T) {
	check := func(config string) error {
		s, err := schema.Parse(limits)
		if err != nil {
			t.Fatal(err)
		}
		return s.Check([]byte(config))
	}
	for _, tt := range []struct{ config, want string }{
		{`{"tier":"gold","limits":{"max":3},"list":["a"],"id":"x"}`, ""},
		{``, "/: missing property 'tier'"},
		{`{}`, "/: missing property 'tier'"},
		{`{"tier":"gold","limits":{"max":"3"}}`, "/limits/max: got string, want integer"},
		{`{"tier":"gold","limits":{"max":0}}`, "/limits/max: minimum: got 0, want 1"},
		{`{"tier":"bronze"}`, "/tier: value must be one of 'gold', 'silver'"},
		{`{"tier":"gold","colour":"red"}`, "/: additional properties 'colour' not allowed"},
		{`{"tier":"gold","list":["a",7]}`, "/list/1: got number, want string"},
		{`tier: gold`, "not JSON, which the plugin's schema is for"},
		{`{"tier":"gold"} x`, "not JSON"},
	} {
		err := check(tt.config)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got %v, want %q", tt.config, err, tt.want)
		}
	}
	err := check(`{"tier":"gold","list":[1,2,3,4,5,6,7,8,9,10]}`)
	if err == nil || !strings.HasSuffix(err.Error(), "; and 2 more") {
		t.Errorf("got %v, want eight problems and a word of the others", err)
	}
}

// TestSchemasRefused gives schemas that are none, that look elsewhere, and that
// would never end.
func TestSchemasRefused(t *testing.T) {
	elsewhere := filepath.Join(t.TempDir(), "elsewhere.json")
	if err := os.WriteFile(elsewhere, []byte(`{"type":"string"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	doubling := `{"$defs":{"p0":false`
	for i := range 40 {
		doubling += fmt.Sprintf(`,"p%d":{"anyOf":[{"$ref":"#/$defs/p%d"},{"$ref":"#/$defs/p%d"}]}`, i+1, i, i)
	}
	for _, tt := range []struct{ schema, want string }{
		{`{"type":`, "not JSON"},
		{`7`, "got number, want"},
		{`{"type":"colour"}`, "/type: "},
		{`{"properties":{"a":{"minimum":"1"}}}`, "/properties/a/minimum: got string, want number"},
		{`{"pattern":"("}`, "/pattern: "},
		{`{"$ref":"file://` + elsewhere + `"}`, "only references such as #/$defs/name are supported"},
		{`{"$ref":"https://example.com/x"}`, "only references such as"},
		{`{"$schema":"file://` + elsewhere + `"}`, "which is not looked up"},
		{`{"$ref":"#/$defs/none"}`, `$ref "#/$defs/none": there is nothing`},
		{`{"properties":{"a":{"$ref":"#"}}}`, `$ref "#" leads to itself`},
		{`{"$ref":"#/$defs/a","$defs":{"a":{"not":{"$ref":"#/$defs/b"}},"b":{"$ref":"#/$defs/a"}}}`, "leads to itself"},
		{`{"$dynamicRef":"#x"}`, "$dynamicRef is not supported"},
		{`{"$defs":{"a":{"$id":"x"}}}`, "$id is not supported"},
		{`{"properties":{"a":{"minimum":1e999999}}}`, "number 1e999999 has more digits"},
		{`{"enum":[[1E-999999]]}`, "number 1E-999999 has more digits"},
		{`{"maximum":1e99999999999999999999}`, "has more digits"},
		{`{"maximum":1` + strings.Repeat("0", 100) + `}`, "has more digits"},
		{doubling + `},"not":{"$ref":"#/$defs/p40"}}`, "has more than 10000 parts"},
	} {
		_, err := schema.Parse(tt.schema)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.60s: got %v, want one line with %q", tt.schema, err, tt.want)
		}
	}
}

func FuzzSchema(f *testing.F) {
	f.Add(limits, `{"tier":"gold","limits":{"max":3}}`)
	f.Add(`{"not":{"$ref":"#/$defs/a"},"$defs":{"a":{"minimum":1e400}}}`, `[1e400]`)
	f.Fuzz(func(t *testing.T, text, config string) {
		if len(text) > 16<<10 || len(config) > 16<<10 {
			return
		}
		if s, err := schema.Parse(text); err == nil {
			_ = s.Check([]byte(config))
		}
	})
}
