package v1alpha1_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"
)

// TestRevisionName is the same for each spelling of one content, and another one for each other content.
func TestRevisionName(t *testing.T) {
	names := map[string]string{}
	for _, test := range []struct{ name, spec string }{
		{"a", `{"artifact": "r/p@sha256:1", "settings": {"config": {"a": 1, "b": 12345678901234567890}}}`},
		{"a", `{"settings": {"config": { "b":12345678901234567890,"a":1}}, "artifact": "r/p@sha256:1"}`},
		{"another artifact", `{"artifact": "r/p@sha256:2", "settings": {"config": {"a": 1, "b": 12345678901234567890}}}`},
		{"another number", `{"artifact": "r/p@sha256:1", "settings": {"config": {"a": 1, "b": 12345678901234567891}}}`},
		{"no settings", `{"artifact": "r/p@sha256:1"}`},
		{"a selector", `{"artifact": "r/p@sha256:1", "nodeSelector": {"matchLabels": {"pool": "batch"}}}`},
	} {
		var spec v1alpha1.RevisionSpec
		if err := json.Unmarshal([]byte(test.spec), &spec); err != nil {
			t.Fatal(err)
		}
		name, err := v1alpha1.RevisionName("50-qos", spec)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(name, "50-qos-") || len(name) != len("50-qos-")+12 {
			t.Errorf("%s: %q is not the plugin's name and 12 digits", test.name, name)
		}
		if other, there := names[name]; there && other != test.name {
			t.Errorf("%s has the name of %s", test.name, other)
		}
		for has, of := range names {
			if of == test.name && has != name {
				t.Errorf("%s is called %s and %s", test.name, has, name)
			}
		}
		names[name] = test.name
	}
}
