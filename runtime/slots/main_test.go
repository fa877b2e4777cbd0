package slots

import (
	"context"
	"os"
	"testing"

	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

// The test binary is also the program that compiles plugins.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == wasm.CompilerCommand {
		if wasm.RunCompiler(context.Background(), os.Args[2], os.Stdin, os.Stdout) != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
