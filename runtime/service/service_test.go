package service_test

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/service"
)

// manager is systemd's end of the notification socket.
type manager struct {
	t    *testing.T
	conn *net.UnixConn
}

func newManager(t *testing.T) *manager {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	return &manager{t, conn}
}

// next returns the next message, and "" if none comes in time.
func (m *manager) next(within time.Duration) string {
	m.t.Helper()
	b := make([]byte, 4<<10)
	m.conn.SetReadDeadline(time.Now().Add(within))
	n, err := m.conn.Read(b)
	if err != nil {
		return ""
	}
	return string(b[:n])
}

func (m *manager) want(message string) {
	m.t.Helper()
	if got := m.next(30 * time.Second); got != message {
		m.t.Errorf("systemd got %q, want %q", got, message)
	}
}

// until reads what comes before a message, and that.
func (m *manager) until(message string) {
	m.t.Helper()
	end := time.Now().Add(time.Minute)
	for m.next(time.Until(end)) != message {
		if time.Now().After(end) {
			m.t.Fatalf("systemd did not get %q", message)
		}
	}
}

// start runs a notifier until the test ends.
func start(t *testing.T, recorder *observe.Recorder, check func(context.Context) error) *service.Notifier {
	t.Helper()
	n := service.NewNotifier(recorder)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		n.Run(ctx, check)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return n
}

// TestStates: events become the messages of sd_notify. Plugins that are active before the proxy serves, as at each start, stay
// in the status.
func TestStates(t *testing.T) {
	m := newManager(t)
	n := start(t, new(observe.Recorder), nil)
	m.want("STATUS=Serving calls. No plugins are active.")
	for _, c := range []struct {
		event observe.Event
		want  string
	}{
		{&observe.GenerationActive{Plugins: []string{"10-a", "20-b"}}, "STATUS=Serving calls. 2 plugins are active: 10-a, 20-b."},
		{&observe.Serving{}, "READY=1"},
		{&observe.BypassOn{}, "STATUS=Serving calls. Plugins are bypassed: every call passes as it came."},
		{&observe.BypassOff{}, "STATUS=Serving calls. No plugins are active."},
		{&observe.GenerationActive{Refusing: []string{"30-c"}}, "STATUS=Serving calls. No plugins are active. Calls are refused for plugins that are not loaded: 30-c."},
		{&observe.NoPlugins{}, "STATUS=Serving calls. No plugins are active."},
		{&observe.Stopping{DrainTimeout: 4 * time.Minute}, "STOPPING=1\nSTATUS=Stopping. Calls in flight have 4m0s to finish.\nEXTEND_TIMEOUT_USEC=270000000"},
	} {
		n.Observe(t.Context(), c.event)
		m.want(c.want)
	}
}

// TestWatchdog: a sign of life comes while the check succeeds, none while it fails or hangs,
// and one again as soon as the proxy stops, when the check cannot succeed.
func TestWatchdog(t *testing.T) {
	m := newManager(t)
	t.Setenv("WATCHDOG_USEC", "60000")
	recorder := new(observe.Recorder)
	var hangs atomic.Bool
	n := start(t, recorder, func(ctx context.Context) error {
		if !hangs.Load() {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	})
	m.until("WATCHDOG=1") // the status is sent at the start, too
	hangs.Store(true)
	wait(t, recorder, func(e observe.Event) bool { _, is := e.(*observe.SelfCheckFailed); return is })
	n.Observe(t.Context(), &observe.BypassOn{})
	m.until("STATUS=Serving calls. Plugins are bypassed: every call passes as it came.") // signs of life were sent before
	if got := m.next(200 * time.Millisecond); got != "" {
		t.Errorf("systemd got %q of a proxy that hangs", got)
	}
	n.Observe(t.Context(), &observe.BypassOff{})
	m.want("STATUS=Serving calls. No plugins are active.") // though the check hangs
	n.Observe(t.Context(), &observe.Stopping{})
	if got := m.next(30 * time.Second); !strings.HasPrefix(got, "STOPPING=1") {
		t.Errorf("systemd got %q", got)
	}
	m.want("WATCHDOG=1")
}

// wait waits for an event.
func wait(t *testing.T, r *observe.Recorder, match func(observe.Event) bool) observe.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	e, err := r.Wait(ctx, match)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestNotSent: a socket that is gone is an event, and the notifier goes on.
func TestNotSent(t *testing.T) {
	m := newManager(t)
	m.conn.Close()
	recorder := new(observe.Recorder)
	n := start(t, recorder, nil)
	n.Observe(t.Context(), &observe.Serving{})
	first := wait(t, recorder, func(observe.Event) bool { return true })
	if e, is := first.(*observe.NotifyFailed); !is || e.Err == nil {
		t.Errorf("got %v", first)
	}
}

// TestNoSystemd: without systemd there is neither a socket nor a message.
func TestNoSystemd(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	recorder := new(observe.Recorder)
	n := start(t, recorder, func(context.Context) error { t.Error("the proxy checks itself"); return nil })
	n.Observe(t.Context(), &observe.Serving{})
	if l, err := service.Passed().Listener("/run/wasmproxy/wasmproxy.sock"); l != nil || err != nil {
		t.Errorf("got %v, %v", l, err)
	}
	if got := recorder.Take(); len(got) > 0 {
		t.Errorf("got %v", got)
	}
}
