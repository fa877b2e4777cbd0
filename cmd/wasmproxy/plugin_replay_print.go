package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/recording"
	"github.com/wasmproxy/wasmproxy/runtime/regular"
	"github.com/wasmproxy/wasmproxy/runtime/simulate"
)

// replayReport is what came of a recording, as JSON has it.
type replayReport struct {
	Recording string                   `json:"recording"`
	Recorded  string                   `json:"recorded"` // the plugin that was recorded
	Module    string                   `json:"module"`
	Outcomes  map[simulate.Outcome]int `json:"outcomes"`
	Fuel      average                  `json:"fuel"`    // of a call, on average
	Took      average                  `json:"took_ns"` // likewise
	Notes     []string                 `json:"notes"`
	Calls     []simulate.Played        `json:"calls"`
}

// average is of the recorded plugin and the other one.
type average struct {
	Was int64 `json:"was"`
	Is  int64 `json:"is"`
}

// maxShownCalls is how many calls of an outcome are shown to people.
const maxShownCalls = 20

// print writes the report for people.
func (r *replayReport) print(out io.Writer) error {
	for _, outcome := range []simulate.Outcome{simulate.Different, simulate.Failed, simulate.Unknown} {
		left := r.Outcomes[outcome]
		for i := 0; i < len(r.Calls) && r.Outcomes[outcome]-left < maxShownCalls; i++ {
			if r.Calls[i].Outcome != outcome {
				continue
			}
			left--
			if err := printPlayed(out, &r.Calls[i]); err != nil {
				return err
			}
		}
		if left > 0 {
			fmt.Fprintf(out, "%d more calls are %s; -o json has all\n\n", left, outcome)
		}
	}
	for _, note := range r.Notes {
		fmt.Fprintln(out, "note: "+printable(note))
	}
	_, err := fmt.Fprintf(out, "%d calls: %d same, %d different, %d failed, %d unknown\nfuel of a call: was %d, is %d\ntime of a call: was %v, is %v\n",
		len(r.Calls), r.Outcomes[simulate.Same], r.Outcomes[simulate.Different], r.Outcomes[simulate.Failed], r.Outcomes[simulate.Unknown],
		r.Fuel.Was, r.Fuel.Is, time.Duration(r.Took.Was).Round(time.Microsecond), time.Duration(r.Took.Is).Round(time.Microsecond))
	return err
}

func printPlayed(out io.Writer, c *simulate.Played) error {
	fmt.Fprintf(out, "line %d: %s: %s\n", c.Line, printable(c.Title), c.Outcome)
	if c.Error != "" {
		fmt.Fprintf(out, "  %s\n", printable(c.Error))
	}
	for _, asked := range c.Unknown {
		fmt.Fprintf(out, "  asked %s\n", printable(asked))
	}
	if err := printChanged(out, c.Changes); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out)
	return err
}

// printChanged writes a table of what two plugins want otherwise; nothing if that is none.
func printChanged(out io.Writer, rows []plugin.Changed) error {
	if len(rows) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "  TARGET\tWAS\tIS\n")
	for _, row := range rows {
		fmt.Fprintf(w, "  %s\t%s\t%s\n", printable(row.Target), shown(row.Was, maxShown), shown(row.Is, maxShown))
	}
	return w.Flush()
}

// maxShown is how much of a value is shown, in bytes.
const maxShown = 200

// suite is the report as JUnit has it.
func (r *replayReport) suite() suite {
	s := suite{Name: r.Recording}
	for i := range r.Calls {
		c := &r.Calls[i]
		var failure error
		if c.Outcome != simulate.Same {
			var text strings.Builder
			_ = printPlayed(&text, c) // to memory: it cannot fail
			failure = errors.New(text.String())
		}
		s.add(fmt.Sprintf("line %d: %s", c.Line, c.Title), c.Took, failure)
	}
	return s
}

// writeFixtures makes a file with fixtures of the calls that can be one.
func (r *replayer) writeFixtures(report *replayReport, name string, rec *recording.Recording) error {
	all, skipped := simulate.Fixtures(rec)
	if len(skipped) > 0 {
		report.Notes = append(report.Notes, fmt.Sprintf("%d of %d calls are no fixture: %s", len(skipped), len(rec.Calls), skipped[0]))
	}
	if len(all) == 0 {
		return nil
	}
	var text strings.Builder
	if err := encode(&text, all); err != nil {
		return err
	}
	if err := os.MkdirAll(r.fixtures, 0o755); err != nil {
		return err
	}
	return regular.Replace(name, []byte(text.String()), 0o644)
}
