//go:build race

package schema_test

// slower is how much longer code takes under the race detector, at most.
const slower = 20
