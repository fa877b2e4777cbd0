//go:build !race

package daemon_test

import "time"

// underRace tells that the race detector does not run, so that times and memory are
// those of the program.
const underRace = false

// kitBudget is the time that hostile guests have for a call.
const kitBudget = 100 * time.Millisecond
