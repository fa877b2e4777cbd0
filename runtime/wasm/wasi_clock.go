package wasm

import (
	"context"
	"encoding/binary"
	"math"
)

// The clocks that guests ask for.
const (
	realtime  = 0
	monotonic = 1
)

// tick is how far a monotonic clock moves with each reading, in nanoseconds.
const tick = 1000

// clock is the monotonic clock of one instance. It follows the events' time, never
// goes back, moves on when it is read, since Go's runtime takes a clock that
// stands still, or stands at 0, for broken, and jumps when the guest sleeps.
type clock struct{ last int64 }

func (c *clock) read(event int64) int64 {
	c.last = max(c.last+tick, event)
	return c.last
}

func clockTime(_ context.Context, f *frame) int64 {
	switch f.i32(0) {
	case realtime:
		f.putUint64(2, uint64(f.time.UnixNano()))
	case monotonic:
		f.putUint64(2, uint64(f.clock.read(f.time.UnixNano())))
	default:
		return wasiEINVAL
	}
	return wasiOK
}

func clockResolution(_ context.Context, f *frame) int64 {
	f.putUint64(1, tick)
	return wasiOK
}

// maxSubscriptions is how many events a guest may wait for at a time.
const maxSubscriptions = 16

// poll waits for nothing: a guest that sleeps finds that the time has passed, and
// one that waits for a file that there is no such file. Go sleeps before it prints a panic.
// It answers the subscription that would end first.
func poll(_ context.Context, f *frame) int64 {
	in, out, n := uint32(f.stack[0]), uint32(f.stack[1]), uint32(f.stack[2])
	if n == 0 || n > maxSubscriptions {
		return wasiEINVAL
	}
	first := subscription(f.region(in, subscriptionSize))
	for i := range n {
		if s := subscription(f.region(in+i*subscriptionSize, subscriptionSize)); s.before(first) {
			first = s
		}
	}
	event := f.region(out, 32)
	clear(event)
	copy(event, first[:8]) // the guest's own mark
	if event[10] = first.kind(); first.kind() != clockSubscription {
		event[8] = wasiEBADF
	} else {
		now, until := f.clock.read(f.time.UnixNano()), first.timeout()
		if relative := first[40]&1 == 0; relative {
			until += uint64(now)
		}
		if until <= math.MaxInt64/2 { // a clock that would overflow stays where it is
			f.clock.last = max(now, int64(until))
		}
	}
	f.putUint32(3, 1)
	return wasiOK
}

// subscription is one as it lies in the guest's memory.
type subscription []byte

const (
	subscriptionSize  = 48
	clockSubscription = 0
)

func (s subscription) kind() byte      { return s[8] }
func (s subscription) timeout() uint64 { return binary.LittleEndian.Uint64(s[24:]) }

// before reports whether s ends before t. What is no clock ends at once.
func (s subscription) before(t subscription) bool {
	if s.kind() != clockSubscription || t.kind() != clockSubscription {
		return t.kind() == clockSubscription && s.kind() != clockSubscription
	}
	return s.timeout() < t.timeout()
}
