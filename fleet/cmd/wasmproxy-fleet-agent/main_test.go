package main

import (
	"os"
	"regexp"
	"testing"

	"github.com/wasmproxy/wasmproxy/fleet/process/processtest"
)

// TestManifest checks the command of the agents' pods.
func TestManifest(t *testing.T) {
	processtest.Parse(t, command(), processtest.Command(t, "../../../deploy/kustomize/fleet/agent.yaml", "wasmproxy-fleet-agent"))
}

// TestFlagsOfThePage checks the flags that docs/fleet.md names.
func TestFlagsOfThePage(t *testing.T) {
	text, err := os.ReadFile("../../../docs/fleet.md")
	if err != nil {
		t.Fatal(err)
	}
	flags := regexp.MustCompile("`--([a-z-]+)`").FindAllSubmatch(text, -1)
	if len(flags) == 0 {
		t.Error("docs/fleet.md names no flag")
	}
	for _, flag := range flags {
		if command().Flags().Lookup(string(flag[1])) == nil {
			t.Errorf("docs/fleet.md names the flag --%s, which the agent does not have", flag[1])
		}
	}
}
