// Command manifest puts the manifest of a plugin, which a function of the module tells,
// into the module's custom section as well, before everything else. There the proxy can
// read it of a module that it cannot load.
package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

func main() {
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
	if in.ManifestSource != "export" {
		return nil
	}
	const header = 8 // magic and version
	section := append(sized([]byte(abi.ManifestSection)), in.ManifestJSON...)
	out := append(module[:header:header], 0) // a custom section
	out = append(append(out, sized(section)...), module[header:]...)
	return os.WriteFile(path, out, 0o644)
}

// sized is b with its length before it.
func sized(b []byte) []byte { return append(binary.AppendUvarint(nil, uint64(len(b))), b...) }
