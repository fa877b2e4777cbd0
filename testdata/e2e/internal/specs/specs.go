// Package specs reads how the specs of a suite of ginkgo ended, from its JUnit report. It runs no suite, and it judges nothing.
package specs

import (
	"encoding/xml"
	"fmt"
	"os"
	"strings"
)

// Outcome of a spec.
type Outcome string

// The outcomes.
const (
	Passed   Outcome = "pass"
	Failed   Outcome = "fail"
	Skipped  Outcome = "skip"     // by the spec itself
	Unchosen Outcome = "unchosen" // by the run's options
)

// Results are the specs of a suite by their name in its report.
type Results map[string]Outcome

// Count returns how many specs ended so.
func (r Results) Count(o Outcome) int {
	n := 0
	for _, got := range r {
		if got == o {
			n++
		}
	}
	return n
}

// Read reads a report.
func Read(file string) (Results, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("the suite wrote no report: %w", err)
	}
	var report struct {
		Suites []struct {
			Cases []struct {
				Name    string `xml:"name,attr"`
				Status  string `xml:"status,attr"`
				Skipped struct {
					Message string `xml:"message,attr"`
				} `xml:"skipped"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(data, &report); err != nil {
		return nil, fmt.Errorf("reading the suite's report %s: %w", file, err)
	}
	r := Results{}
	for _, suite := range report.Suites {
		for _, c := range suite.Cases {
			if name, ok := strings.CutPrefix(c.Name, "[It] "); ok { // else a node such as BeforeSuite
				r[name] = outcome(c.Status, c.Skipped.Message)
			}
		}
	}
	return r, nil
}

func outcome(status, skipped string) Outcome {
	switch status {
	case "passed":
		return Passed
	case "skipped", "pending":
		if skipped == "skipped" { // a spec that skips itself gives a reason after it
			return Unchosen
		}
		return Skipped
	default: // failed, panicked, interrupted, timedout, aborted
		return Failed
	}
}
