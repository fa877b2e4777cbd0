package wasm

// This file holds the host functions by which a guest reads. All but get_i64,
// pod_find and now return the length of what was asked for, whether or not it
// fitted into the guest's buffer; nothing is written if it did not.

import (
	"context"
	"encoding/binary"
	"iter"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// denied is DENIED if the plugin may not read the field, else errno.
func (c *call) denied(o abi.Object, f abi.Field, errno abi.Errno) abi.Errno {
	if !plugin.Readable(c.event, o, f, c.of.has) {
		return abi.Denied
	}
	return errno
}

func get(_ context.Context, f *frame) int64 {
	o := f.readable(0)
	v, errno := f.event.Text(o, f.field(1))
	return answer(f, 2, v, f.denied(o, f.field(1), errno))
}

func getInt64(_ context.Context, f *frame) int64 {
	out := f.region(uint32(f.stack[2]), 8)
	o := f.readable(0)
	v, errno := f.event.Int64(o, f.field(1))
	errno = f.denied(o, f.field(1), errno)
	if errno == abi.OK {
		binary.LittleEndian.PutUint64(out, uint64(v))
	}
	return int64(errno)
}

func mapGet(_ context.Context, f *frame) int64 {
	key, errno := f.borrowed(2)
	if errno != abi.OK {
		return int64(errno)
	}
	o, v := f.readable(0), ""
	if errno = f.denied(o, f.field(1), abi.OK); errno == abi.OK {
		v, errno = f.event.Lookup(o, f.field(1), key)
	}
	return answer(f, 4, v, errno)
}

// mapDump writes a whole map as abi.AppendEntries does. The order is that of the
// request where it has one (env, which may repeat a name), else by key.
func mapDump(_ context.Context, f *frame) int64 {
	o := f.readable(0)
	errno := f.denied(o, f.field(1), abi.OK)
	var entries iter.Seq2[string, string]
	if errno == abi.OK {
		entries, errno = f.event.Entries(o, f.field(1))
	}
	if errno == abi.OK {
		f.scratch = abi.AppendEntries(f.scratch[:0], entries)
		f.elements(int(binary.LittleEndian.Uint32(f.scratch)))
	}
	return answer(f, 2, f.scratch, errno)
}

// listDump writes a whole list or set as abi.AppendList does.
func listDump(ctx context.Context, f *frame) int64 {
	o := f.readable(0)
	errno := f.denied(o, f.field(1), abi.OK)
	var list []string
	if errno == abi.OK {
		list, errno = f.event.List(ctx, o, f.field(1))
	}
	if errno == abi.OK {
		f.scratch = abi.AppendList(f.scratch[:0], list)
		f.elements(len(list))
	}
	return answer(f, 2, f.scratch, errno)
}

// elements makes the guest pay for the entries or elements that a host function went through.
func (c *call) elements(n int) { c.work += n * elementFuel }

func criRaw(_ context.Context, f *frame) int64 {
	f.work += fileFuel // of a large request there may be little that the plugin may see
	raw, errno := f.event.Raw(f.of.has)
	return answer(f, 0, raw, errno)
}

func cgroupGet(ctx context.Context, f *frame, file string) int64 {
	f.work += fileFuel
	v, errno := plugin.ReadFile(ctx, f.event, f.readable(0), file)
	return answer(f, 3, v, errno)
}

func podFind(_ context.Context, f *frame, name string) int64 {
	handle, errno := f.event.Find(f.i32(0), name, f.adj.ReadBounds())
	if errno != abi.OK {
		return int64(errno)
	}
	return int64(handle)
}

// podList writes the handles of a namespace's pods as containerList does.
func podList(_ context.Context, f *frame, namespace string) int64 {
	pods, through, errno := f.event.Pods(namespace, f.adj.ReadBounds())
	f.elements(through)
	return f.handles(2, pods, errno)
}

// containerList writes the handles of a pod's containers, 32 bits each, little
// endian. The length that it returns is in bytes.
func containerList(_ context.Context, f *frame) int64 {
	containers, through, errno := f.event.Containers(f.readable(0), f.adj.ReadBounds())
	f.elements(through)
	return f.handles(1, containers, errno)
}

func (f *frame) handles(i int, list []abi.Object, errno abi.Errno) int64 {
	f.scratch = f.scratch[:0]
	for _, h := range list {
		f.scratch = binary.LittleEndian.AppendUint32(f.scratch, uint32(h))
	}
	return answer(f, i, f.scratch, errno)
}

func config(_ context.Context, f *frame) int64 { return answer(f, 0, f.of.options.Config, abi.OK) }

// now returns the event's time in nanoseconds since the Unix epoch, or 0 if
// there is no event yet. It stands still during a call.
func now(_ context.Context, f *frame) int64 { return f.time.UnixNano() }
