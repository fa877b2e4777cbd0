package metrics

import (
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"

	"github.com/wasmproxy/wasmproxy/runtime/cri"
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
	calls             *prometheus.CounterVec
	durations, times  prometheus.ObserverVec
	finished          [len(routes)][maxCode + 2]atomic.Pointer[prometheus.Counter] // the last code is other
	duration, backend atomic.Pointer[prometheus.Observer]
}

func (f families) methods(all []map[string]cri.Shape) (known map[string]*methodSeries, unknown *methodSeries) {
	of := func(name string, shape cri.Shape) *methodSeries {
		return &methodSeries{
			name: name, unary: shape == cri.Unary, calls: f.counter("wasmproxy_calls_total"),
			durations: f.observer("wasmproxy_call_duration_seconds"), times: f.observer("wasmproxy_backend_duration_seconds"),
		}
	}
	known = map[string]*methodSeries{}
	for _, shapes := range all {
		for method, shape := range shapes {
			known[method] = of(method[strings.LastIndexByte(method, '/')+1:], shape)
		}
	}
	return known, of(other, cri.Stream)
}

func (m *Metrics) callFinished(e *observe.CallFinished) {
	s := m.methods[e.Method]
	if s == nil {
		s = m.other
	}
	route := routeIndex(e.Route)
	s.count(route, codeIndex(e.Code))
	if !s.unary {
		return
	}
	m.overhead[route].Observe(max(e.Duration-e.Backend, 0).Seconds())
	observer(&s.duration, func() prometheus.Observer { return s.durations.WithLabelValues(s.name) }).Observe(e.Duration.Seconds())
	if e.Backend > 0 { // else it was not asked
		observer(&s.backend, func() prometheus.Observer { return s.times.WithLabelValues(s.name) }).Observe(e.Backend.Seconds())
	}
}

func (s *methodSeries) count(route, code int) {
	at := &s.finished[route][code]
	c := at.Load()
	if c == nil {
		label := other
		if code <= int(maxCode) {
			label = codes.Code(code).String()
		}
		made := s.calls.WithLabelValues(s.name, string(routes[route]), label) // the same for all who come at once
		c = &made
		at.Store(c)
	}
	(*c).Inc()
}

// observer returns what at has, or what of returns, which it keeps for the next time.
func observer(at *atomic.Pointer[prometheus.Observer], of func() prometheus.Observer) prometheus.Observer {
	o := at.Load()
	if o == nil {
		made := of() // the same for all who come at once
		o = &made
		at.Store(o)
	}
	return *o
}

func routeIndex(r observe.Route) int {
	for i := range routes {
		if routes[i] == r {
			return i
		}
	}
	return 0
}

func codeIndex(code string) int {
	for c := codes.OK; c <= maxCode; c++ {
		if c.String() == code {
			return int(c)
		}
	}
	return int(maxCode) + 1
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

func (s *methodSeries) total() (n uint64) {
	for route := range s.finished {
		for code := range s.finished[route] {
			if c := s.finished[route][code].Load(); c != nil {
				n += uint64(valueOf(*c))
			}
		}
	}
	return n
}
