package simulate_test

import (
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
	"github.com/wasmproxy/wasmproxy/runtime/simulate"
)

// TestGroupHasTheFilesOfTheTable makes a group of each version: it has each file that plugins may write there and that
// no field of the resources is for.
func TestGroupHasTheFilesOfTheTable(t *testing.T) {
	for version := 1; version <= 2; version++ {
		c, err := simulate.NewCgroups(t.TempDir(), version)
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
			names := []string{"kubepods/" + x.Name}
			switch {
			case len(x.Fields) > 0:
				continue
			case version == 1 && x.V1 == nil:
				continue
			case version == 1:
				names = nil
				for _, name := range x.V1.Names {
					controller, _, _ := strings.Cut(name, ".")
					names = append(names, controller+"/kubepods/"+name)
				}
			}
			for _, name := range names {
				if _, there := files[name]; !there {
					t.Errorf("version %d: the group has no %s", version, name)
				}
			}
		}
		for _, name := range []string{"memory.min", "memory.low"} {
			if got := files["kubepods/"+name]; version == 2 && got != "0" {
				t.Errorf("%s is %q, want 0", name, got)
			}
		}
	}
}
