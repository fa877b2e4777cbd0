package load

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

var duration = flag.Duration("duration", 3*time.Minute, "of the soak; make soak gives it")

const (
	rate  = 500 // hooked calls a second. A busy machine may not reach it.
	slots = 120 // pods at a time

	// cycle is how often everything that disturbs happens once. A third of the time that counts has
	// several, so that the median does not see which of them it begins with.
	cycle = 15 * time.Second
	// warmUp is the part of the time that does not count.
	warmUp = 4 // a quarter
)

// soaked are the plugins: id, module and JSON. The JSON of 40-noop and the module of 30-turn change in each cycle.
var soaked = [][3]string{
	{"10-qos", "plugins-wasm/qos/qos.wasm", ""},
	{"20-fickle", "testdata/wat/fickle.wasm", ""},
	{"30-turn", "testdata/wat/quota.wasm", ""},
	{"40-noop", "testdata/wat/noop.wasm", `{}`},
	{"90-audit", "plugins-wasm/audit/audit.wasm", ""},
}

// TestSoak runs pods for a time, while plugins change, fail and run out of fuel, the hook server hangs and
// the container runtime goes away and comes back. Nothing may grow: not memory, goroutines, file descriptors, the
// store, values, files or series of metrics. No call may fail but for a runtime that is away. When all pods
// are gone, nothing of them is left.
func TestSoak(t *testing.T) {
	if *duration < 4*cycle {
		t.Fatalf("-duration is %v, want at least %v, so that each third has a whole cycle", *duration, 4*cycle)
	}
	l := newLab(t)
	l.must(l.builder.Koordinator(t.Context(), l.dir))
	for _, p := range soaked {
		l.plugin(p[0], p[1], p[2])
	}
	server := l.startHookServer()
	l.start(len(soaked) + 1)
	load := &traffic{client: l.dial(), pace: &pace{gap: time.Second / rate}}
	before, err := l.sample()
	l.must(err)

	ctx, stop := context.WithTimeout(t.Context(), *duration)
	defer stop()
	begin, seen := time.Now(), tracks{}
	var all sync.WaitGroup
	all.Go(func() { load.run(ctx, slots) })
	all.Go(func() {
		defer stop() // early, if the proxy does not answer
		l.watch(ctx, load, begin.Add(*duration/warmUp), seen)
	})
	cycles := l.disturb(ctx, load, server)
	all.Wait()
	t.Logf("%d calls in %v (%.0f/s), %d failed while the runtime was away\n%s", load.calls.Load(), time.Since(begin).Round(time.Second),
		float64(load.calls.Load())/time.Since(begin).Seconds(), load.retried.Load(), seen.table())
	l.checkFlat(seen)
	for _, f := range load.failures {
		t.Error(f)
	}
	l.checkFaults(load, cycles)
	l.checkNothingLeft(before)
}

// startHookServer starts a hook server with Koordinator's types, and registers it.
func (l *lab) startHookServer() *exec.Cmd {
	l.t.Helper()
	cmd := l.run("koordinator", "serve", l.path("hook.sock"))
	registration, err := json.Marshal(map[string]any{
		"remote-endpoint": l.path("hook.sock"), "failure-policy": "Ignore", "timeout": "200ms",
		"runtime-hooks": []string{"PreRunPodSandbox", "PreCreateContainer", "PreUpdateContainerResources"},
	})
	l.must(err)
	l.put("hooks", "50-koordinator.json", registration)
	return cmd
}

// disturb changes plugins, hangs the hook server and restarts the runtime, once each in each cycle. It returns
// how many cycles were whole. On a busy machine each takes longer, so that there are fewer.
func (l *lab) disturb(ctx context.Context, load *traffic, server *exec.Cmd) (cycles int) {
	after := func(d time.Duration) bool {
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
		return ctx.Err() == nil
	}
	for ; ; cycles++ {
		if !after(cycle / 5) {
			return cycles
		}
		l.plugin("30-turn", [2]string{"testdata/wat/patient.wasm", "testdata/wat/quota.wasm"}[cycles%2], "")
		l.put("plugins.d", "40-noop.json", fmt.Appendf(nil, `{"config": {"n": %d}}`, cycles%2))
		if !after(cycle / 5) {
			return cycles
		}
		l.must(server.Process.Signal(syscall.SIGSTOP))
		ok := after(time.Second)
		l.must(server.Process.Signal(syscall.SIGCONT))
		if !ok || !after(cycle/5) {
			return cycles
		}
		l.restartRuntime(load, after)
		if !after(2*cycle/5 - 3*time.Second) {
			return cycles
		}
	}
}

