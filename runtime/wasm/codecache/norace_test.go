//go:build !race

package codecache_test

const tooMuchMemory = "took more than the 128 MiB of memory that it may"
