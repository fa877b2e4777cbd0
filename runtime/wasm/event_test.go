package wasm

import (
	"bytes"
	"context"
	"iter"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/observe/slogsink"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// testEvent is one event with everything that guests of this package's tests
// read. What the proxy makes of a CRI message is intercept's to test.
type testEvent struct {
	hook    abi.Hook
	at      time.Time
	ints    map[slot]int64
	texts   map[slot]string
	maps    map[slot]map[string]string
	lists   map[slot][]string
	files   map[string]string         // of all objects
	kinds   map[abi.Object]abi.Object // of handles
	finds   map[string]abi.Object
	pods    map[string][]abi.Object // by namespace
	members map[abi.Object][]abi.Object
	outside []abi.Object // handles that no match accepts
}

type slot struct {
	object abi.Object
	field  abi.Field
}

var at = time.Date(2026, 11, 21, 7, 0, 0, 123456789, time.UTC)

func newEvent() *testEvent {
	return &testEvent{
		hook: abi.PreCreateContainer,
		at:   at,
		ints: map[slot]int64{
			{abi.Event, abi.EventHook}:                      int64(abi.PreCreateContainer),
			{abi.Container, abi.Resources + abi.CPUQuota}:   -1,
			{abi.Container, abi.Resources + abi.CPUPeriod}:  100_000,
			{abi.Node, abi.NodeCgroupVersion}:               2,
			{abi.FirstHandle, abi.Resources + abi.CPUQuota}: 50_000,
		},
		texts: map[slot]string{
			{abi.Pod, abi.PodName}:                "web-0",
			{abi.Pod, abi.PodNamespace}:           "prod",
			{abi.Pod, abi.PodHostname}:            "",
			{abi.Container, abi.ContainerName}:    "app",
			{abi.FirstHandle, abi.ContainerName}:  "sidecar",
			{abi.Node, abi.NodeRuntimeName}:       "containerd",
			{abi.Container, abi.ContainerImage}:   "registry.example/app:1",
			{abi.Pod, abi.PodCgroupParent}:        "/kubepods/burstable/pod1",
			{abi.Pod, abi.PodRuntimeHandler}:      "runc",
			{abi.Container, abi.Resources + 5}:    "0-3",
			{abi.Container, abi.ContainerEnv + 9}: "bytes \xff\xfe that are not UTF-8",
		},
		maps: map[slot]map[string]string{
			{abi.Pod, abi.PodLabels}:                  {"tier": "gold", "app": "web"},
			{abi.Pod, abi.PodAnnotations}:             {},
			{abi.Container, abi.ContainerAnnotations}: {"example.com/empty": ""},
			{abi.Container, abi.ContainerEnv}:         {"PATH": "/bin", "EMPTY": ""},
		},
		lists: map[slot][]string{
			{abi.Container, abi.ContainerCommand}:            {"/bin/app", ""},
			{abi.Container, abi.ContainerArgs}:               {},
			{abi.Container, abi.ContainerSupplementalGroups}: {"1000", "2000"},
		},
		files:   map[string]string{"cpu.weight": "100"},
		kinds:   map[abi.Object]abi.Object{abi.FirstHandle: abi.Container, abi.FirstHandle + 1: abi.Pod, abi.FirstHandle + 2: abi.Container},
		pods:    map[string][]abi.Object{"prod": {abi.FirstHandle + 1}, "": {abi.FirstHandle + 1, abi.FirstHandle + 3}},
		finds:   map[string]abi.Object{"prod/web-1": abi.FirstHandle + 1},
		members: map[abi.Object][]abi.Object{abi.Pod: {abi.FirstHandle, abi.FirstHandle + 2}, abi.FirstHandle + 1: nil},
	}
}

// asking is newEvent with the word that fickle.wat obeys.
func asking(word string) *testEvent {
	ev := newEvent()
	ev.maps[slot{abi.Container, abi.ContainerAnnotations}]["example.com/do"] = word
	return ev
}

// Secrets are all values of environments.
func (e *testEvent) Secrets(abi.CapabilitySet, int) (values []string, next int) {
	for of, env := range e.maps {
		if of.field == abi.ContainerEnv && e.Kind(of.object) == abi.Container {
			values = slices.AppendSeq(values, maps.Values(env))
		}
	}
	return values, 1
}

func (e *testEvent) Hook() abi.Hook  { return e.hook }
func (e *testEvent) Time() time.Time { return e.at }

func (e *testEvent) Int64(o abi.Object, f abi.Field) (int64, abi.Errno) {
	return lookup(e.ints, slot{o, f})
}

func (e *testEvent) Text(o abi.Object, f abi.Field) (string, abi.Errno) {
	return lookup(e.texts, slot{o, f})
}

func (e *testEvent) Lookup(o abi.Object, f abi.Field, key string) (string, abi.Errno) {
	return lookup(e.maps[slot{o, f}], key)
}

func (e *testEvent) Entries(o abi.Object, f abi.Field) (iter.Seq2[string, string], abi.Errno) {
	m, errno := lookup(e.maps, slot{o, f})
	return func(yield func(string, string) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}, errno
}

func (e *testEvent) List(_ context.Context, o abi.Object, f abi.Field) ([]string, abi.Errno) {
	return lookup(e.lists, slot{o, f})
}

func (e *testEvent) Raw(has abi.CapabilitySet) ([]byte, abi.Errno) {
	return []byte(strings.Join(has.Names(), " ")), abi.OK
}

func (e *testEvent) ReadFiles(_ context.Context, o abi.Object, files []string, each func(string, abi.Errno)) {
	for _, file := range files {
		text, errno := lookup(e.files, file)
		if o == noObject {
			text, errno = "", abi.NotFound
		}
		each(text, errno)
	}
}

func (e *testEvent) Kind(o abi.Object) abi.Object {
	if kind, ok := e.kinds[o]; ok {
		return kind
	}
	return o
}

func (e *testEvent) Own(o abi.Object) bool { return o == abi.FirstHandle+2 }

// Within refuses the outside handles to a plugin with bounds.
func (e *testEvent) Within(o abi.Object, match *abi.Match) bool {
	return match == nil || !slices.Contains(e.outside, o)
}

func (e *testEvent) within(all []abi.Object, errno abi.Errno, match *abi.Match) ([]abi.Object, int, abi.Errno) {
	in := slices.DeleteFunc(slices.Clone(all), func(o abi.Object) bool { return !e.Within(o, match) })
	return in, len(all), errno
}

func (e *testEvent) Pods(namespace string, match *abi.Match) ([]abi.Object, int, abi.Errno) {
	all, errno := lookup(e.pods, namespace)
	return e.within(all, errno, match)
}

func (e *testEvent) Find(kind int32, name string, match *abi.Match) (abi.Object, abi.Errno) {
	o, errno := lookup(e.finds, name)
	if kind != abi.ByPodName || !e.Within(o, match) {
		return 0, abi.NotFound
	}
	return o, errno
}

func (e *testEvent) Containers(pod abi.Object, match *abi.Match) ([]abi.Object, int, abi.Errno) {
	all, errno := lookup(e.members, pod)
	return e.within(all, errno, match)
}

func lookup[K comparable, V any](m map[K]V, k K) (V, abi.Errno) {
	v, ok := m[k]
	if !ok {
		return v, abi.NotFound
	}
	return v, abi.OK
}

// Apply implements plugin.Subject as far as guests here write.
func (e *testEvent) Apply(changes []plugin.Owned) {
	for _, o := range changes {
		c := o.Change
		switch s := (slot{c.Object, c.Field}); c.Op {
		case plugin.SetInt64:
			e.ints[s] = c.Int
		case plugin.SetText:
			e.texts[s] = c.Text
		case plugin.SetEntry:
			e.maps[s][c.Key] = c.Text
		case plugin.DeleteEntry:
			delete(e.maps[s], c.Key)
		}
	}
}

// Exempt implements plugin.Subject: policy holds.
func (e *testEvent) Exempt() bool { return false }

func (e *testEvent) About() observe.Object { return observe.Object{Namespace: "prod", Pod: "web-0"} }

// record is what was logged. It is safe for concurrent use.
type record struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (r *record) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.b.Write(b)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.b.String()
}

