package metrics

import (
	"sync/atomic"

	"google.golang.org/grpc/codes"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// other is the label of what a client chose and no table has.
const other = "other"

// maxCode is the highest code that gRPC defines. Any number can arrive.
const maxCode = codes.Unauthenticated

// method is a CRI method, with its counts of the whole run. Of a stream there are no durations: it lasts as long as
// its caller likes.
type method struct {
	name                string // without the service
	unary               bool
	answered, succeeded atomic.Uint64
}

func (m *Metrics) callFinished(e *observe.CallFinished) {
	of := m.methods[e.Method]
	if of == nil {
		of = m.other
	}
	code := codes.OK
	for code <= maxCode && code.String() != e.Code {
		code++
	}
	label := other
	if code <= maxCode {
		label = code.String()
	}
	of.answered.Add(1)
	if code == codes.OK {
		of.succeeded.Add(1)
	}
	counters := m.families.counters
	counters["wasmproxy_calls_total"].WithLabelValues(of.name, string(e.Route), label).Inc()
	if !of.unary {
		return
	}
	m.overhead.Observe(max(e.Duration-e.Backend, 0).Seconds())
	counters["wasmproxy_call_seconds_total"].WithLabelValues(of.name).Add(max(e.Duration.Seconds(), 0))
	counters["wasmproxy_backend_seconds_total"].WithLabelValues(of.name).Add(max(e.Backend.Seconds(), 0))
}

// Calls returns how many calls were answered, by method without its service. Those of methods
// that CRI does not have are "other".
func (m *Metrics) Calls() map[string]uint64 {
	all := map[string]uint64{}
	for _, of := range m.methods {
		if n := of.answered.Load(); n > 0 {
			all[of.name] = n
		}
	}
	if n := m.other.answered.Load(); n > 0 {
		all[other] = n
	}
	return all
}

// Succeeded returns how many calls of a method, by its full name, were answered without an error.
func (m *Metrics) Succeeded(method string) uint64 { return m.methods[method].succeeded.Load() }
