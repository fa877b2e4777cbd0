package daemon_test

import (
	"os"
	"time"
)

// wallClock reports whether this run holds figures of wall-clock time to their bounds.
// make hostile sets the variable, since it runs alone on the machine; elsewhere other
// processes decide what such a figure is.
func wallClock() bool { return os.Getenv("WASMPROXY_WALL_CLOCK") != "" }

// kitBudget is the time that hostile guests have for a call. On a busy machine it is half of
// what all plugins of a call have, so that a guest ends as it means to, and the others
// still get their turn.
func kitBudget() time.Duration {
	if wallClock() {
		return 100 * time.Millisecond
	}
	return 500 * time.Millisecond
}