func (r *record) logger() observe.Observer {
	return slogsink.New(slog.New(slog.NewTextHandler(r, &slog.HandlerOptions{Level: slog.LevelDebug})))
}

func newEngine(t testing.TB, o Options) *Engine {
	t.Helper()
	e, err := NewEngine(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e
}

// wat returns a module of testdata/wat.
func wat(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "testdata", "wat", name+".wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// load loads a module of testdata/wat. No limit of its own disturbs a test that
// sets none, and all that the guest declares is granted.
func load(t testing.TB, e *Engine, name string, o PluginOptions) plugin.Plugin {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	if o.Set.Fuel == 0 {
		o.Set.Fuel = math.MaxInt64
	}
	if o.Granted == 0 {
		o.Granted = abi.AllCapabilities
	}
	p, err := e.Load(t.Context(), name, wat(t, name), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return p
}

// callPlugin calls a plugin about ev and returns what it wants changed.
func callPlugin(ctx context.Context, p plugin.Plugin, ev plugin.Event) ([]plugin.Change, error) {
	adj := plugin.NewAdjustment(ev.Hook(), 2)
	err := p.Call(ctx, nil, ev, adj)
	return adj.Changes(), err
}

// wantError fails unless err is one printable line that holds want.
func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil {
		t.Fatalf("got no error, want one with %q", want)
	}
	if !strings.Contains(err.Error(), want) {
		t.Errorf("got error %q, want one with %q", err, want)
	}
	if text := err.Error(); text != plugin.Printable(text, len(text)) {
		t.Errorf("error is not one printable line: %q", text)
	}
}
