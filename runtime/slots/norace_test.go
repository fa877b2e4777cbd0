//go:build !race

package slots

// underRace tells that the race detector does not run, so that memory is
// that of the program.
const underRace = false
