package load

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	// overloaded is how long the overload lasts.
	overloaded = 6 * time.Second
	// tenfold is how many times the calls that it can serve a proxy gets.
	tenfold = 10
	// deadline is that of each of these calls.
	deadline = 5 * time.Second
)

// wallClock is whether the test has the machine for itself.
var wallClock = os.Getenv("WASMPROXY_WALL_CLOCK") != ""

// TestOverload gives the proxy ten times the calls that it can serve, before a runtime that is slow. Each call succeeds or
// ends by its own deadline. The plugin that is asked too much of still serves about as many calls as before. A plugin with policy Fail
// misses none. Memory is bounded, and afterwards calls take as long as before.
func TestOverload(t *testing.T) {
	l := newLab(t)
	l.plugin("10-slow", "testdata/wat/slow-and-good.wasm", "")
	limit := "1s"
	if !wallClock { // on a busy machine 10-slow may use up a second, which is then too little for a plugin with policy Fail
		limit = "30s"
	}
	l.plugin("20-strict", "testdata/wat/endless.wasm", `{"failure-policy": "Fail", "runtime-hooks": ["PreRunPodSandbox"], "timeout": "`+limit+`"}`) // marks pods
	l.start(2)
	o := &overload{lab: l}
	for range 8 { // so that no connection's limit of calls holds them back
		o.clients = append(o.clients, l.dial())
	}
	capacity := o.capacity()
	normal := median(o.alone(10))
	idle, err := l.sample()
	l.must(err)
	before := o.served()

	l.runtime.slowness.Store(int64(slowCalls / (2 * capacity) * float64(time.Second))) // it serves twice as many
	peak := o.run(capacity * tenfold)
	l.runtime.slowness.Store(0)
	ended := time.Now()
	served := o.served() - before
	l.await("normal latency", func() error {
		most := 2*normal + 0.01
		if !wallClock {
			most = 10*normal + 0.1 // the machine may be busier than it was
		}
		if now := median(o.alone(5)); now > most {
			return fmt.Errorf("a call takes %.3f s, before the overload %.3f s", now, normal)
		}
		return nil
	})
	recovered := time.Since(ended)
	t.Logf("capacity %.0f calls/s, offered %.0f/s: %v, %.0f served by 10-slow; latency %.3f s, normal again after %v; RSS %.0f MB before, %.0f MB at most; goroutines %.0f before, %.0f at most",
		capacity, capacity*tenfold, o.codes, served, normal, recovered.Round(time.Millisecond), idle["RSS"]/1e6, peak["RSS"]/1e6, idle["goroutines"], peak["goroutines"])
	o.check(capacity, served, peak["RSS"]-idle["RSS"])
	if wallClock && recovered > 5*time.Second {
		t.Errorf("latency was normal again after %v, want 5 s", recovered)
	}
}

// served is how many calls the slow plugin has served.
func (o *overload) served() float64 {
	o.t.Helper()
	m, err := o.metrics()
	o.must(err)
	return m[`wasmproxy_plugin_calls_total{outcome="ok",plugin="10-slow"}`]
}

// check looks at what the overload has done.
func (o *overload) check(capacity, served, memory float64) {
	o.t.Helper()
	// On a busy machine, half of the deadline may pass before a plugin with policy Fail comes to run.
	if few := o.serial / 20; len(o.others) > 0 && (wallClock || len(o.others) > few) {
		o.t.Errorf("%d of %d calls did not end by their deadlines, such as: %s", len(o.others), o.serial, o.others[0])
	}
	if o.codes[codes.DeadlineExceeded] == 0 {
		o.t.Error("all calls succeed: there was no overload")
	}
	least := capacity * overloaded.Seconds() / 5
	if wallClock && served < least { // on a busy machine each of its calls may take longer than its time limit
		o.t.Errorf("10-slow served %.0f calls during the overload, want at least %.0f", served, least)
	}
	// A call in flight has some goroutines, here and in gRPC, and its message.
	if most := 32<<20 + capacity*tenfold*deadline.Seconds()*(64<<10); memory > most {
		o.t.Errorf("RSS grew by %.0f MB, want at most %.0f MB", memory/1e6, most/1e6)
	}
	o.runtime.mu.Lock()
	defer o.runtime.mu.Unlock()
	for _, pod := range o.runtime.pods {
		if pod.GetAnnotations()["example.com/well"] != "yes" {
			o.t.Fatalf("pod %s runs without 20-strict, which has policy Fail", pod.GetMetadata().GetName())
		}
	}
}

// overload makes calls that a slow plugin is called for.
type overload struct {
	*lab
	clients []cri.RuntimeServiceClient
	mu      sync.Mutex
	serial  int
	codes   map[codes.Code]int
	others  []string // calls that ended otherwise than they may
}

// runPod makes a hooked call that ends by a deadline.
func (o *overload) runPod(timeout time.Duration) (time.Duration, error) {
	o.mu.Lock()
	o.serial++
	n := o.serial
	o.mu.Unlock()
	pod, _ := config(0, n)
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	begin := time.Now()
	_, err := o.clients[n%len(o.clients)].RunPodSandbox(ctx, &cri.RunPodSandboxRequest{Config: pod})
	return time.Since(begin), err
}

// alone makes calls one after the other, and returns the seconds that each takes.
func (o *overload) alone(n int) (took []float64) {
	o.t.Helper()
	for range n {
		d, err := o.runPod(requestTimeout)
		o.must(err)
		took = append(took, d.Seconds())
	}
	return took
}

// capacity is how many calls a second are served while there are always some to be served.
func (o *overload) capacity() float64 {
	const callers, each = 8, 8
	begin := time.Now()
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range each {
				if _, err := o.runPod(requestTimeout); err != nil {
					o.t.Errorf("a call below the capacity: %v", err)
				}
			}
		})
	}
	all.Wait()
	return callers * each / time.Since(begin).Seconds()
}

// run makes so many calls a second, however many are not answered, and returns the most of each quantity.
func (o *overload) run(rate float64) (peak map[string]float64) {
	o.codes, peak = map[codes.Code]int{}, map[string]float64{}
	var all sync.WaitGroup
	tick := time.NewTicker(time.Duration(float64(time.Second) / rate))
	defer tick.Stop()
	sampled := time.Now()
	for begin := time.Now(); time.Since(begin) < overloaded; {
		<-tick.C
		all.Go(o.one)
		if time.Since(sampled) > 250*time.Millisecond {
			sampled = time.Now()
			all.Go(func() {
				s, err := o.sample()
				o.mu.Lock()
				defer o.mu.Unlock()
				if err != nil {
					o.t.Errorf("a sample during the overload: %v", err)
				}
				for name, v := range s {
					peak[name] = max(peak[name], v)
				}
			})
		}
	}
	all.Wait()
	return peak
}

// one makes a call, and notes it if it neither succeeds nor ends by its deadline.
func (o *overload) one() {
	took, err := o.runPod(deadline)
	o.mu.Lock()
	defer o.mu.Unlock()
	code := status.Code(err)
	o.codes[code]++
	if code != codes.OK && (code != codes.DeadlineExceeded || took < deadline-50*time.Millisecond) {
		o.others = append(o.others, fmt.Sprintf("a call with a deadline of %v ended after %v: %v", deadline, took, err))
	}
}
