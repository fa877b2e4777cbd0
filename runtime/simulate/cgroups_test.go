package simulate_test

import (
	"testing"

	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
	"github.com/wasmproxy/wasmproxy/runtime/simulate"
)

// TestGroupHasTheFilesOfTheTable makes a group of cgroup v2: it has each file that plugins may write and that
// no field of the resources is for.
func TestGroupHasTheFilesOfTheTable(t *testing.T) {
	c, err := simulate.NewCgroups(t.TempDir(), 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Make("kubepods", nil); err != nil {
		t.Fatal(err)
	}
	files, err := c.Files()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range rules.Files {
		if _, there := files["kubepods/"+x.Name]; !there && len(x.Fields) == 0 {
			t.Errorf("the group has no %s", x.Name)
		}
	}
	for _, name := range []string{"memory.min", "memory.low"} {
		if got := files["kubepods/"+name]; got != "0" {
			t.Errorf("%s is %q, want 0", name, got)
		}
	}
}
