package metrics

import (
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// other is the label of what a client chose and no table has.
const other = "other"

// routes are those of observe.Route.
var routes = [...]observe.Route{observe.Passed, observe.Followed, observe.Hooked}

// maxCode is the highest code that gRPC defines. Any number can arrive.
const maxCode = codes.Unauthenticated

// methodSeries are the series of a CRI method. They are made when they are needed: most nodes
// call half of the methods. Of a stream there are no durations: it lasts as long as its caller
// likes.
type methodSeries struct {
	name              string // without the service
	unary             bool
	finished          [len(routes)][maxCode + 2]atomic.Pointer[prometheus.Counter] // the last code is other
	duration, backend atomic.Pointer[prometheus.Counter]
}

func (m *Metrics) callFinished(e *observe.CallFinished) {
	s := m.methods[e.Method]
	if s == nil {
		s = m.other
	}
	route, code := max(slices.Index(routes[:], e.Route), 0), codes.OK
	for code <= maxCode && code.String() != e.Code {
		code++
	}
	once(&s.finished[route][code], func() prometheus.Counter {
		label := other
		if code <= maxCode {
			label = code.String()
		}
		return m.families.counters["wasmproxy_calls_total"].WithLabelValues(s.name, string(routes[route]), label)
	}).Inc()
	if !s.unary {
		return
	}
	m.overhead.Observe(max(e.Duration-e.Backend, 0).Seconds())
	once(&s.duration, func() prometheus.Counter {
		return m.families.counters["wasmproxy_call_seconds_total"].WithLabelValues(s.name)
	}).
		Add(max(e.Duration.Seconds(), 0))
	once(&s.backend, func() prometheus.Counter {
		return m.families.counters["wasmproxy_backend_seconds_total"].WithLabelValues(s.name)
	}).
		Add(max(e.Backend.Seconds(), 0))
}

// once returns what at has, or what of returns, which it keeps for the next time. It is the same series
// for all who come at once.
func once[T any](at *atomic.Pointer[T], of func() T) T {
	v := at.Load()
	if v == nil {
		made := of()
		v = &made
		at.Store(v)
	}
	return *v
}

// Calls returns how many calls were answered, by method without its service. Those of methods
// that CRI does not have are "other".
func (m *Metrics) Calls() map[string]uint64 {
	all := map[string]uint64{}
	for _, s := range m.methods {
		if n := s.total(); n > 0 {
			all[s.name] = n
		}
	}
	if n := m.other.total(); n > 0 {
		all[other] = n
	}
	return all
}

// Succeeded returns how many calls of a method, by its full name, were answered without an error.
func (m *Metrics) Succeeded(method string) uint64 { return m.methods[method].answered(int(codes.OK)) }

func (s *methodSeries) answered(code int) (n uint64) {
	for route := range s.finished {
		if c := s.finished[route][code].Load(); c != nil {
			n += uint64(valueOf(*c))
		}
	}
	return n
}

func (s *methodSeries) total() (n uint64) {
	for code := range s.finished[0] {
		n += s.answered(code)
	}
	return n
}
