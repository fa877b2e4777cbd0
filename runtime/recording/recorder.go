package recording

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// These bound what waits for the reader: calls, and bytes of what plugins asked and were answered, with the secrets to hide in it.
const (
	maxWaiting      = 2 << 20
	maxWaitingCalls = 1024
)

// period is how often calls are written that have ended. Who writes and reads each by itself takes from the calls, when they
// are many, the processor that they need.
const period = 100 * time.Millisecond

// Recorder watches a plugin's calls, and writes them down. What the reader does not take in time is dropped and counted.
// A call of the plugin never waits.
type Recorder struct {
	options Options
	calls   chan *recorded
	waiting atomic.Int64 // bytes in calls
	closed  chan struct{}
	end     sync.Once

	mu      sync.Mutex
	second  time.Time // that is counted in begun
	begun   int
	dropped Dropped
}

// NewRecorder returns a Recorder. It records nothing until a plugin has it as a watcher.
func NewRecorder(o Options) *Recorder {
	return &Recorder{options: o, calls: make(chan *recorded, maxWaitingCalls), closed: make(chan struct{})}
}

// Closed implements plugin.Watcher.
func (r *Recorder) Closed() { r.end.Do(func() { close(r.closed) }) }

// Begin implements plugin.Watcher.
func (r *Recorder) Begin(ev plugin.Event, adj *plugin.Adjustment) plugin.CallWatcher {
	if ev.Hook().Info().Phase == abi.Standalone && !r.options.Ticks {
		return nil
	}
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.second) >= time.Second {
		r.second, r.begun = now, 0
	}
	if r.begun == r.options.Rate {
		r.dropped.Rate++
		return nil
	}
	r.begun++
	return &recorded{of: r, event: ev, adj: adj, begun: now}
}

// recorded is a call, with the event as long as it lasts.
type recorded struct {
	of    *Recorder
	event plugin.Event
	adj   *plugin.Adjustment
	begun time.Time

	call    Call
	asked   []plugin.Question
	bytes   int64
	secrets []string
}

func (*recorded) Ask(*plugin.Question) bool { return false }

// Answered implements plugin.CallWatcher. A guest whose buffer was too small asks again, which tells nothing more.
func (c *recorded) Answered(q *plugin.Question) {
	if n := len(c.asked); n > 0 && !Writes(q) {
		last := &c.asked[n-1]
		asked := last.Function == q.Function && slices.Equal(last.Args, q.Args)
		answered := last.Errno == q.Errno && last.Number == q.Number
		if asked && answered && bytes.Equal(last.Data, q.Data) {
			return
		}
	}
	c.bytes += int64(questionBytes + len(q.Data))
	for _, arg := range q.Args {
		c.bytes += int64(len(arg.Text))
	}
	if c.bytes > c.of.options.Call {
		c.asked = nil
		return
	}
	c.asked = append(c.asked, *q)
	if handle := handleOf(q); handle != 0 && q.Kind < abi.FirstHandle {
		id, _ := c.event.Text(handle, map[abi.Object]abi.Field{abi.Pod: abi.PodID, abi.Container: abi.ContainerID}[q.Kind])
		c.call.nameHandle(handle, q.Kind, id)
	}
}

// questionBytes is what a question has beside its texts, about.
const questionBytes = 100

// handleOf is the handle that a question is about; 0 if it is about none.
func handleOf(q *plugin.Question) abi.Object {
	if q.Kind == 0 || len(q.Args) == 0 || q.Args[0].Number < int64(abi.FirstHandle) {
		return 0
	}
	return abi.Object(q.Args[0].Number)
}

func (c *recorded) End(err error) {
	r := c.of
	if c.bytes > r.options.Call {
		r.drop(func(d *Dropped) { d.Size++ })
		return
	}
	late := func(d *Dropped) { d.Reader++ }
	if full := len(r.calls) == cap(r.calls); full || r.waiting.Load()+c.bytes > maxWaiting { // then nothing is gathered in vain
		r.drop(late)
		return
	}
	ev := c.event
	c.call.Name, c.call.Hook, c.call.Time, c.call.Took = ev.Hook().String(), ev.Hook(), ev.Time().UnixNano(), time.Since(c.begun)
	c.call.Fuel, _ = c.adj.Used()
	text := func(o abi.Object, f abi.Field) string { v, _ := ev.Text(o, f); return v }
	if namespace, errno := ev.Text(abi.Pod, abi.PodNamespace); errno == abi.OK {
		c.call.Pod = &Object{
			Namespace: namespace, Name: text(abi.Pod, abi.PodName), UID: text(abi.Pod, abi.PodUID), ID: text(abi.Pod, abi.PodID),
		}
	}
	if ev.Hook().Info().Object == abi.Container {
		c.call.Container = &Object{Name: text(abi.Container, abi.ContainerName), ID: text(abi.Container, abi.ContainerID)}
	}
	if err != nil && !errors.As(err, &c.call.Reject) {
		c.call.Error = c.adj.Sanitize(err.Error(), maxError)
	}
	c.secrets, _ = ev.Secrets(abi.AllCapabilities, 0)
	c.event, c.adj = nil, nil // which end with the call
	for _, secret := range c.secrets {
		c.bytes += int64(secretBytes + len(secret))
	}
	if r.waiting.Add(c.bytes) <= max(maxWaiting, c.bytes) { // alone it may have more
		select {
		case r.calls <- c:
			return
		default:
		}
	}
	r.waiting.Add(-c.bytes)
	r.drop(late)
}

