package preflight

// Limits of a module, well above what real guests of Go, TinyGo, Rust and C
// were seen to need; the largest seen stands behind each.
const (
	maxSections  = 64 // custom ones included; with DWARF: 20
	maxTypes     = 10_000
	maxValues    = 1_000 // parameters of one function type
	maxImports   = 64    // Go: 28
	maxFunctions = 20_000
	maxTable     = 65_536 // entries, and entries that element segments set
	maxPages     = 65_536 // of 64 KiB, which is what 32 bits can address
	maxGlobals   = 10_000
	maxExports   = 128
	maxElements  = 10_000  // element segments
	maxData      = 65_536  // data segments
	maxNames     = 1 << 20 // bytes of the name section

	// Of one function. Compiling takes longer than in proportion to these:
	// 20,000 nested blocks took wazero 2.3 s.
	maxBody   = 512 << 10 // bytes; TinyGo: 183 KiB
	maxLocals = 2_000     // parameters included; Zig: 813
	maxDepth  = 1_024     // blocks within blocks; Go: 549

	// Units of work for the compiler, of one function and of all; see work.go. Go with
	// net/http, 5.5 MiB: 184,000 and 9.4 million. A module of 13 million takes at most 4 s.
	maxFunctionWork = 600_000
	maxWork         = 13_000_000
)

// ReservedPrefix begins the names that belong to the host: the metering adds
// exports and imports of its own.
const ReservedPrefix = "__wp_"
