//go:build race

package codecache_test

// The race detector has memory of its own, at addresses of its own: it meets the limit
// first, or leaves Go none that it could use, unless Go meets it by itself.
const tooMuchMemory = "took more than the 128 MiB of memory that it may|ThreadSanitizer failed to allocate|too many address space collisions for -race mode"
