//go:build race

package slots

// underRace tells that the race detector runs: the interpreter is some ten times
// slower with it, and memory is a multiple. What guests do is held
// to what is documented then, and not what it costs: that is for the run without the
// detector, which make test makes too.
const underRace = true
