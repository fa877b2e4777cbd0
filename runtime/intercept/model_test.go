package intercept_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/intercept"
)

var (
	modelSeeds = flag.Uint64("model-seeds", 0, "how many sequences TestModel runs; 0: 200, and 20 under the race detector")
	modelLog   = flag.Int("model-log", 40, "how many of the last steps it shows")
	modelSeed  = flag.Uint64("model-seed", 0, "the first one")
)

const modelSteps = 500

// TestModel holds that after any sequence of what kubelet, the runtime, the operator and others do, and of deaths of the
// proxy, the kernel and the runtime hold the first wish of a plugin that lives, else kubelet's value. The clock is not the
// machine's. A sequence is repeated with -model-seed=N -model-seeds=1; map order and goroutines may differ.
func TestModel(t *testing.T) {
	base, seeds := modelDir(t), *modelSeeds
	if info, _ := debug.ReadBuildInfo(); seeds == 0 {
		seeds = 200
		if slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
			seeds = 20
		}
	}
	for seed := range seeds {
		seed += *modelSeed
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			dir := filepath.Join(base, strconv.FormatUint(seed, 10))
			defer os.RemoveAll(dir)
			synctest.Test(t, func(t *testing.T) { modelSequence(t, seed, dir) })
		})
	}
}

// modelDir is a directory in memory, if there is one: the state is saved at each change.
func modelDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "model")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func modelSequence(t *testing.T, seed uint64, dir string) {
	w := newModelWorld(t, seed, dir)
	defer func() {
		if r := recover(); r != nil {
			t.Errorf("panic: %v, after %q\n%s", r, w.runtime.wrong, debug.Stack())
		}
		if t.Failed() {
			t.Logf("seed %d, the last steps:\n%s", seed, strings.Join(w.steps[max(len(w.steps)-*modelLog, 0):], "\n"))
		}
	}()
	for range modelSteps {
		w.step()
		if t.Failed() {
			return
		}
	}
	for _, p := range w.plugins {
		p.present = false
	}
	if w.bypassed {
		w.bypass()
	}
	w.change()
	w.rest()
	w.alone()
	w.stop()
}

// step is one of anything.
func (w *modelWorld) step() {
	time.Sleep(time.Duration(1+w.r.IntN(3000)) * time.Millisecond)
	for _, c := range w.runtime.all() {
		c.attempts, c.changes = 0, 0
	}
	if w.r.IntN(15) == 0 {
		w.points = 1 + w.r.IntN(4)
	}
	if w.r.IntN(10) == 0 {
		w.meanwhile = w.another(w.r.IntN(3), w.plugins[w.r.IntN(len(w.plugins))])
	}
	p := w.pods[w.r.IntN(len(w.pods))]
	name := []string{"a", "b"}[w.r.IntN(2)]
	what := ""
	switch n := w.r.IntN(100); {
	case n < 50:
		what = w.kubelet(p, name)
	case n < 53:
		what = w.removeSandbox(p)
	case n < 62:
		what = w.others(p, name)
	case n < 70:
		what = w.useMemory(p, name)
	case n < 82:
		what = w.plugin(w.plugins[w.r.IntN(len(w.plugins))])
	case n < 84:
		what = w.bypass()
	case n < 87:
		what = "the runtime refuses"
		if w.runtime.refuses != nil {
			what = "the runtime takes updates again"
			w.runtime.refuses = nil
		} else {
			w.runtime.refuses = errRefused
		}
	case n < 90:
		what = "kubelet's next call is refused"
		w.refused = true
	case n < 92:
		what = "restart"
		w.restart()
	case n < 94:
		what = "a new connection to the runtime"
		w.connect()
	case n < 96:
		what = "reload of systemd"
		w.reload()
	default:
		what = "scan"
		w.options.ScanPart(w.t.Context(), w.r.Uint64())
		w.drain()
	}
	w.steps = append(w.steps, what)
	w.revive()
	if w.meanwhile = nil; w.removed {
		w.removed = false
		w.change() // with what the call has noted after that
	}
	w.check(what)
	if w.r.IntN(4) == 0 {
		w.rest()
	}
}

