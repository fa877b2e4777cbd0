//go:build race

package daemon_test

// underRace tells that the race detector runs: the interpreter is some ten times
// slower with it, and memory and the collector cost a multiple.
const underRace = true
