package registry

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
)

// TestConfigurationPage compares the tables of keys in docs/configuration.md with the keys
// that are read, both ways.
func TestConfigurationPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	for heading, table := range map[string][]key{"## A plugin's JSON": pluginKeys, "### match": matchKeys} {
		var keys []string
		for _, k := range table {
			keys = append(keys, k.name)
		}
		if documented := keysOf(string(text), heading); !slices.Equal(sorted(documented), sorted(keys)) {
			t.Errorf("below %s the page has the keys %q, files may have %q", heading, documented, keys)
		}
	}
	if fields := reflect.TypeFor[abi.Match]().NumField(); len(matchKeys) != fields {
		t.Errorf("there are %d keys of match, and %d fields", len(matchKeys), fields)
	}
	limits := keysOf(string(text), "### limits")
	for _, key := range limits {
		if _, err := parsePlugin([]byte(`{"limits": {"` + key + `": "64Ki"}}`)); err != nil && !strings.Contains(err.Error(), "limits: "+key+": ") {
			t.Errorf("%v", err)
		}
	}
	if fields := reflect.TypeFor[abi.Limits]().NumField() - 2; len(limits) != fields { // the times are the keys timeout and tick-timeout
		t.Errorf("the page has %d keys of limits, there are %d", len(limits), fields)
	}
}

var firstCell = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")

// keysOf returns the first column of the table after a heading.
func keysOf(text, heading string) (keys []string) {
	_, after, _ := strings.Cut(text, "\n"+heading+"\n")
	after, _, _ = strings.Cut(after, "\n#")
	for _, m := range firstCell.FindAllStringSubmatch(after, -1) {
		keys = append(keys, m[1])
	}
	return keys
}

func sorted(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return names
}
