package daemon

import (
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/handover"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/ledger"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/workqueue"
)

// slowHeir is another process to which each message takes a moment.
type slowHeir struct{ got chan string }

func (h slowHeir) Release() error {
	time.Sleep(20 * time.Millisecond)
	h.got <- "main"
	return nil
}

func (h slowHeir) Leave(l handover.Left) error {
	h.got <- l.Method
	return nil
}

// TestHeirIsReleasedFirst: a call that waits at the gate when another process takes over is left to
// that after the release, without which it fails and ends.
func TestHeirIsReleasedFirst(t *testing.T) {
	d := &daemon{gate: new(intercept.Gate), observer: observe.Discard()}
	if err := d.gate.Close(t.Context(), workqueue.New()); err != nil {
		t.Fatal(err)
	}
	h := slowHeir{make(chan string, 2)}
	inside := make(chan bool)
	go func() {
		inside <- d.gate.Return(t.Context(), intercept.Left{Method: "/stop", Request: cri.FrameOf(nil)})
	}()
	if err := d.leaveTo(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if <-inside {
		t.Error("the call is inside")
	}
	if got := []string{<-h.got, <-h.got}; !slices.Equal(got, []string{"main", "/stop"}) {
		t.Errorf("the other process got %q", got)
	}
}

// TestUnsavedStateIsNotLeft: with values that cannot be saved, this process keeps the state, and calls
// go on.
func TestUnsavedStateIsNotLeft(t *testing.T) {
	dir := t.TempDir()
	c := &config.Config{StateDir: dir}
	durable, err := openDurable(c, observe.Discard())
	if err != nil {
		t.Fatal(err)
	}
	defer durable.close()
	l, err := openLedger(t.Context(), c, observe.Discard())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	good := newLastGood("", observe.Discard())
	d := &daemon{config: c, gate: new(intercept.Gate), observer: observe.Discard(), durable: durable, lastGood: good, ledger: l}
	values := plugin.NewKV()
	durable.keep(t.Context(), "10-a", values, []string{"k"})
	change := values.Begin()
	change.Set("k", "v")
	if err := change.Commit(); err != nil {
		t.Fatal(err)
	}
	for _, inTheWay := range []string{dir + "/journal.new", dir + "/kv/new", ""} {
		if inTheWay != "" {
			if err := os.Mkdir(inTheWay, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		l.Ask(ledger.ID{Pod: "u1"}, ledger.Asked{Target: ledger.File("cpu.idle"), Wish: ledger.Wish{Plugin: "10-a", Value: "1"}})
		if err := d.gate.Close(t.Context(), workqueue.New()); err != nil {
			t.Fatal(err)
		}
		switch err := d.releaseState(t.Context()); {
		case inTheWay == "":
			if err != nil {
				t.Errorf("the state is not left: %v", err)
			}
			return
		case err == nil, d.gate.Closing():
			t.Errorf("with %s in the way: error %v, closing %v", inTheWay, err, d.gate.Closing())
		}
		if err := os.Remove(inTheWay); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSlowCallHoldsOthersBriefly: while a handover waits for a call that takes long, others wait for
// one attempt at most, and the handover goes on when the call has ended.
func TestSlowCallHoldsOthersBriefly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &daemon{gate: new(intercept.Gate), queue: workqueue.New()}
		d.gate.Enter(t.Context())
		time.AfterFunc(firstQuiet+2*openTime, d.gate.Leave)
		closed, start := make(chan error, 1), time.Now()
		go func() { closed <- d.closeGate(t.Context()) }()
		synctest.Wait()
		if !d.gate.Enter(t.Context()) {
			t.Error("the gate is handed over")
		}
		if took := time.Since(start); took > firstQuiet {
			t.Errorf("another call waits for %v", took)
		}
		d.gate.Leave()
		if err := <-closed; err != nil || !d.gate.Closing() {
			t.Errorf("after the call: error %v, closing %v", err, d.gate.Closing())
		}
		d.gate.Open()
		d.gate.Enter(t.Context()) // and never leaves
		start = time.Now()
		if err := d.closeGate(t.Context()); err == nil || d.gate.Closing() || time.Since(start) > quietTime {
			t.Errorf("with a call that does not end: error %v, closing %v, after %v", err, d.gate.Closing(), time.Since(start))
		}
	})
}

// TestRetiringProcessAwaitsItsPredecessor: the server of a process that retires may have ended before the
// gate is handed over. The process waits for calls that are left to it nevertheless.
func TestRetiringProcessAwaitsItsPredecessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &daemon{gate: new(intercept.Gate), taking: &takingOver{ended: make(chan struct{})}}
		d.awaitLeft(t.Context()) // without another process
		if err := d.gate.Close(t.Context(), workqueue.New()); err != nil {
			t.Fatal(err)
		}
		d.handing.retires.Store(true)
		waited := make(chan struct{})
		go func() {
			d.awaitLeft(t.Context())
			close(waited)
		}()
		synctest.Wait()
		select {
		case <-waited:
			t.Fatal("it did not wait for the process that it has replaced")
		default:
		}
		close(d.taking.ended)
		<-waited
	})
}
