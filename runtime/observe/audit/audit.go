// Package audit writes what plugins changed and refused, and what operators did with them, as lines of JSON, to a file or to
// journald. It is the only importer of the library that rotates files.
//
// A line is made of one event. Events hide secrets already: values of env are not in it, nor what annotations and labels held
// before. What a plugin sets there is.
package audit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/observe/tracing"
)

// Journald is the name of the destination that is no file.
const Journald = "journald"

const (
	queueLength = 4096        // events that wait to be written, some 2 MiB
	closeTime   = time.Second // for the last of them
	repeatTime  = time.Minute // between two events about lines that are lost
)

// errFull is why a line is lost that was not tried.
var errFull = errors.New("events come faster than they can be written")

// Options say where lines go.
type Options struct {
	To       string           // absolute path of a file, or Journald
	MaxBytes int64            // of a file, until it is renamed and another one begins; at least 1 MiB
	Backups  int              // renamed files that are kept; at least 1
	Observer observe.Observer // gets an event if lines are lost
}

// Log is the audit log. It is an [observe.Observer] and safe for concurrent use. The caller must
// Close it.
type Log struct {
	observer observe.Observer
	out      output
	queue    chan entry
	closing  chan struct{}
	closed   chan struct{} // once all is written
	end      sync.Once
	dropped  atomic.Int64 // for want of room in the queue, since the writer looked
	lost     atomic.Int64 // lines of the whole run
	digests  sync.Map     // of the modules of active plugins, by id

	mu      sync.Mutex
	waiting map[string]int // entries with a limited line that are in the queue, by plugin

	// Of the writer's goroutine:
	unreported int                // lines that were lost since the last event
	reason     error              // why the last of them was
	next       time.Time          // when the next event is due
	budgets    map[string]*budget // by plugin
}

// entry is an event that waits to be written.
type entry struct {
	at     time.Time
	trace  string
	line   *line
	digest string // of the plugin's active version
	last   bool   // the plugin is removed
}

// output writes lines. It is for one goroutine.
type output interface {
	write(line []byte) error
	close() error
}

// New returns a log to which nothing is written yet. Whether it can be written shows with the
// first line, so that a full disk does not keep the proxy from serving.
func New(o Options) *Log {
	return start(o.Observer, outputOf(o))
}

func start(observer observe.Observer, out output) *Log {
	l := &Log{
		observer: observer, out: out, queue: make(chan entry, queueLength), closing: make(chan struct{}), closed: make(chan struct{}),
		waiting: map[string]int{}, budgets: map[string]*budget{},
	}
	go l.run()
	return l
}

// Lost returns how many lines were lost since the start, because they could not be written or
// too many waited.
func (l *Log) Lost() int64 { return l.lost.Load() }

// Wants implements observe.Observer.
func (l *Log) Wants(k observe.Kind) bool {
	return k == observe.KindFieldChanged || k == observe.KindCgroupFileWritten
}

// Observe implements observe.Observer. It does not wait for the line to be written.
func (l *Log) Observe(ctx context.Context, e observe.Event) {
	line := lineOf(e)
	if line == nil {
		return
	}
	switch e := e.(type) {
	case *observe.PluginLoaded:
		l.digests.Store(line.plugin, e.Digest)
	case *observe.PluginReplaced:
		l.digests.Store(line.plugin, e.Digest)
	}
	digest := ""
	if _, rejected := e.(*observe.PluginRejected); !rejected { // that is about other files
		active, _ := l.digests.Load(line.plugin)
		digest, _ = active.(string)
	}
	_, last := e.(*observe.PluginRemoved)
	if last {
		l.digests.Delete(line.plugin)
	}
	if !l.enqueue(entry{time.Now(), tracing.TraceID(ctx), line, digest, last}) {
		l.dropped.Add(1)
		l.lost.Add(1)
	}
}

// enqueue puts an entry into the queue if there is room for it. A plugin can make as many entries as it likes, so its room ends
// where as many of them wait as places are free: others, and operators, find one.
func (l *Log) enqueue(e entry) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	plugin := e.line.plugin
	if e.line.limited && l.waiting[plugin] >= cap(l.queue)-len(l.queue) {
		return false
	}
	select {
	case l.queue <- e:
	default:
		return false
	}
	if e.line.limited {
		l.waiting[plugin]++
	}
	return true
}

// dequeue notes that an entry was taken out of the queue.
func (l *Log) dequeue(e entry) {
	if !e.line.limited {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting[e.line.plugin]--; l.waiting[e.line.plugin] == 0 {
		delete(l.waiting, e.line.plugin)
	}
}

// Close writes the lines that wait, for a second at most. The error says if some are lost by
// that. Events that come later are lost.
func (l *Log) Close() error {
	l.end.Do(func() { close(l.closing) })
	select {
	case <-l.closed:
		return nil
	case <-time.After(closeTime):
		return fmt.Errorf("audit log: %d lines were not written within %v", len(l.queue)+1, closeTime)
	}
}

func (l *Log) run() {
	defer close(l.closed)
	for {
		select {
		case e := <-l.queue:
			l.dequeue(e)
			l.write(e)
			continue
		case <-l.closing:
		}
		for len(l.queue) > 0 {
			e := <-l.queue
			l.dequeue(e)
			l.write(e)
		}
		if err := l.out.close(); err != nil {
			l.observer.Observe(context.Background(), &observe.CloseFailed{Err: fmt.Errorf("audit log: %w", err)})
		}
		return
	}
}

func (l *Log) write(e entry) {
	text, ok := l.within(e)
	if !ok {
		return
	}
	if dropped := int(l.dropped.Swap(0)); dropped > 0 {
		l.unreported, l.reason = l.unreported+dropped, errFull
	}
	if err := l.out.write(text); err != nil {
		l.lost.Add(1)
		l.unreported, l.reason = l.unreported+1, err
	}
	if l.unreported == 0 || time.Now().Before(l.next) {
		return
	}
	l.observer.Observe(context.Background(), &observe.AuditLinesLost{Lines: l.unreported, Err: l.reason})
	l.unreported, l.next = 0, time.Now().Add(repeatTime)
}
