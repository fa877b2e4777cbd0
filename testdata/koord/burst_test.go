package koord_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var updateBurst = flag.Bool("update-burst", false, "write what koordlet decides to plugins-wasm/cpu-burst/testdata/koordlet/decisions.json")

// TestBurstDecisions runs koordlet's own CPU burst strategy on the recorded loads of the plugin cpu-burst, and wants the decisions that
// the plugin's tests compare the plugin with.
func TestBurstDecisions(t *testing.T) {
	t.Parallel()
	const data = "../../plugins-wasm/cpu-burst/testdata/koordlet/"
	cmd := exec.CommandContext(t.Context(), programs.burst, data+"loads.json", data+"scenarios.json")
	var log bytes.Buffer
	cmd.Stderr = &log
	got, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, log.Bytes())
	}
	if *updateBurst {
		if err := os.WriteFile(data+"decisions.json", got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(data + "decisions.json")
	if err != nil {
		t.Fatal(err)
	}
	var decided, known map[string]map[string][][3]int64
	for text, to := range map[*[]byte]any{&got: &decided, &want: &known} {
		if err := json.Unmarshal(*text, to); err != nil {
			t.Fatal(err)
		}
	}
	if len(decided) == 0 || !cmp.Equal(decided, known) {
		t.Errorf("koordlet decides otherwise than decisions.json has it; look why, then run the test with -update-burst\n%s", cmp.Diff(known, decided))
	}
}
