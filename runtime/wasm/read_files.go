package wasm

import (
	"bytes"
	"context"
	"encoding/binary"
	"strconv"

	"github.com/wasmproxy/wasmproxy/abi"
)

// Bounds of one cgroup_read: how many files it reads, and the bytes of its answer.
const (
	maxReads     = 1024
	maxReadBytes = 1 << 20
)

// unread is an answer of cgroup_read that did not fit into the guest's buffer. The guest asks
// again with a larger one and gets the same: statistics would have another length by then, and
// reading takes long.
type unread struct{ objects, files, answer []byte }

// cgroupRead writes the files of some objects as abi.AppendEntries does: of each object each
// file. The key is empty, or the number of the error.
func cgroupRead(ctx context.Context, f *frame) int64 {
	objects, files, buf := f.bytes(0), f.bytes(2), f.bytes(4)
	if len(objects) > maxArgument || len(files) > maxArgument {
		return int64(abi.TooLarge)
	}
	f.moved += len(objects) + len(files)
	again := f.unread
	f.unread = unread{}
	if again.answer == nil || !bytes.Equal(again.objects, objects) || !bytes.Equal(again.files, files) {
		answer, errno := f.readAll(ctx, objects, files)
		if errno != abi.OK {
			return int64(errno)
		}
		again.answer = answer
	}
	if len(again.answer) > len(buf) {
		f.unread = unread{bytes.Clone(objects), bytes.Clone(files), again.answer}
	}
	return answer(f, 4, again.answer, abi.OK)
}

// readAll pays for the files of each object once they are read: its guest ends at the limits
// of one that reads them by themselves.
func (f *frame) readAll(ctx context.Context, objects, list []byte) ([]byte, abi.Errno) {
	var files []string
	valid := abi.EachElement(list, func(file []byte) bool {
		files = append(files, string(file))
		return len(files) <= maxReads
	})
	switch {
	case len(objects)/4*len(files) > maxReads || len(files) > maxReads:
		return nil, abi.TooLarge
	case !valid, len(objects) == 0, len(objects)%4 != 0, len(files) == 0:
		return nil, abi.Invalid
	}
	handles := bytes.Clone(objects) // the guest's memory is not ours when it is charged
	answer := binary.LittleEndian.AppendUint32(nil, uint32(len(handles)/4*len(files)))
	for ; len(handles) > 0; handles = handles[4:] {
		o := f.found(abi.Object(int32(binary.LittleEndian.Uint32(handles))))
		f.event.ReadFiles(ctx, o, files, func(text string, errno abi.Errno) {
			key := ""
			if errno != abi.OK {
				key, text = strconv.Itoa(int(errno)), ""
			}
			answer = abi.AppendText(abi.AppendText(answer, key), text)
		})
		f.work += len(files) * fileFuel
		f.charge(ctx)
		if len(answer) > maxReadBytes {
			return nil, abi.TooLarge
		}
	}
	return answer, abi.OK
}
