//go:build race

package codecache_test

// The race detector has memory of its own: now it meets the limit first and says
// something of its own, now Go does. That there is an error is all that is sure.
const tooMuchMemory = ""