// secretBytes is what a secret takes beside its text.
const secretBytes = 16

const maxError = 4 << 10

func (r *Recorder) drop(count func(*Dropped)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	count(&r.dropped)
}

// Write writes the header, each call, and the last line, until the recording ends or ctx is done. Calls are written ten times
// a second, all with one Write of out, whose error ends the recording, too.
func (r *Recorder) Write(ctx context.Context, out io.Writer, h Header) error {
	h.Version, h.Env, h.Ticks = Version, r.options.Env, r.options.Ticks
	w := &writer{recorder: r, out: out}
	if err := errors.Join(w.add(h), w.flush()); err != nil {
		return err
	}
	over := time.NewTimer(r.options.For)
	defer over.Stop()
	tick := time.NewTicker(period)
	defer tick.Stop()
	for reason := ""; ; {
		select {
		case <-tick.C:
		case <-over.C:
			reason = EndTime
		case <-r.closed:
			reason = EndClosed
		case <-ctx.Done():
			reason = EndStopped
		}
		if more, err := w.ended(); err != nil {
			return err
		} else if !more {
			reason = EndBytes
		}
		if reason != "" {
			return w.end(reason)
		}
		if err := w.flush(); err != nil {
			return err
		}
	}
}

// writer writes the lines of a recorder.
type writer struct {
	recorder *Recorder
	out      io.Writer
	lines    []byte // that are not written yet
	bytes    int64  // of all lines
	calls    int
}

// add adds a line.
func (w *writer) add(line any) error {
	text, err := encode(line)
	w.bytes += int64(len(text))
	w.lines = append(w.lines, text...)
	return err
}

// flush writes the lines that were added.
func (w *writer) flush() error {
	if len(w.lines) == 0 {
		return nil
	}
	_, err := w.out.Write(w.lines)
	w.lines = w.lines[:0]
	return err
}

// ended adds the calls that have ended by now, and no others: they are bounded, and so is the time until Write sees that
// ctx is done. With false, there was no room for one.
func (w *writer) ended() (more bool, err error) {
	r := w.recorder
	for range len(r.calls) {
		c := <-r.calls
		r.waiting.Add(-c.bytes)
		read := plugin.NewRedactor(c.secrets...) // what is in a pod's fields is no secret since a plugin gives it to a variable
		redactor := read
		if own := OwnVariables(c.asked); len(own) > 0 {
			redactor = plugin.NewRedactor(append(c.secrets, own...)...)
		}
		for _, q := range c.asked {
			by := redactor
			if q.Kind != 0 && !Writes(&q) {
				by = read
			}
			c.call.Asked = append(c.call.Asked, Spell(q, r.options.Env, by))
		}
		c.call.Error = redactor.Text(c.call.Error)
		if reject := c.call.Reject; reject != nil {
			c.call.Reject = &plugin.Rejection{Code: reject.Code, Reason: redactor.Text(reject.Reason)}
		}
		c.call.Dropped = r.Dropped()
		text, err := encode(&c.call)
		if err != nil || w.bytes+int64(len(text)) > r.options.Max {
			return false, err
		}
		w.bytes += int64(len(text))
		w.lines = append(w.lines, text...)
		w.calls++
	}
	return true, nil
}

// end writes what was added, and the last line.
func (w *writer) end(reason string) error {
	return errors.Join(w.add(End{reason, w.calls, w.recorder.Dropped()}), w.flush())
}

// Dropped returns how many calls were dropped by now.
func (r *Recorder) Dropped() Dropped {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dropped
}

// HandleKey is the key of a handle in Call.Handles.
func HandleKey(handle abi.Object) string { return strconv.Itoa(int(handle)) }
