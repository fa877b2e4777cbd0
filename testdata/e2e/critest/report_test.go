package critest_test

import (
	"os"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/specs"
)

// varies is of the table alone: the spec passes or fails.
const varies specs.Outcome = "vary"

// readReport reads critest's report. The table has the one spec that is not run as skipped.
func readReport(file string) (specs.Results, error) {
	r, err := specs.Read(file)
	for name, outcome := range r {
		if outcome == specs.Unchosen {
			r[name] = specs.Skipped
		}
	}
	return r, err
}

// readExpected reads the runtime's committed table: an outcome, a space and a name a line.
func readExpected(t *testing.T) specs.Results {
	t.Helper()
	data, err := os.ReadFile("expected-" + node.RuntimeKind().ID + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	r := specs.Results{}
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		what, name, _ := strings.Cut(line, " ")
		r[name] = specs.Outcome(what)
	}
	return r
}
