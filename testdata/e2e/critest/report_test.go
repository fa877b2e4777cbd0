package critest_test

import (
	"encoding/xml"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// outcome of a spec.
type outcome string

const (
	passed  outcome = "pass"
	failed  outcome = "fail"
	skipped outcome = "skip"
	varies  outcome = "vary" // of the table alone: it passes or fails
)

// results are the specs of a run by their full name.
type results map[string]outcome

// readReport reads the JUnit report that ginkgo wrote.
func readReport(file string) (results, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("critest wrote no report: %w", err)
	}
	var report struct {
		Suites []struct {
			Cases []struct {
				Name   string `xml:"name,attr"`
				Status string `xml:"status,attr"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(data, &report); err != nil {
		return nil, fmt.Errorf("reading critest's report: %w", err)
	}
	r := results{}
	for _, suite := range report.Suites {
		for _, c := range suite.Cases {
			if name, ok := strings.CutPrefix(c.Name, "[It] "); ok { // else a node such as BeforeSuite
				r[name] = outcomeOf(c.Status)
			}
		}
	}
	return r, nil
}

func outcomeOf(status string) outcome {
	switch status {
	case "passed":
		return passed
	case "skipped", "pending":
		return skipped
	default: // failed, panicked, interrupted, timedout, aborted
		return failed
	}
}

// readExpected reads the runtime's committed table: an outcome, a space and a name a line.
func readExpected(t *testing.T) results {
	t.Helper()
	data, err := os.ReadFile("expected-" + node.RuntimeKind().ID + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	r := results{}
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		what, name, _ := strings.Cut(line, " ")
		r[name] = outcome(what)
	}
	return r
}

func (r results) count(o outcome) int {
	n := 0
	for _, got := range r {
		if got == o {
			n++
		}
	}
	return n
}
