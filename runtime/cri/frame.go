package cri

import (
	"fmt"
	"runtime"
	"slices"

	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// A Frame is one gRPC message as the bytes it had on the wire, without the
// five-byte prefix and uncompressed. Once filled it never changes, so it may be
// read and sent from several goroutines and more than once. The zero Frame is
// the empty message.
type Frame struct {
	data  mem.BufferSlice
	freed func() // see WhenFreed; may be nil
}

// NewFrame returns the frame that carries m. It keeps no reference to m.
// Unknown fields of m are encoded too, at the end of the message that has them.
func NewFrame(m proto.Message) (*Frame, error) {
	b, err := proto.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", m.ProtoReflect().Descriptor().FullName(), err)
	}
	return &Frame{data: mem.BufferSlice{mem.SliceBuffer(b)}}, nil
}

// Decode resets m and parses the frame into it. Fields that m does not know are
// kept in m. The frame stays as it was and can still be sent: what then goes on
// is the original bytes, not m. m shares no memory with the frame.
func (f *Frame) Decode(m proto.Message) error {
	b := f.data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer b.Free()
	if err := proto.Unmarshal(b.ReadOnlyData(), m); err != nil {
		return fmt.Errorf("decoding %s: %w", m.ProtoReflect().Descriptor().FullName(), err)
	}
	return nil
}

// Bytes returns a copy of the message.
func (f *Frame) Bytes() []byte { return f.data.Materialize() }

// Len returns the size of the message in bytes.
func (f *Frame) Len() int { return f.data.Len() }

// Free empties the frame and gives its memory back for reuse. Only who received
// the frame and has shown it to nobody else may call it. It need not be called:
// the memory of a frame that is not freed is left to the garbage collector.
func (f *Frame) Free() {
	f.data.Free()
	f.data = nil
}

// WhenFreed returns a frame with the same bytes, to be sent once. freed is called
// when gRPC has freed them: they have left the process, or their stream has ended. What
// gRPC drops instead, as it does with a message whose stream was reset just before, is
// noticed when the garbage collector finds it, on a goroutine of its own.
func (f *Frame) WhenFreed(freed func()) *Frame { return &Frame{data: f.data, freed: freed} }

// notice is the pool that one buffer goes back to.
type notice struct {
	buffer  mem.Buffer
	freed   func()
	dropped runtime.Cleanup
}

// Get is part of mem.BufferPool.
func (n *notice) Get(length int) *[]byte { return mem.DefaultBufferPool().Get(length) }

// Put frees the buffer whose bytes they are.
func (n *notice) Put(*[]byte) {
	n.dropped.Stop()
	n.buffer.Free()
	n.freed()
}

// Codec carries a *Frame as it is, and every other message as protobuf, so that
// one connection serves both frames and generated clients.
type Codec struct{}

var _ encoding.CodecV2 = Codec{}

// Name is empty: gRPC appends a codec's name to the content type of a call, and
// CRI-O accepts calls whose content type is exactly "application/grpc".
func (Codec) Name() string { return "" }

// Marshal returns the frame's own buffers, with a reference taken for the
// caller to free.
func (Codec) Marshal(v any) (mem.BufferSlice, error) {
	f, ok := v.(*Frame)
	if !ok {
		return parent().Marshal(v)
	}
	f.data.Ref()
	if f.freed == nil {
		return f.data, nil
	}
	data := slices.Clone(f.data)
	for i, b := range slices.Backward(data) { // the last one that gRPC frees at all calls freed
		if bytes := b.ReadOnlyData(); !mem.IsBelowBufferPoolingThreshold(cap(bytes)) {
			n := &notice{buffer: b, freed: f.freed}
			n.dropped = runtime.AddCleanup(n, func(freed func()) { freed() }, f.freed)
			data[i] = mem.NewBuffer(&bytes, n)
			return data, nil
		}
	}
	f.freed() // all are so small that gRPC leaves them to the garbage collector
	return data, nil
}

// Unmarshal makes v, a *Frame, hold on to the buffers without copying them.
func (Codec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*Frame)
	if !ok {
		return parent().Unmarshal(data, v)
	}
	data.Ref()
	f.data = data
	return nil
}

// parent is gRPC's own protobuf codec.
func parent() encoding.CodecV2 { return encoding.GetCodecV2(protocodec.Name) }
