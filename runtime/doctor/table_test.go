package doctor_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/runtime/doctor"
)

var update = flag.Bool("update", false, "write the table of checks into docs/operations.md")

// TestTableInTheDocuments compares the table of checks in docs/operations.md with Checks.
func TestTableInTheDocuments(t *testing.T) {
	const file, begin, end = "../../docs/operations.md", "<!-- begin: checks -->\n", "<!-- end: checks -->\n"
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), begin)
	table, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table between %q and %q", file, begin, end)
	}
	var want strings.Builder
	want.WriteString("| check | question | severity | if not | what to do |\n|---|---|---|---|---|\n")
	for _, c := range doctor.Checks {
		fmt.Fprintf(&want, "| %s | %s | %s | %s | %s |\n", c.ID, c.Question, c.Severity, c.Effect, c.Remedy)
	}
	if *update {
		if err := os.WriteFile(file, []byte(before+begin+want.String()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if table != want.String() {
		t.Errorf("the table of checks in %s is another than Checks; run go test ./runtime/doctor -update", file)
	}
}

// counters cannot be made to count here without kernel files and another program.
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
