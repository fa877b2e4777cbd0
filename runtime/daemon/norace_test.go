//go:build !race

package daemon_test

// underRace tells that the race detector does not run, so that times and memory are
// those of the program.
const underRace = false
