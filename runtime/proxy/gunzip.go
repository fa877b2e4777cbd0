package proxy

import (
	"bytes"
	"compress/gzip"
	"io"
	"sync"

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

// packed is a call whose messages are compressed. Its caller's share has room for the
// largest while one is awaited, and for what it takes until the next or the call's end:
// a call that lasts, such as an image pull, keeps nobody waiting.
type packed struct {
	grpc.ServerStream
	share *share

	mu   sync.Mutex
	held int64 // guarded by mu
	over bool  // guarded by mu
}

// RecvMsg receives one message, a *cri.Frame, once there is room for it. The message
// before has gone on by then; who waits holds nothing.
func (p *packed) RecvMsg(m any) error {
	p.keep(0)
	if err := room(p.Context(), p.share, maxCompressed); err != nil {
		return err
	}
	p.mu.Lock()
	if p.held = maxCompressed; p.over {
		p.share.give(p.held)
		p.held = 0
	}
	p.mu.Unlock()

	err := p.ServerStream.RecvMsg(m)
	var size int64
	if f, ok := m.(*cri.Frame); ok && err == nil && f.Len() > small {
		size = int64(f.Len())
	}
	p.keep(size)
	return err
}

// keep gives back all but n of the bytes that are held.
func (p *packed) keep(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held > n {
		p.share.give(p.held - n)
		p.held = n
	}
}

// end is to be called when the call has ended.
func (p *packed) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.share.give(p.held)
	p.held, p.over = 0, true
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
