package doctor_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/runtime/doctor"
	"github.com/wasmproxy/wasmproxy/testdata/doctable"
)

var update = flag.Bool("update", false, "write the table of checks into docs/operations.md")

// TestTableInTheDocuments compares the table of checks in docs/operations.md with Checks.
func TestTableInTheDocuments(t *testing.T) {
	var want strings.Builder
	want.WriteString("| check | question | severity | if not | what to do |\n|---|---|---|---|---|\n")
	for _, c := range doctor.Checks {
		fmt.Fprintf(&want, "| %s | %s | %s | %s | %s |\n", c.ID, c.Question, c.Severity, c.Effect, c.Remedy)
	}
	doctable.Check(t, *update, "../../docs/operations.md", "checks", want.String())
}

// counters cannot be made to count here without kernel files and another program: see TestCounts.
var counters = []string{"cgroup-fights", "cgroup-writes"}

// TestEveryCheckHasAPlantedFinding: each row of the table finds something in TestPlanted.
func TestEveryCheckHasAPlantedFinding(t *testing.T) {
	found := map[string]bool{}
	for _, id := range counters {
		found[id] = true
	}
	for _, test := range planted {
		for _, want := range test.want {
			id, _, _ := strings.Cut(want, ":")
			found[id] = true
		}
	}
	for _, c := range doctor.Checks {
		if !found[c.ID] {
			t.Errorf("nothing is planted that %s has to find", c.ID)
		}
		delete(found, c.ID)
	}
	if len(found) > 0 {
		t.Errorf("no check has the ids %v", found)
	}
}
