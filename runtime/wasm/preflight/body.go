package preflight

import (
	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/wasm/binary"
)

func (s *scanner) readCode(r *binary.Reader) {
	at, n := r.Offset(), r.Count("functions", maxFunctions)
	if own := len(s.functions) - s.Imported.Functions; own != n && r.Err() == nil {
		r.FailAt(at, "holds the code of %d functions where %d are declared", n, own)
	}
	s.bodies = n
	b := &body{scanner: s, mutable: len(s.Mutable())}
	for i := 0; i < n && r.Err() == nil; i++ {
		s.function = s.Imported.Functions + i
		b.read(r)
	}
	if r.Err() == nil {
		s.function = -1
	}
}

// body is the code of one function. One serves all functions in turn.
type body struct {
	*scanner
	mutable int // globals of the module
	locals  int // parameters included
	jumps   int
	exits   int    // instructions at which it may end with a trap
	own     int    // work of this function
	work    int    // of all functions so far
	open    []bool // the blocks that are open; true if it may have an else
}

// read reads the body of b.function.
func (b *body) read(r *binary.Reader) {
	at, inner := r.Offset(), r.Sub()
	if inner.Len() > maxBody {
		r.FailAt(at, "has %d bytes of code, the limit is %d", inner.Len(), maxBody)
		return
	}
	params, _ := b.Type(b.functions[b.function])
	b.locals = len(params)
	for range inner.Count("groups of locals", maxLocals) {
		at := inner.Offset()
		if n := inner.U32(); uint64(b.locals)+uint64(n) > maxLocals {
			inner.FailAt(at, "has more than %d locals", maxLocals)
		} else {
			b.locals += int(n)
		}
		valueType(&inner)
	}
	if e, ok := b.Export(abi.ExportABI); ok && e.Index == uint32(b.function) {
		b.ABI = constant(inner.Rest())
	}
	b.readInstructions(&inner)
	inner.End()
	if inner.Err() != nil {
		r.FailAt(inner.ErrOffset(), "%w", inner.Err())
		return
	}
	b.own += b.jumps * b.jumps / jumpsUnit
	b.work += b.own
	switch {
	case b.own > maxFunctionWork:
		r.FailAt(at, "takes too long to compile: %d units of work, the limit is %d (it has %d locals and %d jumps); split it", b.own, maxFunctionWork, b.locals, b.jumps)
	case b.work > maxWork:
		r.FailAt(at, "and those before it take too long to compile: %d units of work, the limit is %d; leave something out", b.work, maxWork)
	}
}

// readInstructions reads up to the end that closes the function, and holds what the
// instructions name to what there is. What is added to the module later, the metering's own
// globals above all, comes behind.
func (b *body) readInstructions(r *binary.Reader) {
	b.jumps, b.exits, b.own, b.open = 0, 0, functionWork+b.mutable/globalsUnit, b.open[:0]
	for r.Err() == nil {
		in := r.Instruction()
		if r.Err() != nil {
			return
		}
		switch in.Op {
		case binary.Block, binary.Loop, binary.If:
			b.open = append(b.open, in.Op == binary.If)
			if len(b.open) > maxDepth {
				r.FailAt(in.Offset, "nests more than %d blocks; split it", maxDepth)
			}
		case binary.Else:
			if last := len(b.open) - 1; last < 0 || !b.open[last] {
				r.FailAt(in.Offset, "has an else without an if")
			} else {
				b.open[last] = false
			}
		case binary.End:
			if len(b.open) == 0 {
				return
			}
			b.open = b.open[:len(b.open)-1]
		case binary.Br, binary.BrIf, binary.BrTable:
			within(r, in.Offset, "label", in.Index, len(b.open)+1)
		case binary.Call:
			within(r, in.Offset, "function", in.Index, len(b.functions))
		case binary.CallIndirect:
			within(r, in.Offset, "type", in.Index, len(b.types))
		case binary.LocalGet, binary.LocalSet, binary.LocalTee:
			within(r, in.Offset, "local", in.Index, b.locals)
		case binary.GlobalGet, binary.GlobalSet:
			within(r, in.Offset, "global", in.Index, b.AllGlobals())
		}
		if r.Err() == nil {
			b.weigh(in)
		}
	}
}

// constant returns the number that a body of "i32.const n" and "end" returns.
func constant(code []byte) *int32 {
	r := binary.NewReader(code, 0)
	push, end := r.Instruction(), r.Instruction()
	if r.Err() != nil || r.Len() > 0 {
		return nil
	}
	if push.Op != binary.I32Const || end.Op != binary.End {
		return nil
	}
	digits, v := push.Raw[1:], int32(0)
	for i, b := range digits {
		v |= int32(b&0x7f) << (7 * i)
	}
	if bits := 7 * len(digits); bits < 32 && digits[len(digits)-1]&0x40 != 0 {
		v |= -1 << bits
	}
	return &v
}
