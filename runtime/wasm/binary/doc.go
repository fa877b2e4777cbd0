// Package binary reads the pieces that a WebAssembly module is made of: numbers,
// vectors, names, limits and instructions. It knows what an instruction looks
// like and which ones guests may use; what a module means, and which of its
// claims are too large, is for its callers to say.
//
// The bytes are hostile. Nothing here allocates by a number that it read, and
// what it accepts wazero reads in the same way.
package binary
