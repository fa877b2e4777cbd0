package relay

import (
	"bytes"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"
)

// The relay must carry bytes and the end of each direction by itself, else it is no floor.
func TestRelayCarriesBytesAndHalfClose(t *testing.T) {
	dir := t.TempDir()
	backend, socket := filepath.Join(dir, "backend.sock"), filepath.Join(dir, "relay.sock")
	go answerReversed(t, listen(t, backend))
	go Serve(socket, backend)
	conn := dial(t, socket)
	if _, err := conn.Write([]byte("abc")); err != nil {
		t.Fatal(err)
	}
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	if err != nil || string(got) != "cba" {
		t.Errorf("got %q, %v; want the answer that the backend gave after the end of the request", got, err)
	}
}

func listen(t *testing.T, path string) net.Listener {
	t.Helper()
	lis, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lis.Close() })
	return lis
}

// answerReversed reads one connection to its end, and only then answers.
func answerReversed(t *testing.T, lis net.Listener) {
	conn, err := lis.Accept()
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	text, err := io.ReadAll(conn)
	if err != nil {
		t.Error(err)
	}
	var answer bytes.Buffer
	for i := len(text) - 1; i >= 0; i-- {
		answer.WriteByte(text[i])
	}
	if _, err := conn.Write(answer.Bytes()); err != nil {
		t.Error(err)
	}
}

func dial(t *testing.T, path string) *net.UnixConn {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		conn, err := net.Dial("unix", path)
		if err == nil {
			t.Cleanup(func() { conn.Close() })
			return conn.(*net.UnixConn)
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}
