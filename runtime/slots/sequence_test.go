package slots

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/loader"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/status"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

// sequence is a plugin directory to which things happen, and slots that follow it.
type sequence struct {
	*testing.T
	rand     *rand.Rand
	dir      string
	slots    *Slots
	closeAll func()
	history  []string
}

var (
	goodGuests = []string{"noop", "quota", "trap", "counter"}
	badGuests  = []string{"wrong-signature", "missing-hook", "start-trap"}
	goodFiles  = []string{`{}`, `{"failure-policy": "Fail"}`, `{"runtime-hooks": ["PreCreateContainer"]}`, `{"match": {"namespaces": ["a"]}, "order": "99"}`, `{"config": 1}`, `{"limits": {"fuel": 1000000}}`, `{"dry-run": true}`}
	badFiles   = []string{`{"confg": 1}`, `{"failure-policy": "fail"}`, `{"failure-policy": `, `{"limits": {"memory": "64Ki"}}`}
	sequenceID = []string{"10-a", "20-b", "30-c"}
)

// A daemon that has followed any sequence of changes, some of them while others were
// being carried out, is where one is that starts with the same files: but a plugin whose
// replacement cannot be had has the version before.
func TestSequencesOfChanges(t *testing.T) {
	engine := wasm.Options{Interpret: true}
	sequences := 200
	if testing.Short() {
		sequences = 20
	}
	for seed := range sequences {
		s := &sequence{T: t, rand: rand.New(rand.NewPCG(uint64(seed), 9)), dir: t.TempDir()}
		s.slots, s.closeAll = s.open(engine)
		ctx, cancel := context.WithCancel(t.Context())
		go s.slots.run(ctx)
		var list []registry.Description
		for range 2 + s.rand.IntN(10) {
			s.change()
			seen, _ := registry.Read(registry.Dirs{Plugins: s.dir})
			s.slots.post(func(ctx context.Context) { s.slots.update(ctx, registry.List{Plugins: seen, Complete: true}) })
			list = seen
			if s.rand.IntN(3) == 0 {
				s.slots.settle(t)
			}
		}
		s.slots.settle(t)
		cancel()
		<-s.slots.ended
		s.compare(engine, list)
		s.closeAll()
		if t.Failed() {
			t.Fatalf("seed %d: %s", seed, strings.Join(s.history, "; "))
		}
	}
}

func (s *sequence) open(engine wasm.Options) (*Slots, func()) {
	return openSlots(s.T, &config.Config{Backend: s.dir + "/none.sock", PluginDir: s.dir}, engine)
}

// change does something to the files of one plugin.
func (s *sequence) change() {
	id := sequenceID[s.rand.IntN(len(sequenceID))]
	pick := func(of []string) string { return of[s.rand.IntN(len(of))] }
	guests, files := goodGuests, goodFiles
	if s.rand.IntN(3) == 0 {
		guests, files = badGuests, badFiles
	}
	switch s.rand.IntN(5) {
	case 0:
		s.file(id+".wasm", "")
		s.record("%s.wasm removed", id)
	case 1:
		s.file(id+".json", "")
		s.record("%s.json removed", id)
	case 2:
		file := pick(files)
		s.file(id+".json", file)
		s.record("%s.json %s", id, file)
	default:
		guest := pick(guests)
		s.file(id+".wasm", guest)
		s.record("%s.wasm %s", id, guest)
	}
}

func (s *sequence) record(format string, args ...any) {
	s.history = append(s.history, fmt.Sprintf(format, args...))
}

// file puts a file into the directory, whole at once: a module by its guest, or JSON as it
// is. Without content it removes the file.
func (s *sequence) file(name, content string) {
	s.Helper()
	path := filepath.Join(s.dir, name)
	if content == "" {
		os.Remove(path)
		return
	}
	b, err := []byte(content), error(nil)
	if filepath.Ext(name) == ".wasm" {
		b, err = os.ReadFile("../../testdata/wat/" + content + ".wasm")
	}
	if err := errors.Join(err, os.WriteFile(path+".draft", b, 0o644), os.Rename(path+".draft", path)); err != nil {
		s.Fatal(err)
	}
}

// compare holds the daemon's members against those of one that has just begun.
func (s *sequence) compare(engine wasm.Options, list []registry.Description) {
	fresh, closeFresh := s.open(engine)
	defer closeFresh()
	ctx, cancel := context.WithCancel(s.Context())
	go fresh.run(ctx)
	fresh.post(func(ctx context.Context) { fresh.update(ctx, registry.List{Plugins: list, Complete: true}) })
	fresh.settle(s.T)
	cancel()
	<-fresh.ended
	for _, p := range fresh.order {
		have := s.slots.all[p.id]
		switch {
		case have == nil:
			s.Errorf("%s is not known", p.id)
		case p.active == nil && have.active != nil: // its last good version
			if (have.failure() == nil) || (have.description.Problem == nil && have.next.source != p.next.source) {
				s.Errorf("%s: the replacement of %s is not said to have failed", p.id, have.active.source)
			}
		case p.description.Problem != nil && have.description.Problem != nil:
		case (p.active == nil) != (have.active == nil), p.active != nil && p.active.source != have.active.source:
			s.Errorf("%s is not the version that a fresh daemon has", p.id)
		}
	}
	if len(s.slots.all) != len(fresh.all) {
		s.Errorf("%d plugins are known, and %d to a fresh daemon", len(s.slots.all), len(fresh.all))
	}
	s.compareMembers(fresh)
}

// compareMembers holds when plugins are asked, and in which order, against that of a fresh
// daemon, but for those that have their last good version. It looks at what calls ask.
func (s *sequence) compareMembers(fresh *Slots) {
	lastGood := map[string]bool{}
	for id, p := range s.slots.all {
		lastGood[id] = p.failure() != nil && (p.active != nil || p.description.Problem != nil)
	}
	describe := func(members []loader.Member) (all []string) {
		for _, m := range members {
			if !lastGood[m.ID] {
				all = append(all, fmt.Sprint(m.ID, " ", m.Refusing, m.Policy, m.Hooks.Names(), m.Match, m.DryRun, m.Time, m.Capabilities))
			}
		}
		return all
	}
	changed := func(of *Slots) []status.Plugin {
		return slices.DeleteFunc(of.look().Plugins, func(p status.Plugin) bool { return lastGood[p.ID] })
	}
	asked := func(of *Slots) []string {
		g := of.generations.acquire()
		if g == nil {
			return nil
		}
		defer g.Release()
		return describe(g.members)
	}
	if diff := cmp.Diff(changed(fresh), changed(s.slots), timeless); diff != "" {
		s.Errorf("the snapshot differs from that of a fresh daemon (-fresh +have):\n%s", diff)
	}
	if got, want := asked(s.slots), asked(fresh); !slices.Equal(got, want) {
		s.Errorf("calls ask\n%s\nand of a fresh daemon\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
