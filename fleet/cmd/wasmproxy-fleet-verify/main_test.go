package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestPage checks the lines of docs/fleet.md that run wasmproxy-fleet verify.
func TestPage(t *testing.T) {
	text, err := os.ReadFile("../../../docs/fleet.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^wasmproxy-fleet verify (.*)$`).FindAllSubmatch(text, -1)
	if len(lines) == 0 {
		t.Error("docs/fleet.md does not verify anything")
	}
	for _, line := range lines {
		cmd := command()
		err := cmd.ParseFlags(strings.Fields(string(line[1])))
		if err == nil {
			err = cmd.Args(cmd, cmd.Flags().Args())
		}
		if err != nil {
			t.Errorf("%s: %v", line[0], err)
		}
	}
}
