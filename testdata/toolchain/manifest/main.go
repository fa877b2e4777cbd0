// Command manifest puts the manifest of a plugin, which a function of the module tells,
// into the module's custom section as well, before everything else. There the proxy can
// read it of a module that it cannot load.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == wasm.CompilerCommand { // which inspecting starts
		if err := wasm.RunCompiler(context.Background(), os.Args[2], os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		return
	}
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: manifest FILE.wasm")
		os.Exit(2)
	}
	if err := embed(os.Args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "manifest: %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

func embed(path string) error {
	module, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	in, err := wasm.Inspect(context.Background(), module, wasm.PluginOptions{})
	if err != nil {
		return err
	}
	if len(in.Problems) > 0 {
		return fmt.Errorf("it is no plugin: %s", strings.Join(in.Problems, "; "))
	}
	return os.WriteFile(path, in.Embed(module), 0o644)
}