// restartRuntime has the runtime away for a second. A call that began before the proxy reached it again may fail.
func (l *lab) restartRuntime(load *traffic, after func(time.Duration) bool) {
	load.away.Store(true)
	l.runtime.stop()
	after(time.Second)
	l.must(l.runtime.start())
	for range 200 {
		if m, err := l.metrics(); err == nil && m["wasmproxy_backend_connected"] == 1 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	after(time.Second) // until the calls that failed are answered
	load.away.Store(false)
}

// watch takes a sample each second from a time on, until the context ends or the proxy does not answer. No call is in flight
// meanwhile: on a busy machine there would be more of them.
func (l *lab) watch(ctx context.Context, load *traffic, from time.Time, seen tracks) {
	for tick := time.NewTicker(time.Second); ; {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			if now.Before(from) {
				continue
			}
			load.calling.Lock()
			s, err := l.sample()
			load.calling.Unlock()
			if err != nil {
				l.t.Errorf("a sample: %v", err)
				return
			}
			seen.add(s)
		}
	}
}

// inMinutes is the slack of the memory in a short soak, in which Go's collector and a busy machine move it by
// some megabytes. A leak of 400 bytes a call is more than that after 3 minutes of 200 calls/s.
const inMinutes = 10e6

// few is the slack of numbers that are small.
var few = map[string]float64{"goroutines": 5, "file descriptors": 2}

// bounds are of what follows the number of pods, which goes up and down. Each sample is held against them.
var bounds = map[string]float64{
	"pods": slots, "containers": slots, "objects with values": slots, "values": 2 * slots, "state-dir's files": 10,
	"state-dir's bytes": 3*slots<<10 + 64<<10, // the journal has up to twice what it needs, and is written anew beside itself
}

func (l *lab) checkFlat(seen tracks) {
	if len(seen["RSS"]) < 3 {
		l.t.Fatalf("there are %d samples", len(seen["RSS"]))
	}
	for name, samples := range seen {
		bound, ok := bounds[name]
		if top := slices.Max(samples); ok && top > bound {
			l.t.Errorf("%s: there were %.0f, want at most %.0f", name, top, bound)
		}
		slack := few[name]
		if name == "RSS" && *duration < 10*time.Minute {
			slack = inMinutes
		}
		if !ok && samples.grown(slack) {
			first, last := samples.thirds()
			l.t.Errorf("%s grew by more than 5 %%: median of the first third %.0f, of the last %.0f", name, first, last)
		}
	}
}

// checkFaults demands that everything that was to go wrong did, in each whole cycle but perhaps the last one.
func (l *lab) checkFaults(load *traffic, cycles int) {
	m, err := l.metrics()
	l.must(err)
	if least := int(*duration / cycle / 2); cycles < least {
		l.t.Errorf("there were %d cycles of disturbances in %v, want at least %d", cycles, *duration, least)
	}
	least := float64(cycles - 1)
	for what, got := range map[string]float64{
		"restarts of the runtime": m["wasmproxy_backend_disconnects_total"],
		"ends of event streams":   float64(load.streams.Load()),
		"replaced plugins":        m.sum("wasmproxy_plugin_loads_total", `plugin="30-turn",result="replaced"`),
		"changed settings":        m.sum("wasmproxy_plugin_loads_total", `plugin="40-noop",result="replaced"`),
		"failures of 20-fickle":   m.sum("wasmproxy_plugin_failures_total", `plugin="20-fickle"`),
		"hangs of the server":     m.sum("wasmproxy_plugin_failures_total", `plugin="50-koordinator"`),
	} {
		if got < least {
			l.t.Errorf("%s: %.0f, want at least %.0f", what, got, least)
		}
	}
	for _, class := range []string{"trap", "fuel", "error", "time"} {
		if m.sum("wasmproxy_plugin_failures_total", `class="`+class+`"`) == 0 {
			l.t.Errorf("no plugin failed with class %s", class)
		}
	}
	if m["wasmproxy_panics_total"] > 0 || m["wasmproxy_state_write_failures_total"] > 0 {
		l.t.Errorf("panics: %v, failures of state files: %v", m["wasmproxy_panics_total"], m["wasmproxy_state_write_failures_total"])
	}
}

// checkNothingLeft demands that of no pod anything is left.
func (l *lab) checkNothingLeft(before map[string]float64) {
	l.await("nothing is left", func() error {
		s, err := l.sample()
		if err != nil {
			return err
		}
		var left []error
		for _, name := range []string{"pods", "containers", "objects with values", "values"} {
			if s[name] != 0 {
				left = append(left, fmt.Errorf("%.0f %s", s[name], name))
			}
		}
		if s["goroutines"] > before["goroutines"]+few["goroutines"] || s["file descriptors"] > before["file descriptors"]+few["file descriptors"] {
			left = append(left, fmt.Errorf("%.0f goroutines and %.0f file descriptors, before %.0f and %.0f", s["goroutines"], s["file descriptors"], before["goroutines"], before["file descriptors"]))
		}
		return errors.Join(left...)
	})
}
