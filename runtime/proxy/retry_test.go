package proxy_test

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/wasmproxy/wasmproxy/runtime/proxy"
)

// goneAway answers every call on a connection with an error, twice, and says in the same
// breath that it has processed none of them.
func goneAway(conn net.Conn) {
	defer conn.Close()
	frame := func(kind, flags byte, stream uint32, payload string) []byte {
		b := append([]byte{0, 0, byte(len(payload)), kind, flags}, binary.BigEndian.AppendUint32(nil, stream)...)
		return append(b, payload...)
	}
	const preface, settings, headers, goAway = 24, 4, 1, 7
	if _, err := io.CopyN(io.Discard, conn, preface); err != nil {
		return
	}
	conn.Write(frame(settings, 0, 0, ""))
	for {
		var head [9]byte
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return
		}
		length := int64(head[0])<<16 | int64(head[1])<<8 | int64(head[2])
		if _, err := io.CopyN(io.Discard, conn, length); err != nil {
			return
		}
		if head[3] == headers {
			answer := "\x88\x5f\x10application/grpc\x40\x0bgrpc-status\x0214"
			trailer := frame(headers, 5, binary.BigEndian.Uint32(head[5:]), answer)
			conn.Write(append(append(trailer, trailer...), frame(goAway, 0, 0, "\x00\x00\x00\x00\x00\x00\x00\x00")...))
		}
	}
}

// gRPC makes a call again by itself that the backend has not processed. A backend that
// answered it all the same must not take the proxy down.
func TestCallThatIsMadeAgain(t *testing.T) {
	backend := socketPath(t)
	l, err := net.Listen("unix", backend)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go goneAway(conn)
		}
	}()
	for range 300 {
		up, err := proxy.Dial("unix://" + backend)
		if err != nil {
			t.Fatal(err)
		}
		path, stop := startProxy(t, proxy.Options{Backend: up})
		conn := connect(t, path)
		if _, err := invoke(withTimeout(t, time.Minute), conn, version, nil); status.Code(err) != codes.Unavailable {
			t.Fatalf("the call ended with %v", err)
		}
		conn.Close()
		stop()
		up.Close()
	}
}
