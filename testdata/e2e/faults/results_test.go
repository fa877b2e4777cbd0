package faults_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

var update = flag.Bool("update", false, "write the results to RESULTS.md")

// result is a cell of the table: how long after the fault the pod was at the end of its stage.
func (x *trial) result() string {
	if x.err != nil {
		return "FAILED"
	}
	return fmt.Sprintf("%.1f s", x.took.Seconds())
}

// report prints the table of results, and writes it if that is asked for.
func report(t *testing.T, rounds [][]*trial) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, `# Faults at the steps of a pod's life

`+"`make e2e-faults`"+` made this table on %s, with %s.
While a pod is held at a step, the fault is made. Then the pod must run with one container of each name and attempt,
be resized, stop and leave nothing; hooks must have run as documented, and the proxy must know what the runtime has.
A cell says after how long the pod had reached the end of its stage.

`, time.Now().UTC().Format(time.DateOnly), node.RuntimeKind().ID)
	results := map[string]string{}
	b.WriteString("| fault |")
	var of []fault
	for _, round := range rounds {
		of = append(of, round[0].fault)
		for _, x := range round {
			results[x.name()] = x.result()
		}
	}
	for _, s := range steps {
		fmt.Fprintf(&b, " %s |", s.name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(steps)) + "\n")
	for _, f := range of {
		fmt.Fprintf(&b, "| %s |", f.name)
		for _, s := range steps {
			fmt.Fprintf(&b, " %s |", results[f.name+"/"+s.name])
		}
		b.WriteString("\n")
	}
	b.WriteString("\n| fault | |\n|---|---|\n")
	for _, f := range of {
		fmt.Fprintf(&b, "| %s | %s |\n", f.name, f.means)
	}
	b.WriteString("\n| step | the call that is held | where |\n|---|---|---|\n")
	for _, s := range steps {
		where := map[side]string{front: "between kubelet and proxy", back: "between proxy and runtime"}[s.side]
		fmt.Fprintf(&b, "| %s | the %s of %s, %s | %s |\n", s.name, s.phase, s.method, where, s.means)
	}
	t.Log("\n" + b.String())
	if *update && !t.Failed() {
		must(t, os.WriteFile("RESULTS.md", []byte(b.String()), 0o644))
	}
}
