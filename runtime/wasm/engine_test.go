package wasm

import (
	"strings"
	"testing"
)

// TestEngineSaysWhatItIs shows that the log names the engine that runs.
func TestEngineSaysWhatItIs(t *testing.T) {
	for _, tt := range []struct {
		interpret bool
		want      string
	}{{true, "engine=interpreter"}, {false, "engine=compiler"}} {
		var logged record
		newEngine(t, Options{Observer: logged.logger(), Interpret: tt.interpret})
		if got := logged.String(); !strings.Contains(got, `msg="wasm engine started" `+tt.want) || strings.Contains(got, "WARN") {
			t.Errorf("logged %q, want %s and no warning", got, tt.want)
		}
	}
}
