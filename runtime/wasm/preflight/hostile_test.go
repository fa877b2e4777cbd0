package preflight

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
)

// section writes a section of a module.
func section(id byte, content ...[]byte) []byte {
	body := join(content...)
	return join([]byte{id}, num(uint64(len(body))), body)
}

// num writes a number as LEB128.
func num(v uint64) []byte { return binary.AppendUvarint(nil, v) }

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func bytesOf(b ...byte) []byte { return b }

func repeat(n int, b ...byte) []byte { return bytes.Repeat(b, n) }

// name writes a name.
func name(s string) []byte { return join(num(uint64(len(s))), []byte(s)) }

// moduleOf writes a module of sections.
func moduleOf(sections ...[]byte) []byte {
	return join([]byte("\x00asm\x01\x00\x00\x00"), join(sections...))
}

// functionOf writes a module of one function without parameters, with these
// groups of locals and this code.
func functionOf(locals, code []byte) []byte {
	body := join(locals, code)
	return moduleOf(oneType, oneFunction, section(10, num(1), num(uint64(len(body))), body))
}

// manyFunctions writes a module of n functions that are the same.
func manyFunctions(n int, locals, code []byte) []byte {
	body := join(locals, code)
	body = join(num(uint64(len(body))), body)
	return moduleOf(oneType, section(3, num(uint64(n)), repeat(n, 0)), section(10, num(uint64(n)), repeat(n, body...)))
}

// codeOf writes a module of one function that has no locals and ends.
func codeOf(code ...byte) []byte { return functionOf([]byte{0}, append(code, 0x0b)) }

var (
	oneType     = section(1, bytesOf(1, 0x60, 0, 0))
	oneFunction = section(3, bytesOf(1, 0))
	noLocals    = bytesOf(0)
	zeroOffset  = bytesOf(0x41, 0, 0x0b) // i32.const 0, end
	maxU32      = num(1<<32 - 1)
)

