package proxy

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"

	"google.golang.org/grpc"

	"github.com/wasmproxy/wasmproxy/runtime/cri"
)

// tooLarge takes the place of a compressed message that is too large: gRPC makes
// Internal of every error of a decompressor, and the code has to be ResourceExhausted.
// No message of protobuf begins with a zero.
const tooLarge = "\x00wasmproxy: the compressed message is too large"

// gunzip decompresses the messages of callers that compress. It bounds them before
// it takes memory for them.
type gunzip struct{}

func (gunzip) Type() string { return "gzip" }

func (gunzip) Do(r io.Reader) ([]byte, error) {
	packed, err := io.ReadAll(io.LimitReader(r, maxCompressed+1))
	if err != nil {
		return nil, err
	}
	var size int64
	if len(packed) <= maxCompressed {
		if size, err = unpack(io.Discard, packed); err != nil {
			return nil, err
		}
	}
	if len(packed) > maxCompressed || size > maxCompressed {
		return []byte(tooLarge), nil
	}
	b := bytes.NewBuffer(make([]byte, 0, size))
	_, err = unpack(b, packed)
	return b.Bytes(), err
}

// unpack writes at most one byte more than a message may have.
func unpack(to io.Writer, packed []byte) (int64, error) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return 0, err
	}
	return io.Copy(to, io.LimitReader(z, maxCompressed+1))
}

// awaitCompressed waits until there is room for the messages of a call that are
// compressed, if they are. release is to be called when the call has ended.
func awaitCompressed(ctx context.Context) (release func(), err error) {
	stream, ok := grpc.ServerTransportStreamFromContext(ctx).(interface{ RecvCompress() string })
	if !ok || stream.RecvCompress() != (gunzip{}).Type() {
		return func() {}, nil
	}
	s := callerOf(ctx).compressed
	if err := room(ctx, s, maxCompressed); err != nil {
		return nil, err
	}
	return func() { s.give(maxCompressed) }, nil
}

// receive receives one message of the caller's.
func receive(down grpc.ServerStream, f *cri.Frame) error {
	if err := down.RecvMsg(f); err != nil {
		return err
	}
	if f.Len() != len(tooLarge) {
		return nil
	}
	data, err := cri.Codec{}.Marshal(f)
	if err == nil && string(data.Materialize()) == tooLarge {
		err = errTooLarge
	}
	data.Free()
	return err
}
