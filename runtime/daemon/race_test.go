//go:build race

package daemon_test

import "time"

// underRace tells that the race detector runs: the interpreter is some ten times
// slower with it, and memory and the collector cost a multiple. What guests do is held
// to what is documented then, and not what it costs: that is for the run without the
// detector, which make test makes too.
const underRace = true

// kitBudget is five times that of the other run, and half of what all plugins of a call
// have, so that the others still get their turn.
const kitBudget = 500 * time.Millisecond
