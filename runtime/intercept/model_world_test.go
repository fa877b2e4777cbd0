package intercept_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/wasmproxy/wasmproxy/runtime/cgroup"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
	"github.com/wasmproxy/wasmproxy/runtime/workqueue"
)

// modelWorld is a node: kubelet with two pods, the runtime, two plugins, and the proxy, which may be killed and started again.
type modelWorld struct {
	t       *testing.T
	r       *rand.Rand
	runtime *modelRuntime
	plugins []*modelPlugin
	pods    []*modelPod
	files   []string // of containers
	serial  int      // of all that has a name

	dir     string // has the state directory and the cgroups of this run of the proxy
	fs      *cgroup.FS
	options intercept.Options
	route   cri.Router

	bypassed bool
	refused  bool // kubelet's next call is
	removed  bool // a plugin was while a call was under way
	reviving bool // what the proxy has saved last may be earlier than what the model knows
	telling  bool // plugins are told of pods
	between  bool // the proxy was killed then: it may have told a plugin what it has not saved

	mu     sync.Mutex
	asked  []modelAsk      // in the call that is under way
	naming map[string]bool // the fields that kubelet changes in it

	meanwhile func(p *modelPod, c *modelContainer, own bool) // what else happens while the runtime has a call or an update; nil: nothing
	inside    bool                                           // that is under way, so that nothing can be waited for

	killing sync.Mutex
	points  int    // until the proxy is killed; 0: it is not
	killed  string // what there was when it was killed: a directory; "": it lives
	where   string

	steps []string
}

// violated notes what the proxy has done that it must not.
func (w *modelWorld) violated(format string, args ...any) {
	w.runtime.mu.Lock()
	defer w.runtime.mu.Unlock()
	w.runtime.wrong = append(w.runtime.wrong, fmt.Sprintf(format, args...))
}

// page is what the kernel counts memory in, in bytes.
const page = 4096

func fieldValue(field string, n int) string {
	if field == "cpuset_cpus" {
		return []string{"0", "1", "0-1", "2-3"}[n]
	}
	return strconv.Itoa((10 + n) * page)
}

// fileValue is one of a plugin's, which nobody else writes.
func fileValue(file string, n int) string {
	switch file {
	case "cpu.max":
		return strconv.Itoa(10_000+n) + " 100000"
	case "memory.max":
		return strconv.Itoa((25 + n) * page)
	case "memory.low":
		return strconv.Itoa((1 + n) * page)
	}
	return strconv.Itoa(5000 + n)
}

func newModelWorld(t *testing.T, seed uint64, base string) *modelWorld {
	w := &modelWorld{t: t, r: rand.New(rand.NewPCG(seed, 22)), files: []string{"pids.max", "memory.low", "cpu.max"}}
	w.dir = filepath.Join(base, "0")
	w.runtime = &modelRuntime{
		cgroups: filepath.Join(w.dir, "cgroup"), whole: seed%2 == 0, point: w.point, slow: w.slow,
		sandboxes: map[string]*modelPod{}, containers: map[string]*modelContainer{},
	}
	if !w.runtime.whole { // else any update lowers it below what is in use
		w.files = append(w.files, "memory.max")
	}
	check(os.MkdirAll(w.runtime.cgroups, 0o755))
	for _, id := range []string{"10-a", "20-b"} {
		w.plugins = append(w.plugins, &modelPlugin{modelWorld: w, id: id})
	}
	for range 2 {
		w.pods = append(w.pods, w.newPod())
	}
	w.start()
	return w
}

func (w *modelWorld) name(prefix string) string {
	w.serial++
	return prefix + strconv.Itoa(w.serial)
}

