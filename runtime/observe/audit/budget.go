package audit

import (
	"context"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// A plugin may write so many bytes at once, some 10,000 lines, and then so many a second. At the default size and
// count of files, one plugin alone takes more than a day to turn the log over.
const (
	burst  = 4 << 20
	steady = 4 << 10
)

// budget is what a plugin may still write.
type budget struct {
	left    float64 // bytes
	at      time.Time
	dropped int // lines since the last one that was written

	unreported int       // lines that were dropped since the last event
	next       time.Time // when the next event is due
}

// within returns the line of an entry, and whether its plugin may write it.
func (l *Log) within(e entry) (text []byte, ok bool) {
	plugin := e.line.plugin
	if e.last {
		delete(l.budgets, plugin)
	}
	if !e.line.limited {
		return e.text(0), true
	}
	b := l.budgets[plugin]
	if b == nil {
		b = &budget{left: burst, at: e.at}
		l.budgets[plugin] = b
	}
	text = e.text(b.dropped)
	b.left, b.at = min(b.left+steady*max(e.at.Sub(b.at).Seconds(), 0), burst), e.at
	if ok = b.left >= float64(len(text)); ok {
		b.left, b.dropped = b.left-float64(len(text)), 0
	} else {
		b.dropped++
		b.unreported++
	}
	if b.unreported > 0 && !e.at.Before(b.next) {
		l.observer.Observe(context.Background(), &observe.AuditLinesLimited{Plugin: plugin, Lines: b.unreported})
		b.unreported, b.next = 0, e.at.Add(repeatTime)
	}
	return text, ok
}
