// Package preflight looks at a module's bytes before anything else does: it
// refuses what would cost the host more than the module's own size, and returns
// an outline of what it accepts.
//
// wazero's decoder and compiler allocate by what a module claims and do not heed
// a context (RATIONALE.md of package wasm has the figures). The scan walks all
// of a module, function bodies too, once; it allocates at most a few times the
// module's size, and runs nothing. It does not check the types of operands, which
// wazero does, nor whether the host has what the module imports, which package
// wasm does.
package preflight