// newPod is a pod that kubelet has made the cgroup of.
func (w *modelWorld) newPod() *modelPod {
	p := &modelPod{uid: w.name("u"), containers: map[string]*modelContainer{}, attempts: map[string]uint32{}}
	p.modelObject = modelObject{group: "kubepods/pod" + p.uid, foreign: map[string]string{}, wishes: map[string][]modelWish{}}
	check(os.MkdirAll(filepath.Join(w.runtime.cgroups, p.group), 0o755))
	for file, text := range map[string]string{"pids.max": "max", "memory.max": "max", "cpu.max": "max 100000"} {
		p.write(w.runtime, file, text)
	}
	return p
}

func (w *modelWorld) podOf(uid string) *modelPod {
	for _, p := range w.pods {
		if p.uid == uid {
			return p
		}
	}
	panic("no pod " + uid)
}

func (r *modelRuntime) container(id string) *modelContainer {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.containers[id]
}

func (r *modelRuntime) containersOf(p *modelPod) []*modelContainer {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of(p)
}

func (r *modelRuntime) all() (all []*modelContainer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.containers {
		all = append(all, c)
	}
	return all
}

// modelObserver is where the proxy may be killed after it has written a file.
type modelObserver struct{ *modelWorld }

func (o modelObserver) Wants(k observe.Kind) bool { return k == observe.KindCgroupFileWritten }

func (o modelObserver) Observe(_ context.Context, e observe.Event) {
	switch e := e.(type) {
	case *observe.CgroupFileWritten, *observe.CgroupFileUndone, *observe.CgroupFileRepaired:
		o.point("after a write")
	case *observe.Panicked:
		o.violated("a panic in %s: %s\n%s", e.During, e.Panic, e.Stack)
	}
}

// start starts the proxy, which has nothing but the state directory.
func (w *modelWorld) start() {
	var err error
	w.fs, err = cgroup.Open(w.runtime.cgroups, "v2")
	check(err)
	records, err := enforce.OpenLedger(w.t.Context(), filepath.Join(w.dir, "state"), observe.Discard())
	check(err)
	w.options = intercept.Options{Keep: func() func() { return func() {} }, CallTime: time.Hour, Enforcer: enforce.Enforcer{
		Observer: modelObserver{w}, Store: pods.NewStore(), Backend: w.runtime, Ledger: records, Cgroups: w.fs, Queue: workqueue.New(),
		Node: &crifield.Node{CgroupVersion: 2, Memory: 32 << 30},
	}}
	for _, p := range w.plugins {
		p.synchronized = intercept.NewSynchronized()
	}
	if w.between {
		w.between = false
		w.forget(records)
	}
	w.load()
	w.connect()
}

// forget ends the wishes that are not in the records.
func (w *modelWorld) forget(records *enforce.Ledger) {
	lost := func(o *modelObject, id enforce.ID) {
		record := records.Record(id).Values()
		for target, wishes := range o.wishes {
			o.wishes[target] = slices.DeleteFunc(wishes, func(wish modelWish) bool {
				saved := func(has enforce.Wish) bool { return has.Plugin == wish.plugin }
				return !slices.ContainsFunc(record[enforce.Target(target)].Wishes, saved)
			})
		}
	}
	for _, p := range w.pods {
		lost(&p.modelObject, enforce.ID{Pod: p.uid})
	}
	for _, c := range w.runtime.all() {
		lost(&c.modelObject, enforce.ID{Pod: c.pod.uid, Container: c.id})
	}
}

// stop ends the proxy.
func (w *modelWorld) stop() {
	w.drain()
	check(w.options.Ledger.Close())
	check(w.fs.Close())
}

func (w *modelWorld) drain() {
	if !w.inside {
		check(w.options.Queue.Drain(context.Background()))
	}
}

// slow is a call or an update that the runtime has for a while.
func (w *modelWorld) slow(p *modelPod, c *modelContainer, own bool) {
	w.killing.Lock()
	do, points := w.meanwhile, w.points
	if do == nil || w.runtime.dead {
		w.killing.Unlock()
		return
	}
	w.meanwhile, w.points = nil, 0
	w.killing.Unlock()
	if !own {
		w.inside = true
	}
	do(p, c, own)
	if !own {
		w.inside = false
	}
	w.killing.Lock()
	defer w.killing.Unlock()
	w.points = points
}

