package daemon

import (
	"slices"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/handover"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
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
	if err := d.gate.Close(t.Context(), intercept.NewWorkQueue()); err != nil {
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
