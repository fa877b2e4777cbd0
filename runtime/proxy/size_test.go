package proxy_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
)

// noise returns n bytes that repeat nowhere.
func noise(n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{}).Read(b)
	return b
}

func TestLargeMessages(t *testing.T) {
	everyWay(t, echo, func(t *testing.T, conn *grpc.ClientConn, method string) {
		for _, size := range []int{0, 1, 5 << 20, 16 << 20, 60 << 20} {
			want := noise(size)
			got, err := invoke(withTimeout(t, time.Minute), conn, method, want)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes came back as %d other ones, %v", size, len(got), err)
			}
		}
	})
}

// TestSlowReader: a caller that does not read holds the backend back, and then
// gets every message in order.
func TestSlowReader(t *testing.T) {
	const messages, size = 10_000, 4 << 10
	var sent atomic.Int64
	conn := through(t, func(_ string, stream grpc.ServerStream) error {
		for i := range messages {
			if err := sendAll(stream, numbered(i, size)); err != nil {
				return err
			}
			sent.Add(1)
		}
		return nil
	})
	stream := open(t, withTimeout(t, 5*time.Minute), conn, events)
	if err := sendAll(stream, nil); err != nil {
		t.Fatal(err)
	}
	stream.CloseSend()
	held := settled(&sent)
	t.Logf("the backend could send %d messages of %d that nobody read", held, messages)
	if held == 0 || held > messages/5 {
		t.Errorf("%d of %d messages, %d MiB, piled up in the proxy", held, messages, held*size>>20)
	}
	for i := range messages {
		var b []byte
		if err := stream.RecvMsg(&b); err != nil || !bytes.Equal(b, numbered(i, size)) {
			t.Fatalf("message %d is another one, or %v", i, err)
		}
	}
	var b []byte
	if err := stream.RecvMsg(&b); !errors.Is(err, io.EOF) {
		t.Errorf("the stream ended with %v", err)
	}
}

// TestSlowBackend: a backend that does not read holds the caller back.
func TestSlowBackend(t *testing.T) {
	const messages, size = 10_000, 4 << 10
	var sent atomic.Int64
	release := make(chan struct{})
	conn := through(t, func(_ string, stream grpc.ServerStream) error {
		<-release
		all, err := receiveAll(stream)
		if err != nil {
			return err
		}
		return sendAll(stream, numbered(len(all), 8))
	})
	stream := open(t, withTimeout(t, 5*time.Minute), conn, chat)
	go func() {
		for i := range messages {
			if sendAll(stream, numbered(i, size)) != nil {
				return
			}
			sent.Add(1)
		}
		stream.CloseSend()
	}()
	if held := settled(&sent); held == 0 || held > messages/5 {
		t.Errorf("%d of %d messages, %d MiB, piled up in the proxy", held, messages, held*size>>20)
	}
	close(release)
	var b []byte
	if err := stream.RecvMsg(&b); err != nil || !bytes.Equal(b, numbered(messages, 8)) {
		t.Errorf("the backend counted %x messages, %v", b, err)
	}
}

// numbered returns a message that tells its place in the stream.
func numbered(i, size int) []byte {
	b := make([]byte, size)
	binary.BigEndian.PutUint64(b, uint64(i))
	return b
}

// settled waits until n is above zero and grows no more, and at most a minute.
func settled(n *atomic.Int64) (now int64) {
	for before, tries := int64(0), 200; tries > 0; tries-- {
		now = n.Load()
		if now == before && now > 0 {
			break
		}
		before = now
		time.Sleep(300 * time.Millisecond)
	}
	return now
}