// hostile are small modules that would cost wazero up to 4 GiB, seconds, or a
// panic, or that two readers could understand differently; and what is said of
// them.
var hostile = []struct {
	name   string
	module []byte
	want   string
}{
	{"empty file", nil, `module does not begin with \0asm and version 1: it is not a WebAssembly module`},
	{"script", []byte("#!/bin/sh\n"), `module does not begin with \0asm and version 1: it is not a WebAssembly module`},
	{"version 2", []byte("\x00asm\x02\x00\x00\x00"), `module does not begin with \0asm and version 1: it is not a WebAssembly module`},
	{"too long", make([]byte, abi.MaxModule+1), "module has 8388609 bytes, the limit is 8388608"},

	// Counts that lie.
	{"types", moduleOf(section(1, num(20_000_000))), "type section at offset 0xa: claims 20000000 types where 0 bytes are left"},
	{"parameters", moduleOf(section(1, bytesOf(1, 0x60), maxU32)), "type section at offset 0xc: claims 4294967295 parameters where 0 bytes are left"},
	{"results", moduleOf(section(1, bytesOf(1, 0x60, 0), maxU32)), "type section at offset 0xd: claims 4294967295 results where 0 bytes are left"},
	{"imports", moduleOf(section(2, num(20_000_000))), "import section at offset 0xa: claims 20000000 imports where 0 bytes are left"},
	{"import module", moduleOf(section(2, num(1), maxU32)), "import section at offset 0x10: claims 4294967295 bytes where 0 are left"},
	{"import name", moduleOf(section(2, num(1), name("wp1"), maxU32)), "import section at offset 0x14: claims 4294967295 bytes where 0 are left"},
	{"functions", moduleOf(oneType, section(3, num(200_000_000))), "function section at offset 0x10: claims 200000000 functions where 0 bytes are left"},
	{"tables", moduleOf(section(4, bytesOf(9, 0x70, 0, 0))), "table section at offset 0xa: claims 9 tables where 3 bytes are left"},
	{"memories", moduleOf(section(5, num(1<<20))), "memory section at offset 0xa: claims 1048576 memories where 0 bytes are left"},
	{"globals", moduleOf(section(6, num(100_000_000))), "global section at offset 0xa: claims 100000000 globals where 0 bytes are left"},
	{"exports", moduleOf(section(7, num(100_000_000))), "export section at offset 0xa: claims 100000000 exports where 0 bytes are left"},
	{"export name", moduleOf(section(7, num(1), num(4_000_000_000))), "export section at offset 0x10: claims 4000000000 bytes where 0 are left"},
	{"element segments", moduleOf(section(9, num(100_000_000))), "element section at offset 0xa: claims 100000000 segments where 0 bytes are left"},
	{"elements", moduleOf(section(9, bytesOf(1, 0), zeroOffset, num(100_000_000))), "element section at offset 0xf: claims 100000000 entries where 0 bytes are left"},
	{"bodies", moduleOf(oneType, oneFunction, section(10, num(100_000_000))), "code section at offset 0x14: claims 100000000 functions where 0 bytes are left"},
	{"body", moduleOf(oneType, oneFunction, section(10, num(1), maxU32)), "code section at offset 0x1a: function 0 claims 4294967295 bytes where 0 are left"},
	{"groups of locals", functionOf(num(1_000_000), []byte{0x0b}), "code section at offset 0x16: function 0 claims 1000000 groups of locals where 1 bytes are left"},
	{"labels", functionOf(noLocals, join([]byte{0x0e}, maxU32, []byte{0x0b})), "code section at offset 0x18: function 0 claims 4294967295 labels where 1 bytes are left"},
	{"data segments", moduleOf(section(11, num(20_000_000))), "data section at offset 0xa: claims 20000000 segments where 0 bytes are left"},
	{"data", moduleOf(section(5, bytesOf(1, 0, 1)), section(11, bytesOf(1, 0), zeroOffset, maxU32)), "data section at offset 0x19: claims 4294967295 bytes where 0 are left"},
	{"data count", moduleOf(section(12, maxU32)), "data count section at offset 0xa: counts 4294967295 data segments, the limit is 65536"},
	{"name of a custom section", moduleOf(section(0, maxU32)), "custom section at offset 0xf: claims 4294967295 bytes where 0 are left"},
	{"section", moduleOf(bytesOf(1), maxU32), "module at offset 0xe: claims 4294967295 bytes where 0 are left"},

	// Too much of what is there.
	{"many types", moduleOf(section(1, num(10_001), repeat(10_001, 0x60, 0, 0))), "type section at offset 0xc: holds 10001 types, the limit is 10000"},
	{"many parameters", moduleOf(section(1, bytesOf(1, 0x60), num(1001), repeat(1001, 0x7f), noLocals)), "type section at offset 0xd: holds 1001 parameters, the limit is 1000"},
	{"two results", moduleOf(section(1, bytesOf(1, 0x60, 0, 2, 0x7f, 0x7f))), "type section at offset 0xd: holds 2 results, the limit is 1"},
	{"many imports", moduleOf(oneType, section(2, num(65), repeat(65, 0, 0, 0, 0))), "import section at offset 0x11: holds 65 imports, the limit is 64"},
	{"many functions", moduleOf(oneType, section(3, num(20_001), repeat(20_001, 0))), "function section at offset 0x12: holds 20001 functions, the limit is 20000"},
	{"large table", moduleOf(section(4, bytesOf(1, 0x70, 0), num(50_000_000))), "table section at offset 0xc: holds a table of 50000000 entries, the limit is 65536"},
	{"two tables", moduleOf(section(4, bytesOf(2, 0x70, 0, 0, 0x70, 0, 0))), "table section at offset 0xa: holds 2 tables, the limit is 1"},
	{"two memories", moduleOf(section(5, bytesOf(2, 0, 1, 0, 1))), "memory section at offset 0xa: holds 2 memories, the limit is 1"},
	{"large memory", moduleOf(section(5, bytesOf(1, 0), num(65_537))), "memory section at offset 0xb: holds a memory of 65537 pages, the limit is 65536"},
	{"large maximum", moduleOf(section(5, bytesOf(1, 1, 1), maxU32)), "memory section at offset 0xb: holds a memory of 4294967295 pages, the limit is 65536"},
	{"many globals", moduleOf(section(6, num(10_001), repeat(10_001, 0x7f, 0, 0x41, 0, 0x0b))), "global section at offset 0xc: holds 10001 globals, the limit is 10000"},
	{"many exports", moduleOf(section(7, num(129), repeat(129, 0, 0, 0))), "export section at offset 0xb: holds 129 exports, the limit is 128"},
	{"many element segments", moduleOf(section(9, num(10_001), repeat(10_001, 0, 0x41, 0, 0x0b, 0))), "element section at offset 0xc: holds 10001 segments, the limit is 10000"},
	{"many elements", moduleOf(oneType, oneFunction, section(9, bytesOf(2), repeat(2, append([]byte{0, 0x41, 0, 0x0b}, join(num(40_000), repeat(40_000, 0))...)...))), "element section at offset 0x9c5e: sets more than 65536 table entries"},
	{"many data segments", moduleOf(section(11, num(65_537), repeat(65_537, 0, 0x41, 0, 0x0b, 0))), "data section at offset 0xc: holds 65537 segments, the limit is 65536"},
	{"many sections", moduleOf(repeat(65, 0, 1, 0)), "custom section at offset 0xcb: is one of more than 64 sections"},
	{"long body", functionOf(noLocals, join(repeat(maxBody, 1), []byte{0x0b})), "code section at offset 0x17: function 0 has 524290 bytes of code, the limit is 524288"},
	{"many locals", functionOf(join(num(1), num(1_000_000), bytesOf(0x7f)), []byte{0x0b}), "code section at offset 0x17: function 0 has more than 2000 locals"},
	{"locals of many groups", functionOf(join(num(2), num(2_000), bytesOf(0x7f), num(1), bytesOf(0x7e)), []byte{0x0b}), "code section at offset 0x1a: function 0 has more than 2000 locals"},
	{"locals that wrap around", functionOf(join(num(2), maxU32, bytesOf(0x7f, 1, 0x7f)), []byte{0x0b}), "code section at offset 0x17: function 0 has more than 2000 locals"},
	{"deep nesting", functionOf(noLocals, join(repeat(1_025, 0x02, 0x40), repeat(1_026, 0x0b))), "code section at offset 0x819: function 0 nests more than 1024 blocks; split it"},
	{"blocks times locals", functionOf(join(num(1), num(500), bytesOf(0x7f)), join(repeat(720, 0x41, 0, 0x04, 0x40, 0x0b), []byte{0x0b})), "code section at offset 0x16: function 0 takes too long to compile: 619960 units of work, the limit is 600000 (it has 500 locals and 2160 jumps); split it"},
	{"blocks times locals of all", manyFunctions(23, join(num(1), num(500), bytesOf(0x7f)), join(repeat(680, 0x41, 0, 0x04, 0x40, 0x0b), []byte{0x0b})), "code section at offset 0x124f7: function 22 and those before it take too long to compile: 13373120 units of work, the limit is 13000000; leave something out"},

	// What makes a module ambiguous.
	{"unknown section", moduleOf(section(13, bytesOf(1))), "module at offset 0x8: has a section of unknown kind 13"},
	{"section twice", moduleOf(oneType, oneType), "module at offset 0xe: has a second type section"},
	{"order", moduleOf(section(3, noLocals), oneType), "module at offset 0xb: has its type section after the function section"},
	{"data count after code", moduleOf(section(10, noLocals), section(12, noLocals)), "module at offset 0xb: has its data count section after the code section"},
	{"trailing bytes", moduleOf(section(1, bytesOf(0, 0))), "type section at offset 0xb: goes on for 1 bytes after its end"},
	{"long number", moduleOf(section(1, bytesOf(0x80, 0x80, 0x80, 0x80, 0x80, 0))), "type section at offset 0xa: holds a number that is not an unsigned 32-bit LEB128"},
	{"large number", moduleOf(section(1, bytesOf(0x80, 0x80, 0x80, 0x80, 0x10))), "type section at offset 0xa: holds a number that is not an unsigned 32-bit LEB128"},
	{"long constant", codeOf(0x41, 0x80, 0x80, 0x80, 0x80, 0x80, 0, 0x1a), "code section at offset 0x1d: function 0 holds a number of more than 5 bytes"},
	{"no code", moduleOf(oneType, oneFunction), "module at offset 0x12: declares 1 functions and has the code of 0"},
	{"less code", moduleOf(oneType, section(3, bytesOf(2, 0, 0)), section(10, bytesOf(1, 2, 0, 0x0b))), "code section at offset 0x15: holds the code of 1 functions where 2 are declared"},
	{"no data", moduleOf(section(12, bytesOf(3))), "module at offset 0xb: counts 3 data segments and has none"},
	{"less data", moduleOf(section(12, bytesOf(3)), section(11, bytesOf(1, 0, 0x41, 0, 0x0b, 0))), "data section at offset 0xd: holds 1 segments where 3 were counted"},
	{"manifest twice", moduleOf(section(0, name("wp.manifest"), []byte("{}")), section(0, name("wp.manifest"))), "custom section at offset 0x26: is a second wp.manifest"},
	{"export twice", moduleOf(section(5, bytesOf(1, 0, 1)), section(7, num(2), name("memory"), bytesOf(2, 0), name("memory"), bytesOf(2, 0))), `export section at offset 0x19: holds "memory" twice`},

	// What does not exist, or belongs to the host.
	{"type of a function", moduleOf(oneType, section(3, bytesOf(1, 1))), "function section at offset 0x11: names type 1 of 1"},
	{"type of an import", moduleOf(oneType, section(2, bytesOf(1, 0, 0, 0, 7))), "import section at offset 0x14: names type 7 of 1"},
	{"kind of import", moduleOf(section(2, bytesOf(1, 0, 0, 4))), "import section at offset 0xe: imports something of unknown kind 4"},
	{"exported function", moduleOf(section(7, num(1), name("f"), bytesOf(0, 0))), "export section at offset 0xe: names function 0 of 0"},
	{"exported table", moduleOf(section(7, num(1), name("t"), bytesOf(1, 0))), "export section at offset 0xe: names table 0 of 0"},
	{"exported memory", moduleOf(section(5, bytesOf(1, 0, 1)), section(7, num(1), name("m"), bytesOf(2, 1))), "export section at offset 0x13: names memory 1 of 1"},
	{"exported global", moduleOf(section(7, num(1), name("g"), bytesOf(3, 0))), "export section at offset 0xe: names global 0 of 0"},
	{"kind of export", moduleOf(section(7, num(1), name("x"), bytesOf(4, 0))), "export section at offset 0xe: exports something of unknown kind 4"},
	{"the host's export", moduleOf(section(7, num(1), name("__wp_fuel"), bytesOf(3, 0))), `export section at offset 0xb: uses the name "__wp_fuel": names that begin with __wp_ belong to the host`},
	{"the host's import", moduleOf(oneType, section(2, num(1), name("wp1"), name("__wp_refuel"), bytesOf(0, 0))), `import section at offset 0x15: uses the name "__wp_refuel": names that begin with __wp_ belong to the host`},
	{"start function", moduleOf(section(8, bytesOf(0))), "start section at offset 0xa: names function 0 of 0"},
	{"type of the start function", moduleOf(section(1, bytesOf(1, 0x60, 1, 0x7f, 0)), oneFunction, section(8, bytesOf(0))), "start section at offset 0x15: names function 0, which takes (i32) instead of nothing"},
	{"element", moduleOf(section(9, bytesOf(1, 0, 0x41, 0, 0x0b, 1, 0))), "element section at offset 0x10: names function 0 of 0"},
	{"called function", codeOf(0x10, 1), "code section at offset 0x17: function 0 names function 1 of 1"},
	{"called type", codeOf(0x41, 0, 0x11, 1, 0), "code section at offset 0x19: function 0 names type 1 of 1"},
	{"called table", codeOf(0x41, 0, 0x11, 0, 1), "code section at offset 0x1c: function 0 calls through table 1, but there is only one"},
	{"local", functionOf(bytesOf(1, 2, 0x7f), bytesOf(0x20, 2, 0x1a, 0x0b)), "code section at offset 0x19: function 0 names local 2 of 2"},
	{"refilled by a set", codeOf(0x42, 0x7f, 0x24, 0), "code section at offset 0x19: function 0 names global 0 of 0"},
	{"global that is read", codeOf(0x23, 0, 0x1a), "code section at offset 0x17: function 0 names global 0 of 0"},
	{"label", codeOf(0x0c, 1), "code section at offset 0x17: function 0 names label 1 of 1"},
	{"label of a table", codeOf(0x41, 0, 0x0e, 1, 9, 0), "code section at offset 0x19: function 0 names label 9 of 1"},
	{"memory", codeOf(0x3f, 1, 0x1a), "code section at offset 0x19: function 0 uses memory 1, but there is only one"},
	{"else without if", codeOf(0x02, 0x40, 0x05, 0x0b), "code section at offset 0x19: function 0 has an else without an if"},
	{"second else", codeOf(0x41, 0, 0x04, 0x40, 0x05, 0x05, 0x0b), "code section at offset 0x1c: function 0 has an else without an if"},
	{"no end", functionOf(noLocals, bytesOf(0x01)), "code section at offset 0x18: function 0 ends too early"},
	{"code after the end", codeOf(0x0b), "code section at offset 0x18: function 0 goes on for 1 bytes after its end"},
	{"constant expression", moduleOf(section(6, bytesOf(1, 0x7f, 0, 0x3f, 0, 0x0b))), "global section at offset 0xd: holds memory.size in a constant expression"},
	{"long expression", moduleOf(section(6, bytesOf(1, 0x7f, 0, 0x41, 0, 0x41, 0, 0x0b))), "global section at offset 0xf: holds a constant expression of more than one instruction"},
	{"own global in an expression", moduleOf(section(6, bytesOf(1, 0x7f, 0, 0x23, 0, 0x0b))), "global section at offset 0xd: names global 0 of 0"},
	{"mutability", moduleOf(section(6, bytesOf(1, 0x7f, 2, 0x41, 0, 0x0b))), "global section at offset 0xc: holds a global of mutability 0x2"},
	{"memory limits", moduleOf(section(5, bytesOf(1, 1, 2, 1))), "memory section at offset 0xb: holds a memory of 2 pages that may have at most 1"},
	{"table limits", moduleOf(section(4, bytesOf(1, 0x70, 1, 2, 1))), "table section at offset 0xc: holds a table of 2 entries that may have at most 1"},

	// What is not supported.
	{"passive elements", moduleOf(section(9, bytesOf(1, 1, 0, 0))), "element section at offset 0xb: holds a passive segment; only active segments are supported: build without shared memory, reference types and wasm-opt's --memory-packing"},
	{"declarative elements", moduleOf(section(9, bytesOf(1, 3, 0, 0))), "element section at offset 0xb: holds a declarative segment; only active segments are supported: build without shared memory, reference types and wasm-opt's --memory-packing"},
	{"elements of expressions", moduleOf(section(9, bytesOf(1, 4), zeroOffset, noLocals)), "element section at offset 0xb: holds a segment of kind 4, whose entries are expressions; build with -mno-reference-types"},
	{"elements for another table", moduleOf(section(9, bytesOf(1, 2, 1), zeroOffset, bytesOf(0, 0))), "element section at offset 0xd: holds a segment for table 1, but there is only 0"},
	{"passive data", moduleOf(section(11, bytesOf(1, 1, 0))), "data section at offset 0xb: holds a passive segment; only active segments are supported: build without shared memory, reference types and wasm-opt's --memory-packing"},
	{"data for another memory", moduleOf(section(11, bytesOf(1, 2, 1), zeroOffset, noLocals)), "data section at offset 0xd: holds a segment for memory 1, but there is only 0"},
	{"kind of data", moduleOf(section(11, bytesOf(1, 3), zeroOffset, noLocals)), "data section at offset 0xb: holds a segment of unknown kind 3"},
	{"shared memory", moduleOf(section(5, bytesOf(1, 3, 1, 1))), "memory section at offset 0xb: holds limits of kind 0x3: shared and 64-bit ones are not supported"},
	{"table of externs", moduleOf(section(4, bytesOf(1, 0x6f, 0, 1))), "table section at offset 0xb: holds a table of type 0x6f, which is not of functions"},
	{"vector type", moduleOf(section(1, bytesOf(1, 0x60, 1, 0x7b, 0))), "type section at offset 0xd: holds value type 0x7b, which is none of i32, i64, f32 and f64"},
	{"structure", moduleOf(section(1, bytesOf(1, 0x5f, 0))), "type section at offset 0xb: holds a type of kind 0x5f, which is no function"},
	{"block of a type", codeOf(0x02, 0, 0x0b), "code section at offset 0x18: function 0 has a block of type 0x0: none and one of i32, i64, f32 and f64 are supported; build without multi-value and reference types"},
	{"memory.init", codeOf(0xfc, 8, 0, 0), refused("memory.init (bulk memory: segments)", segmentHint)},
	{"data.drop", codeOf(0xfc, 9, 0), refused("data.drop (bulk memory: segments)", segmentHint)},
	{"table.init", codeOf(0xfc, 12, 0, 0), refused("table.init (bulk memory: segments)", segmentHint)},
	{"elem.drop", codeOf(0xfc, 13, 0), refused("elem.drop (bulk memory: segments)", segmentHint)},
	{"table.copy", codeOf(0xfc, 14, 0, 0), refused("table.copy (bulk memory: tables)", "build without it")},
	{"table.grow", codeOf(0xfc, 15, 0), refused("table.grow (reference types)", "build with -mno-reference-types")},
	{"table.size", codeOf(0xfc, 16, 0), refused("table.size (reference types)", "build with -mno-reference-types")},
	{"table.fill", codeOf(0xfc, 17, 0), refused("table.fill (reference types)", "build with -mno-reference-types")},
	{"table.get", codeOf(0x25, 0), refused("table.get (reference types)", "build with -mno-reference-types")},
	{"table.set", codeOf(0x26, 0), refused("table.set (reference types)", "build with -mno-reference-types")},
	{"ref.func", codeOf(0xd2, 0), refused("ref.func (reference types)", "build with -mno-reference-types")},
	{"vector", codeOf(0xfd, 12), refused("a vector instruction (SIMD)", "build without -msimd128")},
	{"atomic", codeOf(0xfe, 0), refused("an atomic instruction (threads)", "build without -pthread and -matomics")},
	{"tail call", codeOf(0x12, 0), refused("return_call (tail calls)", "build with -mno-tail-call")},
	{"exception", codeOf(0x06, 0x40), refused("try (exceptions)", "build without -fwasm-exceptions")},
	{"no instruction", codeOf(0x27), "code section at offset 0x17: function 0 uses instruction 0x27, which does not exist"},
	{"no instruction of two bytes", codeOf(0xfc, 0x12), "code section at offset 0x17: function 0 uses instruction 0xfc12, which does not exist"},
	{"no instruction of many bytes", codeOf(0xfc, 0x80, 0x7f), "code section at offset 0x17: function 0 uses instruction 0xfcff, which does not exist"},
}

