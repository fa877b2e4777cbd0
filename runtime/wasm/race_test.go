//go:build race

package wasm

// underRace tells that the race detector runs, whose times and memory are not ours.
const underRace = true
