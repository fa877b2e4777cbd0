// Command bench measures what a CRI proxy adds to a call, with every party a process of
// its own on unix sockets: a backend called directly, a relay of raw bytes, Koordinator's
// koord-runtime-proxy, and wasmproxy without hooks and with them. See README.md.
//
// It is a harness, not a test: a slow result never fails it. It fails when a party does
// not do what is measured, such as a plugin that was not called.
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := command(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
