package main

import (
	"context"
	"fmt"
	"time"
)

// A benchmark is one call, made through several parties.
type benchmark struct {
	name    string
	parties []string // the first is what the others are compared with
	calls   int      // in a round
	call    func(context.Context, *party) error
	refuses string // a party that is known to refuse the call: that is its result
}

const largeList = "ListContainers16MiB"

// benchmarks are all that is measured, in groups of those that are compared with one another. The calls of a round
// are few, so that the parties alternate often and a disturbance of the machine meets all of them.
func benchmarks() [][]benchmark {
	return [][]benchmark{
		{{name: "Version", calls: 200, call: version,
			parties: []string{direct, rawRelay, koord, wasmproxy, wasmproxy5, wasmproxy8}}},
		{{name: "CreateContainer", calls: 150, call: createIn(plain),
			parties: []string{direct, rawRelay, koord, koordHook, wasmproxy, wasmproxy1, recorded, shadowed, withSinks, wasmproxy8, remoteHook}},
			{name: "CreateContainerChanged", calls: 150, call: createIn(annotated),
				parties: []string{direct, wasmproxy1, withSinks, wasmproxy8}}},
		{{name: "RunPodSandbox", calls: 150, call: runPod,
			parties: []string{direct, rawRelay, koord, koordHook, wasmproxy, noopWasm, remoteHook}}},
		{{name: largeList, calls: 4, call: listLarge, refuses: koord, // it leaves gRPC's limit at 4 MiB
			parties: []string{direct, rawRelay, koord, wasmproxy}}},
	}
}

func version(ctx context.Context, p *party) error { return p.kubelet.version(ctx) }

func listLarge(ctx context.Context, p *party) error { return p.kubelet.listLarge(ctx) }

func runPod(ctx context.Context, p *party) error {
	p.asked[preRun]++
	return p.kubelet.runPod(ctx)
}

func createIn(kind podKind) func(context.Context, *party) error {
	return func(ctx context.Context, p *party) error {
		p.asked[preCreate]++
		return p.kubelet.createContainer(ctx, kind)
	}
}

// A sample is what one party did in one round.
type sample struct {
	times []time.Duration // of each call
	cpu   time.Duration   // that the party's process used in all of them
}

// A series is what one party did in all rounds of a benchmark, or why there is nothing.
type series struct {
	benchmark, party string
	samples          []sample // by round
	failure          string
}

// measure runs the benchmarks of a group for the rounds given, after a round whose results are dropped.
func (n *node) measure(ctx context.Context, group []benchmark, rounds int) ([][]*series, error) {
	type turn struct {
		b benchmark
		s *series
	}
	var turns []turn
	all := make([][]*series, len(group))
	for i, b := range group {
		for _, name := range b.parties {
			s := &series{benchmark: b.name, party: name, failure: n.missing[name]}
			all[i] = append(all[i], s)
			turns = append(turns, turn{b, s})
		}
	}
	for round := range rounds + 1 {
		for i := range turns {
			t := turns[(round+i)%len(turns)] // nobody is always first
			if err := n.turn(ctx, t.b, t.s); err != nil {
				return nil, err
			}
		}
		if round == 0 {
			for _, t := range turns {
				t.s.samples = nil
			}
		}
	}
	return all, nil
}

// turn adds one round of one party.
func (n *node) turn(ctx context.Context, b benchmark, s *series) error {
	if s.failure != "" {
		return nil
	}
	p := n.parties[s.party]
	got, err := p.sample(ctx, b)
	if err != nil && s.party == b.refuses {
		s.failure = "fails: " + err.Error()
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s through %s: %w; its log ends:\n%s", b.name, s.party, err, p.process.LastWords())
	}
	s.samples = append(s.samples, got)
	return p.kubelet.remove(ctx)
}

// sample makes the calls of one round. A few before them wake the processes up.
func (p *party) sample(ctx context.Context, b benchmark) (sample, error) {
	for range 1 + b.calls/20 {
		if err := b.call(ctx, p); err != nil {
			return sample{}, err
		}
	}
	got := sample{times: make([]time.Duration, b.calls)}
	before := p.process.CPU()
	for i := range got.times {
		start := time.Now()
		if err := b.call(ctx, p); err != nil {
			return sample{}, err
		}
		got.times[i] = time.Since(start)
	}
	got.cpu = p.process.CPU() - before
	return got, nil
}
