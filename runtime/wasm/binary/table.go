package binary

import "strings"

// run describes instructions of successive numbers that are alike.
type run struct {
	first     Opcode
	immediate immediate
	refused   *feature // nil if guests may use them
	change    int8     // see Opcode.Change
	names     string   // in the text format, separated by ", "
}

// instructions are all that there are, those that guests may not use for the sake of messages.
var instructions = tableOf([]run{
	{first: 0x00, names: "unreachable, nop"},
	{first: 0x02, immediate: immBlock, names: "block, loop, if"},
	{first: 0x05, names: "else"},
	{first: 0x06, refused: exceptions, names: "try, catch, throw, rethrow, throw_ref"},
	{first: 0x0b, names: "end"},
	{first: 0x0c, immediate: immIndex, names: "br, br_if"},
	{first: 0x0e, immediate: immLabels, names: "br_table"},
	{first: 0x0f, names: "return"},
	{first: 0x10, immediate: immIndex, names: "call"},
	{first: 0x11, immediate: immIndirect, names: "call_indirect"},
	{first: 0x12, refused: tailCalls, names: "return_call, return_call_indirect"},
	{first: 0x14, refused: functionReferences, names: "call_ref, return_call_ref"},
	{first: 0x18, refused: exceptions, names: "delegate, catch_all"},
	{first: 0x1a, change: -1, names: "drop"},
	{first: 0x1b, change: -2, names: "select"},
	{first: 0x1c, refused: referenceTypes, names: "select t"},
	{first: 0x1f, refused: exceptions, names: "try_table"},
	{first: 0x20, immediate: immIndex, change: 1, names: "local.get"},
	{first: 0x21, immediate: immIndex, change: -1, names: "local.set"},
	{first: 0x22, immediate: immIndex, names: "local.tee"},
	{first: 0x23, immediate: immIndex, change: 1, names: "global.get"},
	{first: 0x24, immediate: immIndex, change: -1, names: "global.set"},
	{first: 0x25, refused: referenceTypes, names: "table.get, table.set"},
	{first: 0x28, immediate: immAddress, names: "i32.load, i64.load, f32.load, f64.load, i32.load8_s, " +
		"i32.load8_u, i32.load16_s, i32.load16_u, i64.load8_s, i64.load8_u, i64.load16_s, i64.load16_u, " +
		"i64.load32_s, i64.load32_u"},
	{first: 0x36, immediate: immAddress, change: -2, names: "i32.store, i64.store, f32.store, f64.store, " +
		"i32.store8, i32.store16, i64.store8, i64.store16, i64.store32"},
	{first: 0x3f, immediate: immMemory, change: 1, names: "memory.size"},
	{first: 0x40, immediate: immMemory, names: "memory.grow"},
	{first: 0x41, immediate: immI32, change: 1, names: "i32.const"},
	{first: 0x42, immediate: immI64, change: 1, names: "i64.const"},
	{first: 0x43, immediate: immF32, change: 1, names: "f32.const"},
	{first: 0x44, immediate: immF64, change: 1, names: "f64.const"},
	{first: 0x45, names: "i32.eqz"},
	{first: 0x46, change: -1, names: "i32.eq, i32.ne, i32.lt_s, i32.lt_u, i32.gt_s, i32.gt_u, i32.le_s, " +
		"i32.le_u, i32.ge_s, i32.ge_u"},
	{first: 0x50, names: "i64.eqz"},
	{first: 0x51, change: -1, names: "i64.eq, i64.ne, i64.lt_s, i64.lt_u, i64.gt_s, i64.gt_u, i64.le_s, " +
		"i64.le_u, i64.ge_s, i64.ge_u, f32.eq, f32.ne, f32.lt, f32.gt, f32.le, f32.ge, f64.eq, f64.ne, f64.lt, " +
		"f64.gt, f64.le, f64.ge"},
	{first: 0x67, names: "i32.clz, i32.ctz, i32.popcnt"},
	{first: 0x6a, change: -1, names: "i32.add, i32.sub, i32.mul, i32.div_s, i32.div_u, i32.rem_s, i32.rem_u, " +
		"i32.and, i32.or, i32.xor, i32.shl, i32.shr_s, i32.shr_u, i32.rotl, i32.rotr"},
	{first: 0x79, names: "i64.clz, i64.ctz, i64.popcnt"},
	{first: 0x7c, change: -1, names: "i64.add, i64.sub, i64.mul, i64.div_s, i64.div_u, i64.rem_s, i64.rem_u, " +
		"i64.and, i64.or, i64.xor, i64.shl, i64.shr_s, i64.shr_u, i64.rotl, i64.rotr"},
	{first: 0x8b, names: "f32.abs, f32.neg, f32.ceil, f32.floor, f32.trunc, f32.nearest, f32.sqrt"},
	{first: 0x92, change: -1, names: "f32.add, f32.sub, f32.mul, f32.div, f32.min, f32.max, f32.copysign"},
	{first: 0x99, names: "f64.abs, f64.neg, f64.ceil, f64.floor, f64.trunc, f64.nearest, f64.sqrt"},
	{first: 0xa0, change: -1, names: "f64.add, f64.sub, f64.mul, f64.div, f64.min, f64.max, f64.copysign"},
	{first: 0xa7, names: "i32.wrap_i64, i32.trunc_f32_s, i32.trunc_f32_u, i32.trunc_f64_s, i32.trunc_f64_u, " +
		"i64.extend_i32_s, i64.extend_i32_u, i64.trunc_f32_s, i64.trunc_f32_u, i64.trunc_f64_s, i64.trunc_f64_u, " +
		"f32.convert_i32_s, f32.convert_i32_u, f32.convert_i64_s, f32.convert_i64_u, f32.demote_f64, " +
		"f64.convert_i32_s, f64.convert_i32_u, f64.convert_i64_s, f64.convert_i64_u, f64.promote_f32, " +
		"i32.reinterpret_f32, i64.reinterpret_f64, f32.reinterpret_i32, f64.reinterpret_i64, i32.extend8_s, " +
		"i32.extend16_s, i64.extend8_s, i64.extend16_s, i64.extend32_s"},
	{first: 0xd0, refused: referenceTypes, names: "ref.null, ref.is_null, ref.func"},
	{first: 0xd3, refused: functionReferences, names: "ref.eq, ref.as_non_null, br_on_null, br_on_non_null"},
	{first: 0xfb, refused: garbageCollection, names: "an instruction of garbage collection"},
	{first: 0xfd, refused: simd, names: "a vector instruction"},
	{first: 0xfe, refused: threads, names: "an atomic instruction"},
	{first: 0xfc00, names: "i32.trunc_sat_f32_s, i32.trunc_sat_f32_u, i32.trunc_sat_f64_s, i32.trunc_sat_f64_u, " +
		"i64.trunc_sat_f32_s, i64.trunc_sat_f32_u, i64.trunc_sat_f64_s, i64.trunc_sat_f64_u"},
	{first: 0xfc08, refused: segments, names: "memory.init, data.drop"},
	{first: 0xfc0a, immediate: immMemories, change: -3, names: "memory.copy"},
	{first: 0xfc0b, immediate: immMemory, change: -3, names: "memory.fill"},
	{first: 0xfc0c, refused: segments, names: "table.init, elem.drop"},
	{first: 0xfc0e, refused: tables, names: "table.copy"},
	{first: 0xfc0f, refused: referenceTypes, names: "table.grow, table.size, table.fill"},
})

// table holds the rows of instructions of one byte, then of those that follow prefixMisc.
type table [2][256]row

func tableOf(runs []run) *table {
	t := &table{}
	for _, r := range runs {
		for n, name := range strings.Split(r.names, ", ") {
			*t.row(r.first + Opcode(n)) = row{name, r.immediate, r.refused, r.change}
		}
	}
	return t
}

func (t *table) row(op Opcode) *row {
	if op>>8 == prefixMisc {
		return &t[1][op&0xff]
	}
	return &t[0][op&0xff]
}
