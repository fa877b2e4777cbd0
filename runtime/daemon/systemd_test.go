package daemon_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/wasmproxy/wasmproxy/runtime/daemon"
)

// After a reload of systemd, files that it may have overwritten are repaired at once: here no scan
// does it. Each fill of the store does, of which there are two at most.
func TestReloadOfSystemdHasFilesRepaired(t *testing.T) {
	n, idle := withFiles(t)
	n.end()
	clients := newBus(t)
	n.start(daemon.RunWithoutScans)
	n.await("connected to systemd", "version=252")
	client := receive(n, clients)
	for round := range 5 {
		n.must(os.WriteFile(idle, []byte("0\n"), 0o644))
		client.reloaded(t)
		for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
			if got, err := os.ReadFile(idle); err == nil && strings.TrimSpace(string(got)) == "1" {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("round %d: a reload has nothing repaired; the log:\n%s", round, n.log)
			}
		}
	}
	n.await("cgroup file repaired", "plugin=10-qos", "file=cpu.idle", "value=1", "found=0", `last="a reload of systemd"`)
}

// busClient is a connection to a system bus with a systemd that only tells that it has reloaded its
// units: the machine's own serves all of the machine.
type busClient struct {
	net.Conn
	serial uint32
}

// newBus returns the clients that wait for signals.
func newBus(t *testing.T) <-chan *busClient {
	t.Helper()
	dir, err := os.MkdirTemp("", "wp") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := net.Listen("unix", dir+"/bus")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path="+dir+"/bus")
	subscribed := make(chan *busClient, 10)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go (&busClient{Conn: conn}).serve(subscribed)
		}
	}()
	return subscribed
}

// serve answers the calls of a client until that goes. The last one at first is for the version.
func (c *busClient) serve(subscribed chan<- *busClient) {
	defer c.Close()
	in := bufio.NewReader(c)
	for line := ""; !strings.HasPrefix(line, "BEGIN"); {
		var err error
		if line, err = in.ReadString('\n'); err != nil {
			return
		}
		switch line = strings.TrimLeft(line, "\x00"); {
		case strings.HasPrefix(line, "AUTH EXTERNAL"):
			fmt.Fprint(c, "OK 0123456789abcdef0123456789abcdef\r\n")
		case strings.HasPrefix(line, "AUTH"):
			fmt.Fprint(c, "REJECTED EXTERNAL\r\n")
		case strings.HasPrefix(line, "NEGOTIATE_UNIX_FD"):
			fmt.Fprint(c, "ERROR\r\n")
		}
	}
	for {
		call, err := dbus.DecodeMessage(in)
		if err != nil {
			return
		}
		member := call.Headers[dbus.FieldMember].Value().(string)
		answer := map[string][]any{"Hello": {":1.1"}, "Get": {dbus.MakeVariant("252")}}[member]
		if c.send(dbus.TypeMethodReply, map[dbus.HeaderField]any{dbus.FieldReplySerial: call.Serial()}, answer...) != nil {
			return
		}
		if member == "Get" {
			subscribed <- c
		}
	}
}

func (c *busClient) send(kind dbus.Type, headers map[dbus.HeaderField]any, body ...any) error {
	m := &dbus.Message{Type: kind, Body: body, Headers: map[dbus.HeaderField]dbus.Variant{}}
	for field, value := range headers {
		m.Headers[field] = dbus.MakeVariant(value)
	}
	if len(body) > 0 {
		m.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(body...))
	}
	var text bytes.Buffer
	if err := m.EncodeTo(&text, binary.LittleEndian); err != nil {
		return err
	}
	c.serial++
	binary.LittleEndian.PutUint32(text.Bytes()[8:], c.serial) // which the library sets for calls alone
	_, err := c.Write(text.Bytes())
	return err
}

// reloaded sends what systemd does when it has reloaded its units.
func (c *busClient) reloaded(t *testing.T) {
	t.Helper()
	for _, active := range []bool{true, false} {
		headers := map[dbus.HeaderField]any{
			dbus.FieldPath: dbus.ObjectPath("/org/freedesktop/systemd1"), dbus.FieldInterface: "org.freedesktop.systemd1.Manager", dbus.FieldMember: "Reloading",
		}
		if err := c.send(dbus.TypeSignal, headers, active); err != nil {
			t.Fatal(err)
		}
	}
}