// another is what happens while the runtime has a call, or an update of the proxy's own.
func (w *modelWorld) another(kind int, plugin *modelPlugin) func(*modelPod, *modelContainer, bool) {
	return func(_ *modelPod, c *modelContainer, own bool) {
		switch {
		case kind == 0 && !own:
			w.steps = append(w.steps, "  meanwhile "+plugin.id+" is removed")
			plugin.present, w.removed = false, true
			w.load()
			w.end()
		case kind == 1 && own && c.state == runtimeapi.ContainerState_CONTAINER_RUNNING:
			w.steps = append(w.steps, "  meanwhile "+c.id+" ends by itself")
			w.runtime.mu.Lock()
			defer w.runtime.mu.Unlock()
			c.end(w.runtime)
		default:
			w.steps = append(w.steps, "  meanwhile files are looked at")
			for _, c := range w.runtime.all() {
				if c.unsettled {
					c.changes++
				}
			}
			for _, p := range w.pods {
				w.options.RepairPod(w.t.Context(), p.uid, "another call")
			}
		}
	}
}

// others write a file, which is what kubelet wants from then on.
func (w *modelWorld) others(p *modelPod, name string) string {
	time.Sleep(11 * time.Minute) // else it would be a fight
	n := strconv.Itoa((100 + w.r.IntN(900)) * page)
	c := p.containers[name]
	if c == nil || c.state != runtimeapi.ContainerState_CONTAINER_RUNNING || w.r.IntN(3) == 0 {
		p.write(w.runtime, "pids.max", n)
		return "somebody writes pids.max of " + p.uid + ": " + n
	}
	f := w.files[w.r.IntN(len(w.files))]
	if f == "cpu.max" {
		n += " 100000"
	}
	c.write(w.runtime, f, n)
	c.use(w.runtime, c.used)
	return "somebody writes " + f + " of " + c.id + ": " + n
}

func (w *modelWorld) useMemory(p *modelPod, name string) string {
	c := p.containers[name]
	if c == nil || c.state != runtimeapi.ContainerState_CONTAINER_RUNNING {
		return "no memory to use"
	}
	c.use(w.runtime, w.r.IntN(120_000))
	c.unsettled = true // what waits for that may be sent
	return fmt.Sprintf("%s uses %d bytes of memory", c.id, c.used)
}

// plugin is a change of the files of a plugin, or a Tick of it.
func (w *modelWorld) plugin(p *modelPlugin) (what string) {
	switch n := w.r.IntN(10); {
	case !p.present, n < 3:
		p.present, p.dry = true, false
		p.next()
		what = fmt.Sprint(p.id, " has generation ", p.generation, " and wants ", p.wants)
	case n < 5:
		p.present = false
		what = p.id + " is removed"
	case n < 6:
		p.dry = true
		p.next()
		what = p.id + " is in dry-run"
	case !p.active() || len(p.wants) == 0:
		return p.id + " has no Tick"
	default:
		wants := slices.Sorted(maps.Keys(p.wants))
		want := wants[w.r.IntN(len(wants))]
		p.wants[want] = p.otherwise(want)
		p.withdraws = map[string]bool{}
		if w.r.IntN(2) == 0 {
			p.withdraws[wants[w.r.IntN(len(wants))]] = true
		}
		if w.r.IntN(2) == 0 {
			return fmt.Sprint(p.id, " wants ", p.wants, " from now on, but not ", p.withdraws)
		}
		w.steps = append(w.steps, fmt.Sprint(p.id, " has a Tick and wants ", p.wants, ", but not ", p.withdraws))
		for again := true; again; again = w.revive() { // what an earlier generation has set ends with a whole tick
			intercept.Tick(w.t.Context(), w.options, p.member(), "")
			w.drain()
		}
		return "that was Tick"
	}
	w.steps = append(w.steps, what)
	w.change()
	return "so it is"
}

func (p *modelPlugin) otherwise(want string) string {
	kind, name, _ := strings.Cut(want, " ")
	if kind == "field" {
		return fieldValue(name, p.r.IntN(4))
	}
	return fileValue(name, p.r.IntN(4))
}

// bypass begins or ends the bypass, in which the proxy does not follow calls.
func (w *modelWorld) bypass() string {
	w.bypassed = !w.bypassed
	w.steps = append(w.steps, fmt.Sprint("bypass: ", w.bypassed))
	for _, p := range w.plugins {
		p.synchronized = intercept.NewSynchronized()
	}
	w.load()
	if w.bypassed {
		w.end()
	} else {
		w.connect()
	}
	return "so it is"
}

// change carries out a change of the plugin set.
func (w *modelWorld) change() {
	w.load()
	w.end()
	w.sweep()
}

// reload is one of systemd, which writes what it knows of containers.
func (w *modelWorld) reload() {
	time.Sleep(11 * time.Minute)
	for _, c := range w.runtime.all() {
		if c.state == runtimeapi.ContainerState_CONTAINER_RUNNING {
			c.write(w.runtime, "pids.max", c.foreign["pids.max"])
		}
	}
	w.options.Repair(w.t.Context(), "a reload of systemd")
	w.drain()
}
