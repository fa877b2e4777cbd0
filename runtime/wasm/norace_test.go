//go:build !race

package wasm

// underRace tells that the race detector does not run.
const underRace = false
