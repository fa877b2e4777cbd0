package demo

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
)

// journal is the proxy's log, kept for the narrator.
type journal struct {
	mu      sync.Mutex
	records []record
	arrived chan struct{} // closed and replaced at each record
}

type record struct {
	level slog.Level
	msg   string
	attrs map[string]string
}

func newJournal() *journal { return &journal{arrived: make(chan struct{})} }

// Enabled implements slog.Handler.
func (j *journal) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs implements slog.Handler.
func (j *journal) WithAttrs(attrs []slog.Attr) slog.Handler { return scoped{j, attrs} }

// WithGroup implements slog.Handler.
func (j *journal) WithGroup(string) slog.Handler { return j }

// Handle implements slog.Handler.
func (j *journal) Handle(_ context.Context, r slog.Record) error {
	rec := record{level: r.Level, msg: r.Message, attrs: map[string]string{}}
	r.Attrs(func(a slog.Attr) bool {
		rec.add(a)
		return true
	})
	j.mu.Lock()
	defer j.mu.Unlock()
	j.records = append(j.records, rec)
	close(j.arrived)
	j.arrived = make(chan struct{})
	return nil
}

// scoped writes to a journal with attributes of its own, such as the plugin's id.
type scoped struct {
	*journal
	attrs []slog.Attr
}

// WithAttrs implements slog.Handler.
func (s scoped) WithAttrs(attrs []slog.Attr) slog.Handler {
	return scoped{s.journal, slices.Concat(s.attrs, attrs)}
}

// WithGroup implements slog.Handler.
func (s scoped) WithGroup(string) slog.Handler { return s }

// Handle implements slog.Handler.
func (s scoped) Handle(ctx context.Context, r slog.Record) error {
	r = r.Clone()
	r.AddAttrs(s.attrs...)
	return s.journal.Handle(ctx, r)
}

func (r *record) add(a slog.Attr) {
	v := a.Value.Resolve()
	if v.Kind() != slog.KindGroup {
		r.attrs[a.Key] = v.String()
		return
	}
	for _, member := range v.Group() {
		r.add(member)
	}
}

// next is closed when the next record arrives.
func (j *journal) next() <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.arrived
}

// take returns what arrived since the last take.
func (j *journal) take() []record {
	j.mu.Lock()
	defer j.mu.Unlock()
	records := j.records
	j.records = nil
	return records
}

// wait returns the first record with this message and this attribute ("" is any) that
// has not been taken yet, or arrives before ctx is done.
func (j *journal) wait(ctx context.Context, msg, key, value string) (record, error) {
	for {
		j.mu.Lock()
		arrived := j.arrived
		for _, r := range j.records {
			if r.msg == msg && r.attrs[key] == value {
				j.mu.Unlock()
				return r, nil
			}
		}
		j.mu.Unlock()
		select {
		case <-arrived:
		case <-ctx.Done():
			return record{}, fmt.Errorf("waiting for the proxy to log %q with %s=%s: %w", msg, key, value, ctx.Err())
		}
	}
}
