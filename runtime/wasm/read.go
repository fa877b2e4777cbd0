package wasm

// This file holds the host functions by which a guest reads. All but get_i64,
// pod_find and now return the length of what was asked for, whether or not it
// fitted into the guest's buffer; nothing is written if it did not.

import (
	"encoding/binary"
	"iter"

	"github.com/wasmproxy/wasmproxy/abi"
)

func get(f frame) int64 {
	v, errno := f.event.Text(f.object(0), f.field(1))
	return answer(f, 2, v, errno)
}

func getInt64(f frame) int64 {
	out := f.region(uint32(f.stack[2]), 8)
	v, errno := f.event.Int64(f.object(0), f.field(1))
	if errno == abi.OK {
		binary.LittleEndian.PutUint64(out, uint64(v))
	}
	return int64(errno)
}

func mapGet(f frame) int64 {
	key, errno := f.text(2)
	if errno != abi.OK {
		return int64(errno)
	}
	v, errno := f.event.Lookup(f.object(0), f.field(1), key)
	return answer(f, 4, v, errno)
}

// mapDump writes a whole map: the number of entries, then for each entry the
// length of the key, the key, the length of the value and the value. Numbers are
// unsigned, of 32 bits, little endian, and not aligned. The order is that of the
// request where it has one (env, which may repeat a name), else by key.
func mapDump(f frame) int64 {
	entries, errno := f.event.Entries(f.object(0), f.field(1))
	if errno == abi.OK {
		f.scratch = appendEntries(f.scratch[:0], entries)
	}
	return answer(f, 2, f.scratch, errno)
}

func appendEntries(b []byte, entries iter.Seq2[string, string]) []byte {
	b = append(b, 0, 0, 0, 0)
	n := uint32(0)
	for key, value := range entries {
		b = appendText(appendText(b, key), value)
		n++
	}
	binary.LittleEndian.PutUint32(b, n)
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(s))), s...)
}

func podFind(f frame) int64 {
	name, errno := f.text(1)
	if errno != abi.OK {
		return int64(errno)
	}
	handle, errno := f.event.Find(f.i32(0), name)
	if errno != abi.OK {
		return int64(errno)
	}
	return int64(handle)
}

// containerList writes the handles of a pod's containers, 32 bits each, little
// endian. The length that it returns is in bytes.
func containerList(f frame) int64 {
	handles, errno := f.event.Containers(f.object(0))
	f.scratch = f.scratch[:0]
	for _, h := range handles {
		f.scratch = binary.LittleEndian.AppendUint32(f.scratch, uint32(h))
	}
	return answer(f, 1, f.scratch, errno)
}

func config(f frame) int64 { return answer(f, 0, f.config, abi.OK) }

// now returns the event's time in nanoseconds since the Unix epoch, or 0 if
// there is no event yet. It stands still during a call.
func now(f frame) int64 { return f.time.UnixNano() }
