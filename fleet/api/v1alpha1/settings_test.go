package v1alpha1_test

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"
)

// notSettings are keys of a plugin's JSON that are not the user's: the agent writes them, or they are for tries on one node.
var notSettings = []string{"wasm-module", "sha256", "enabled", "shadow"}

// TestSettingsAreThoseOfThePage compares the keys of settings, and those of their limits, with those that docs/configuration.md has
// for a module.
func TestSettingsAreThoseOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		heading, row string
		of           reflect.Type
	}{
		{"## A plugin's JSON", "(?m)^\\| `([a-z0-9-]+)` \\| yes ", reflect.TypeFor[v1alpha1.Settings]()},
		{"### limits", "(?m)^\\| `([a-z0-9-]+)` ", reflect.TypeFor[v1alpha1.Limits]()},
	} {
		_, table, _ := strings.Cut(string(page), "\n"+c.heading+"\n")
		table, _, _ = strings.Cut(table, "\n### ")
		var documented, has []string
		for _, row := range regexp.MustCompile(c.row).FindAllStringSubmatch(table, -1) {
			if !slices.Contains(notSettings, row[1]) {
				documented = append(documented, row[1])
			}
		}
		for f := range c.of.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			has = append(has, name)
		}
		slices.Sort(documented)
		slices.Sort(has)
		if !slices.Equal(documented, has) {
			t.Errorf("%s: the keys of a module are\n%q\nand those of %v\n%q", c.heading, documented, c.of, has)
		}
	}
}

// TestGrants go through as they are written.
func TestGrants(t *testing.T) {
	const text = `{"grant":["env",{"mounts":["/opt/tools"]}]}`
	var s v1alpha1.Settings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	if got, err := json.Marshal(s.DeepCopy()); err != nil || string(got) != text {
		t.Errorf("%s becomes %s (%v)", text, got, err)
	}
}
