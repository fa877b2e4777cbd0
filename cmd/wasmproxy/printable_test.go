package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// TestJSONIsPrintable: neither a command's JSON nor the log's has a rune that controls a terminal or the direction of text.
func TestJSONIsPrintable(t *testing.T) {
	const text, want = "\u009b31m\u202etxt.exe\u2066", `\u009b31m\u202etxt.exe\u2066`
	var out bytes.Buffer
	if err := encode(&out, map[string]string{"reason": text}); err != nil || out.String() != "{\n  \"reason\": \""+want+"\"\n}\n" {
		t.Errorf("a command prints %q, %v", out.String(), err)
	}
	out.Reset()
	cmd := &cobra.Command{}
	cmd.SetErr(&out)
	c := config.Default()
	newObserver(cmd, c).Observe(t.Context(), &observe.CallRefused{Plugin: "a", Reason: text})
	if !strings.Contains(out.String(), want) || strings.Contains(out.String(), "\u202e") {
		t.Errorf("the log has %q", out.String())
	}
}
