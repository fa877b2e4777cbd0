package enforce_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// world is a node with one pod and two containers: what the kernel holds, and what everybody
// wants, in the plainest form.
type world struct {
	t      *testing.T
	dir    string
	ledger *enforce.Ledger
	kernel map[enforce.ID]map[string]string
	model  map[enforce.ID]map[string]*wanted
}

type wanted struct {
	kubelet string
	wishes  []string // "plugin value", in the order of the first asking
}

var (
	objects = []enforce.ID{{Pod: "u1"}, {Pod: "u1", Container: "a"}, {Pod: "u1", Container: "b"}}
	files   = []string{"cpu.max", "memory.high", "pids.max"}
	plugins = []string{"10-a", "20-b", "30-c"}
)

func newWorld(t *testing.T) *world {
	w := &world{t: t, dir: filepath.Join(t.TempDir(), "state"), kernel: map[enforce.ID]map[string]string{}, model: map[enforce.ID]map[string]*wanted{}}
	for _, id := range objects {
		w.born(id)
	}
	w.open()
	return w
}

func (w *world) born(id enforce.ID) {
	w.kernel[id], w.model[id] = map[string]string{}, map[string]*wanted{}
	for _, f := range files {
		w.kernel[id][f], w.model[id][f] = "max", &wanted{kubelet: "max"}
	}
}

// open is a restart of the proxy.
func (w *world) open() {
	if w.ledger != nil {
		w.ledger.Close()
	}
	l, err := enforce.OpenLedger(w.t.Context(), w.dir, observe.Discard())
	if err != nil {
		w.t.Fatal(err)
	}
	w.ledger = l
	w.t.Cleanup(func() { l.Close() })
}

// show is how the kernel shows a value: it rounds, as a quota with systemd is rounded.
func show(value string) string {
	if n, err := strconv.Atoi(value); err == nil {
		return strconv.Itoa(n / 10 * 10)
	}
	return value
}

// rounding is the kernel that show is of, as the ledger knows it.
type rounding struct{ plain }

func (rounding) Holds(_, value, held string) bool { return show(value) == held }

// carry does what package intercept does.
func (w *world) carry(id enforce.ID, why enforce.Why) {
	held := enforce.Held{}
	for _, f := range w.ledger.Record(id).Files() {
		held[f] = w.kernel[id][f]
	}
	var done []enforce.Done
	for _, due := range w.ledger.Record(id).Begin(held, why, rounding{}) {
		if show(due.Value) == w.kernel[id][due.File] {
			w.t.Errorf("%v %s: %s is written, and is there", id, due.File, due.Value)
		}
		w.kernel[id][due.File] = show(due.Value)
		done = append(done, enforce.Done{Write: due, Read: show(due.Value)})
	}
	w.ledger.Record(id).End(done)
}

func (w *world) ask(id enforce.ID, file, plugin, value string) {
	m := w.model[id][file]
	i := slices.IndexFunc(m.wishes, func(s string) bool { return s[:len(plugin)] == plugin })
	if i < 0 {
		m.wishes = append(m.wishes, plugin+" "+value)
	} else {
		m.wishes[i] = plugin + " " + value
	}
	w.ledger.Record(id).Ask(enforce.Asked{Target: enforce.File(file), Wish: enforce.Wish{Plugin: plugin, Hook: abi.Tick, Value: value, At: time.Now()}})
}

func (w *world) removePlugin(plugin string) {
	for _, files := range w.model {
		for _, m := range files {
			m.wishes = slices.DeleteFunc(m.wishes, func(s string) bool { return s[:len(plugin)] == plugin })
		}
	}
	for _, id := range w.ledger.Withdraw(func(_ enforce.ID, _ enforce.Target, v enforce.Wish) bool { return v.Plugin == plugin }) {
		w.carry(id, enforce.Called)
	}
}

// check compares the kernel with the model.
func (w *world) check(step string) {
	w.t.Helper()
	for id, files := range w.model {
		for f, m := range files {
			want := m.kubelet
			if len(m.wishes) > 0 {
				want = show(m.wishes[0][len(plugins[0])+1:])
			}
			if got := w.kernel[id][f]; got != want {
				w.t.Fatalf("%s: %v %s is %s, want %s; the ledger has %+v", step, id, f, got, want, w.ledger.Record(id).Values()[enforce.File(f)])
			}
		}
	}
}

// TestAnySequence holds that after any sequence of kubelet's writes, wishes of plugins,
// restarts of the proxy, and removals of plugins and containers, the kernel holds what the
// ledger says, and after the removal of all plugins, what kubelet wrote last.
func TestAnySequence(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t)
		for step := range 60 {
			id, f, p := objects[r.IntN(len(objects))], files[r.IntN(len(files))], plugins[r.IntN(len(plugins))]
			what := fmt.Sprintf("seed %d, step %d", seed, step)
			switch r.IntN(10) {
			case 0, 1, 2, 3:
				what += " ask"
				w.ask(id, f, p, strconv.Itoa(1000+r.IntN(100)))
				w.carry(id, enforce.Called)
			case 4, 5, 6:
				what += " kubelet"
				value := strconv.Itoa(10 * (1000 + r.IntN(100)))
				w.kernel[id][f], w.model[id][f].kubelet = value, value
				w.carry(id, enforce.Called)
				if len(w.ledger.Record(id).Files()) > 0 && len(w.model[id][f].wishes) == 0 && w.kernel[id][f] != value {
					t.Errorf("%s: a file that no plugin wants was written", what)
				}
			case 7:
				what += " restart"
				w.open()
				for _, id := range objects {
					w.carry(id, enforce.Called)
				}
			case 8:
				what += " plugin removed"
				w.removePlugin(p)
			case 9:
				what += " object removed"
				if id.Container != "" {
					w.ledger.Record(id).Remove()
					w.born(id)
				}
			}
			w.check(what)
		}
		for _, p := range plugins {
			w.removePlugin(p)
		}
		w.check(fmt.Sprintf("seed %d, all plugins removed", seed))
		if left := w.ledger.Objects(); len(left) > 0 {
			t.Fatalf("seed %d: %v remain, %+v", seed, left, w.ledger.Record(left[0]).Values())
		}
	}
}

// TestKilledAtAnyWrite holds that a proxy that is killed between two steps of a write neither
// takes its own value for kubelet's nor loses a wish.
func TestKilledAtAnyWrite(t *testing.T) {
	id := objects[1]
	for _, killed := range []string{"after the wish", "before the write", "after the write"} {
		w := newWorld(t)
		w.ask(id, "cpu.max", "10-a", "100")
		w.carry(id, enforce.Called)
		w.ask(id, "cpu.max", "10-a", "205") // the kernel shows 200
		if killed != "after the wish" {
			w.ledger.Record(id).Begin(enforce.Held{"cpu.max": "100"}, enforce.Called, rounding{})
		}
		if killed == "after the write" {
			w.kernel[id]["cpu.max"] = "200"
		}
		w.open()
		w.carry(id, enforce.Scan)
		w.check(killed)
		w.removePlugin("10-a")
		w.check(killed + ", the plugin removed")
	}
}