const segmentHint = "build without shared memory and wasm-opt's --memory-packing"

func refused(instruction, hint string) string {
	return "code section at offset 0x17: function 0 uses " + instruction + ", which is not supported; " + hint
}

func TestHostile(t *testing.T) {
	for _, tt := range hostile {
		t.Run(tt.name, func(t *testing.T) {
			var err error
			n := allocated(func() { _, err = Scan(tt.module) })
			if err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
			if limit := allowance(tt.module); n > limit {
				t.Errorf("%d bytes made the scan allocate %d, want at most %d", len(tt.module), n, limit)
			}
		})
	}
}

// TestAllowed shows what is just allowed.
func TestAllowed(t *testing.T) {
	for name, module := range map[string][]byte{
		"nothing":             moduleOf(),
		"deep nesting":        functionOf(noLocals, join(repeat(1_024, 0x02, 0x40), repeat(1_025, 0x0b))),
		"many locals":         functionOf(join(num(1), num(2_000), bytesOf(0x7f)), []byte{0x0b}),
		"blocks times locals": functionOf(join(num(1), num(500), bytesOf(0x7f)), join(repeat(680, 0x41, 0, 0x04, 0x40, 0x0b), []byte{0x0b})),
		"long body":           functionOf(noLocals, join(repeat(maxBody-2, 1), []byte{0x0b})),
		"many sections":       moduleOf(repeat(64, 0, 1, 0)),
		"long table index":    functionOf(noLocals, bytesOf(0x41, 0, 0x11, 0, 0x80, 0x80, 0x80, 0x80, 0, 0x0b)),
		"memory.copy":         codeOf(0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 10, 0, 0),
		"memory.fill":         codeOf(0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 11, 0),
		"if and else":         codeOf(0x41, 0, 0x04, 0x40, 0x05, 0x0b),
		"jump table":          codeOf(0x02, 0x40, 0x41, 0, 0x0e, 2, 0, 1, 1, 0x0b),
	} {
		if _, err := Scan(module); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestErrorFields shows what a program can read of a refusal.
func TestErrorFields(t *testing.T) {
	module := moduleOf(oneType, section(2, num(1), name("wp1"), name("now"), bytesOf(0, 0)), section(3, bytesOf(2, 0, 0)), section(10, bytesOf(2, 2, 0, 0x0b, 4, 0, 0xfc, 9, 0)))
	_, err := Scan(module)
	e, ok := err.(*Error)
	if !ok || e.Section != "code" || e.Function != 2 || module[e.Offset] != 0xfc || !strings.Contains(e.Reason, "data.drop") {
		t.Errorf("got %#v", err)
	}
}

// TestConstant reads versions without running anything.
func TestConstant(t *testing.T) {
	for want, body := range map[int32]string{0: "\x41\x00\x0b", 1 << 16: "\x41\x80\x80\x04\x0b", -1: "\x41\x7f\x0b", -128: "\x41\x80\x7f\x0b", 1<<31 - 1: "\x41\xff\xff\xff\xff\x07\x0b", -1 << 31: "\x41\x80\x80\x80\x80\x78\x0b"} {
		if got := constant([]byte(body)); got == nil || *got != want {
			t.Errorf("constant(%x) = %v, want %d", body, got, want)
		}
	}
	for _, body := range []string{"", "\x41", "\x41\x80", "\x41\x00", "\x41\x00\x1a", "\x20\x00\x0b", "\x41\x00\x0b\x0b"} {
		if got := constant([]byte(body)); got != nil {
			t.Errorf("constant(%x) = %d, want nothing", body, *got)
		}
	}
}
