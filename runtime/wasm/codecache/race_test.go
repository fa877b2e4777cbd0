//go:build race

package codecache_test

// The race detector has memory of its own and meets the limit before Go does.
const tooMuchMemory = "the process that compiles: exit status"
