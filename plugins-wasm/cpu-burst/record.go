package main

import wp "github.com/wasmproxy/wasmproxy/sdk"

// record is what a tick leaves for the next one of a container or a pod.
type record struct {
	id string
	at int64 // when it was read, in ns; 0 for one that only keeps the order
	stat
	burst            int64 // that was set, in µs
	tokens, capacity int64 // of its limiter, in thousandths of koordlet's: percent times milliseconds
}

// stat is what the plugin needs of a cpu.stat.
type stat struct {
	usage              int64 // µs
	periods, throttled int64
}

var (
	before, after []record // of the last tick, and of this one
	next          int      // the record that is probably looked for next
	last          int64    // when the last tick was, in ns
)

// forget has the plugin begin anew.
func forget() { before, after, next, last, history, spent = nil, nil, 0, 0, nil, 0 }

// note makes a record of a container or pod. It returns that of the last tick, nil if there is none, and the place of
// the new one. Ticks look at them in nearly the same order, so that the first one is nearly always right. A map
// would make the plugin larger by an eighth.
func note(id string) (was *record, is int) {
	after = append(after, record{id: id})
	for range before {
		if next >= len(before) {
			next = 0
		}
		r := &before[next]
		next++
		if r.id != id {
			continue
		}
		if r.at == 0 {
			r = nil
		}
		return r, len(after) - 1
	}
	return nil, len(after) - 1
}

// parseStat reads the lines of a cpu.stat.
func parseStat(text string) (s stat) {
	for text != "" {
		name, rest := cut(text, ' ')
		number, after := cut(rest, '\n')
		text = after
		n, _ := wp.ParseInt(number)
		switch name {
		case "usage_usec":
			s.usage = n
		case "nr_periods":
			s.periods = n
		case "nr_throttled":
			s.throttled = n
		}
	}
	return s
}

// quotaOf reads the quota of a cpu.max, -1 for none.
func quotaOf(text string) int64 {
	quota, _ := cut(text, ' ')
	if n, ok := wp.ParseInt(quota); ok {
		return n
	}
	return -1
}

// cut returns what is before and after the first c.
func cut(text string, c byte) (before, after string) {
	for i := range len(text) {
		if text[i] == c {
			return text[:i], text[i+1:]
		}
	}
	return text, ""
}
