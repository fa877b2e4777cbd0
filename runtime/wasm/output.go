package wasm

import (
	"bytes"
	"context"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// Bounds of what a guest may say in one call.
const (
	maxOutput = 64 << 10 // bytes of text, with lineCost for each line
	lineCost  = 64
	maxLine   = 4 << 10
	tailLines = 4 // of what it printed last, for the error
	maxTail   = 256
)

// output takes what a guest logs and prints in one call to the observer: each line
// printable, all of them bounded. What is over the bound is counted and dropped.
type output struct {
	budget  int
	full    bool // budget did not suffice for a line
	dropped int  // bytes

	streams [2]stream // stdout and stderr
	tail    []string
	traced  bool // the guest has begun to print a stack trace
}

// stream is a line that has no end yet: as much as is kept, and a byte of what is not.
type stream struct{ partial []byte }

// about names the call: the hook with its object, or the export.
func (c *call) about() (hook abi.Hook, export string, about observe.Object) {
	if hook = c.event.Hook(); hook == 0 {
		return 0, c.export, about
	}
	return hook, "", observe.ObjectOf(c.event)
}

// streamLevels are the levels of stdout and stderr.
var streamLevels = [2]observe.Level{observe.Info, observe.Warn}

// log is the host function. A number that is no level counts as the nearest level.
func log(ctx context.Context, f *frame) int64 {
	level := observe.Level(min(max(f.i32(0), abi.LogDebug), abi.LogError))
	text := f.bytes(1)
	f.moved += min(len(text), maxLine)
	f.say(ctx, level, text)
	return 0
}

// say gives one line to the observer, and charges for it also if nobody wants to see it.
func (c *call) say(ctx context.Context, level observe.Level, text []byte) {
	o := &c.output
	kept := text[:min(len(text), maxLine)]
	if o.full = o.full || o.budget < len(kept)+lineCost; o.full {
		o.dropped += len(text)
		return
	}
	o.budget -= len(kept) + lineCost
	o.dropped += len(text) - len(kept)
	if len(kept) > 0 && c.observer().Wants(observe.KindPluginLog(level)) {
		hook, export, about := c.about()
		c.observer().Observe(ctx, &observe.PluginLog{
			Level: level, Plugin: c.of.id, Hook: hook, Function: export, Object: about, Text: sanitize(c.adj, text, maxLine),
		})
	}
}

// write takes bytes that were written to stdout (0) or stderr (1). When no more
// will be logged it looks at the end only, for the error that may follow.
func (c *call) write(ctx context.Context, n int, b []byte) {
	o := &c.output
	s := &o.streams[n]
	if most := tailLines * maxTail; o.full && len(b) > most {
		_, last, _ := bytes.Cut(b[len(b)-most:], []byte("\n")) // what has no beginning may be half a secret
		s.partial = s.partial[:0]
		o.dropped += len(b) - len(last)
		b = last
	}
	if len(b) > maxOutput {
		o.dropped += len(b) - maxOutput
		b = b[:maxOutput]
	}
	for len(b) > 0 {
		line, rest, ended := bytes.Cut(b, []byte("\n"))
		room := min(len(line), maxLine+1-len(s.partial))
		s.partial = append(s.partial, line[:room]...)
		o.dropped += len(line) - room
		if ended {
			c.end(ctx, n)
		}
		b = rest
	}
}

// said is what a guest says as one printable line, without secrets. No more is copied
// out of the guest than shows that there was more.
func sanitize(adj *plugin.Adjustment, b []byte, limit int) string {
	return adj.Sanitize(string(b[:min(len(b), limit+1)]), limit)
}

// end gives a stream's line to the observer, and keeps the last lines for the error that may
// follow, but nothing of the stack trace that Go prints after its reason.
func (c *call) end(ctx context.Context, n int) {
	o := &c.output
	s := &o.streams[n]
	text := sanitize(c.adj, s.partial, maxTail)
	if strings.HasPrefix(text, "goroutine ") || text == "runtime stack:" {
		o.traced = true
	}
	if !o.traced && text != "" {
		o.tail = append(o.tail, text)
		o.tail = o.tail[max(0, len(o.tail)-tailLines):]
	}
	c.say(ctx, streamLevels[n], s.partial)
	s.partial = s.partial[:0]
}

// finish gives the rest to the observer, and how much was dropped.
func (c *call) finish(ctx context.Context) {
	o := &c.output
	for n := range o.streams {
		if len(o.streams[n].partial) > 0 {
			c.end(ctx, n)
		}
	}
	if o.dropped > 0 {
		hook, export, about := c.about()
		c.observer().Observe(ctx, &observe.PluginLogCut{
			Plugin: c.of.id, Hook: hook, Function: export, Object: about, DroppedBytes: o.dropped,
		})
		o.dropped = 0
	}
}

// printed returns what the guest printed last, for an error; "" if nothing.
func (o *output) printed() string {
	if len(o.tail) == 0 {
		return ""
	}
	return " (it printed: " + strings.Join(o.tail, "; ") + ")"
}