// load has calls go through the plugins of the moment.
func (w *modelWorld) load() {
	o := &w.options
	o.NewChain = func(m ...plugin.Member) *plugin.Chain { return plugin.NewChain(o.Observer, w.fs.Version(), m...) }
	o.Generations, o.Synchronized = map[string]string{}, nil
	for _, p := range w.plugins {
		o.Generations[p.id] = p.generation
		if p.active() {
			o.Synchronized = append(o.Synchronized, p.synchronized)
		}
	}
	var members []plugin.Member
	for _, p := range w.plugins {
		if p.active() {
			members = append(members, p.synchronized.Member(*o, p.member()))
		}
	}
	o.Chain = o.NewChain(members...)
	w.route = intercept.Router(*o)
}

// connect is a new connection to the runtime.
func (w *modelWorld) connect() {
	for _, c := range w.runtime.all() {
		if c.unsettled {
			c.changes += 1 + len(w.plugins) // what was refused is sent again, and again when a plugin asks
		}
	}
	check(w.options.Store.Sync(w.t.Context(), w.runtime))
	w.options.DropGone()
	w.end()
	resync(w.t.Context(), &w.options.Enforcer)
	w.drain()
	w.sweep()
}

// end ends the wishes of plugins that are not there any more.
func (w *modelWorld) end() {
	gone := func(wish modelWish) bool { g := w.presentOf(wish.plugin); return g == nil || g.Nothing }
	for _, p := range w.pods {
		p.withdraw(gone)
	}
	for _, c := range w.runtime.all() {
		c.endWishes(gone)
	}
	intercept.End(w.t.Context(), &w.options.Enforcer, w.presentOf)
	w.drain()
}

// sweep tells the plugins of the pods that they do not know.
func (w *modelWorld) sweep() {
	w.telling = true
	defer func() { w.telling = false }()
	for _, p := range w.plugins {
		if p.active() {
			open := w.runtime.shut()
			_, err := p.synchronized.Sweep(w.t.Context(), w.options, p.member(), nil)
			open()
			check(err)
			w.drain()
		}
	}
}

// call is one of kubelet's. It reports false if kubelet gets no answer, or a refusal.
func (w *modelWorld) call(method string, p *modelPod, c *modelContainer, req, answer proto.Message) (ok bool) {
	w.asked = nil
	time.Sleep(time.Millisecond) // what plugins have asked for is earlier than the call
	next := func(_ context.Context, sent *cri.Frame) (*cri.Frame, error) {
		w.point("before " + method)
		w.slow(p, c, false)
		decoded := req.ProtoReflect().New().Interface()
		check(sent.Decode(decoded))
		if w.refused {
			return nil, errRefused
		}
		if err := w.runtime.serve(p, c, decoded); err != nil {
			return nil, err
		}
		w.slow(p, c, false)
		w.point("after " + method)
		return cri.NewFrame(answer)
	}
	frame, err := cri.NewFrame(req)
	check(err)
	through := w.route(service + method)
	if through == nil || w.bypassed && w.options.Ledger.Empty() {
		_, err = next(w.t.Context(), frame)
	} else {
		_, err = through(w.t.Context(), &cri.Call{Request: frame}, next)
	}
	w.drain()
	w.refused = false
	if w.killed != "" { // it was saved before anything was sent
		w.grant(slices.DeleteFunc(w.asked, func(a modelAsk) bool { return a.of == nil || c != nil && !strings.HasPrefix(a.target, "field ") }))
	}
	return err == nil && w.killed == ""
}

// resources are those of a request with kubelet's values of the fields.
func (c *modelContainer) resources(fields ...string) map[string]string {
	named := map[string]string{}
	for _, f := range fields {
		if c.kubelet[f] != "" {
			named[f] = c.kubelet[f]
		}
	}
	return named
}
