package wasm

import "os"

// wallClock reports whether this run holds figures of wall-clock time to their bounds.
// make hostile sets the variable, since it runs alone on the machine; elsewhere other
// processes decide what such a figure is.
func wallClock() bool { return os.Getenv("WASMPROXY_WALL_CLOCK") != "" }
