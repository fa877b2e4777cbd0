package delivery

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/registry"
)

// header is what a module begins with.
const header = "\x00asm\x01\x00\x00\x00"

// plugins are those of a delivery in a test: by id, the code and the settings, as in "one {}".
type plugins map[string]string

// files writes the plugins into a directory.
func (all plugins) files(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for id, both := range all {
		code, settings, _ := strings.Cut(both, " ")
		write(t, filepath.Join(dir, id+".wasm"), header+code)
		write(t, filepath.Join(dir, id+".json"), settings)
	}
	return dir
}

// delivery reads plugins of an owner from files, as the command does.
func (all plugins) delivery(t *testing.T, owner string) Delivery {
	t.Helper()
	read, err := Read(all.files(t))
	if err != nil {
		t.Fatal(err)
	}
	return Delivery{Owner: owner, Plugins: read}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// fine is the check of a delivery whose plugins the proxy would load.
func fine(string, string) error { return nil }

func deliver(t *testing.T, d Directory, of Delivery) *Plan {
	t.Helper()
	plan, err := d.Deliver(t.Context(), of, fine)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// has requires that the proxy would find exactly these plugins, and that no other module is left.
func (all plugins) has(t *testing.T, d Directory) {
	t.Helper()
	found, problems := registry.Read(registry.Dirs{Plugins: string(d)})
	if len(problems) > 0 {
		t.Errorf("the proxy finds %v", problems)
	}
	got, modules := plugins{}, map[string]bool{}
	for _, one := range found {
		got[one.ID] = content(t, one)
		modules[filepath.Base(one.Module)] = true
	}
	if !maps.Equal(got, all) {
		t.Errorf("the directory has %q, want %q", got, all)
	}
	entries, err := os.ReadDir(d.path(registry.Modules))
	if err != nil || len(entries) != len(modules) {
		t.Errorf("%d modules lie there, and %d are named, error %v", len(entries), len(modules), err)
	}
}

// content is the code and the settings of a plugin, without the keys that a delivery sets, which come first.
func content(t *testing.T, one registry.Description) string {
	t.Helper()
	module, err := one.ReadModule()
	if err != nil {
		t.Errorf("%s: %v", one.ID, err)
	}
	_, settings, _ := strings.Cut(one.Text, `"sha256": "`+one.Digest+`"`)
	return strings.TrimPrefix(string(module), header) + " {" + strings.TrimPrefix(settings, ", ")
}

// files are the names and contents of all in the directory but for locks.
func files(t *testing.T, d Directory) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(string(d), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestInterleaved: each owner's deliveries change that owner's plugins alone.
func TestInterleaved(t *testing.T) {
	d := Directory(t.TempDir())
	deliver(t, d, plugins{"10-a": "a1 {}", "11-a": "a1 {}"}.delivery(t, "a"))
	deliver(t, d, plugins{"20-b": `b1 {"order": "05"}`}.delivery(t, "b"))
	plugins{"10-a": "a1 {}", "11-a": "a1 {}", "20-b": `b1 {"order": "05"}`}.has(t, d)
	deliver(t, d, plugins{"10-a": "a2 {}"}.delivery(t, "a"))
	deliver(t, d, plugins{"20-b": `b1 {"order": "06"}`, "21-b": "b2 {}"}.delivery(t, "b"))
	plugins{"10-a": "a2 {}", "20-b": `b1 {"order": "06"}`, "21-b": "b2 {}"}.has(t, d)
	if owner, err := d.Owner("20-b"); owner != "b" || err != nil {
		t.Errorf("20-b belongs to %q, error %v", owner, err)
	}
	if plan := deliver(t, d, plugins{"10-a": "a2 {}"}.delivery(t, "a")); len(plan.Write)+len(plan.Remove)+len(plan.Kept)+len(plan.Edited) > 0 {
		t.Errorf("a delivery of what is there is %+v", plan)
	}
}

// TestEmptyDelivery: a delivery without plugins removes an owner's only where that is meant.
func TestEmptyDelivery(t *testing.T) {
	d := Directory(t.TempDir())
	deliver(t, d, plugins{"10-a": "a1 {}"}.delivery(t, "a"))
	deliver(t, d, plugins{"20-b": "b1 {}"}.delivery(t, "b"))
	before := files(t, d)
	if _, err := d.Deliver(t.Context(), Delivery{Owner: "a"}, fine); err == nil || !strings.Contains(err.Error(), `"a" would be removed: 10-a; give --allow-empty`) {
		t.Error(err)
	}
	if !maps.Equal(before, files(t, d)) {
		t.Error("it changes something")
	}
	deliver(t, d, Delivery{Owner: "c"})
	deliver(t, d, Delivery{Owner: "a", MayEmpty: true})
	plugins{"20-b": "b1 {}"}.has(t, d)
}

// TestRefusedChangesNothing: not one file changes if one plugin of a delivery is refused, also those of other plugins.
func TestRefusedChangesNothing(t *testing.T) {
	d := Directory(t.TempDir())
	deliver(t, d, plugins{"10-a": "a1 {}", "11-a": "a1 {}"}.delivery(t, "a"))
	deliver(t, d, plugins{"20-b": "b1 {}"}.delivery(t, "b"))
	write(t, d.path("30-hand.wasm"), header+"hand")
	write(t, d.path("40-hand.json"), `{"remote-endpoint": "/run/x.sock", "runtime-hooks": ["PreRunPodSandbox"]}`)
	before := files(t, d)
	for id, want := range map[string]string{
		"20-b":    `20-b.json belongs to the owner "b"`,
		"30-hand": "30-hand.wasm is there, and no delivery has brought it",
		"40-hand": "40-hand.json is there, and no delivery has brought it",
		"12-a":    "it traps",
	} {
		check := fine
		if id == "12-a" {
			check = func(string, string) error { return errors.New("it traps") }
		}
		of := plugins{"10-a": "a2 {}", id: "a2 {}"}.delivery(t, "a")
		if _, err := d.Deliver(t.Context(), of, check); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", id, err)
		}
		if now := files(t, d); !maps.Equal(before, now) {
			t.Errorf("%s is refused, and the files are then %q, before %q", id, slices.Sorted(maps.Keys(now)), slices.Sorted(maps.Keys(before)))
		}
	}
}

// TestDamagedRecord: nothing changes until somebody does what the error says.
func TestDamagedRecord(t *testing.T) {
	d := Directory(t.TempDir())
	of := plugins{"10-a": "a1 {}"}.delivery(t, "a")
	deliver(t, d, of)
	for _, text := range []string{"", `{"plugins":{"10-a":{"owner":"a"}}}`} {
		write(t, d.path(ownDir, recordFile), text)
		before := files(t, d)
		if _, err := d.Deliver(t.Context(), of, fine); err == nil || !strings.Contains(err.Error(), recordFile) {
			t.Errorf("%q: %v", text, err)
		}
		if !maps.Equal(before, files(t, d)) {
			t.Errorf("%q: something has changed", text)
		}
		if err := errors.Join(os.Remove(d.path(ownDir, recordFile)), os.Remove(d.path("10-a.json"))); err != nil {
			t.Fatal(err)
		}
		deliver(t, d, of)
		plugins{"10-a": "a1 {}"}.has(t, d)
	}
}

// TestChecked: the check gets exactly the files that are then put into their places, and none that does not change.
func TestChecked(t *testing.T) {
	d := Directory(t.TempDir())
	deliver(t, d, plugins{"10-a": "a1 {}", "11-a": "a1 {}"}.delivery(t, "a"))
	_, err := d.Deliver(t.Context(), plugins{"10-a": "a2 {}", "11-a": "a1 {}"}.delivery(t, "a"), func(staged, scratch string) error {
		plugins{"10-a": "a2 {}"}.has(t, Directory(staged))
		plugins{"10-a": "a1 {}", "11-a": "a1 {}"}.has(t, d)
		return os.MkdirAll(scratch, 0o755)
	})
	if err != nil {
		t.Error(err)
	}
	plugins{"10-a": "a2 {}", "11-a": "a1 {}"}.has(t, d)
}

// TestJudge: a plugin that is on probation and stays gets the length and the share of refusals of the delivery, and no other one does.
func TestJudge(t *testing.T) {
	d, five, ten := Directory(t.TempDir()), 5, 10
	one := plugins{"10-a": "a1 {}", "11-a": "a1 {}"}.delivery(t, "a")
	deliver(t, d, one)
	for _, step := range []struct {
		code       string // of 10-a
		probation  time.Duration
		maxRefused *int
		want       []string
		length     time.Duration // of 10-a
		is         *int          // of 10-a
	}{
		{"a1", time.Hour, &five, nil, 0, nil}, // it is not on probation
		{"a2", time.Hour, nil, nil, time.Hour, nil},
		{"a2", time.Hour, &five, []string{"10-a"}, time.Hour, &five},
		{"a2", time.Hour, &five, nil, time.Hour, &five},
		{"a2", time.Minute, &five, []string{"10-a"}, time.Minute, &five},
		{"a2", time.Hour, &ten, []string{"10-a"}, time.Hour, &ten},
		{"a2", 0, nil, nil, time.Hour, &ten}, // who asks for no probation changes none
		{"a2", time.Hour, nil, []string{"10-a"}, time.Hour, nil},
	} {
		of := plugins{"10-a": step.code + " {}", "11-a": "a1 {}"}.delivery(t, "a")
		of.Probation, of.MaxRefused = step.probation, step.maxRefused
		if plan := deliver(t, d, of); !slices.Equal(plan.Judge, step.want) {
			t.Errorf("%+v: judged are %q", step, plan.Judge)
		}
		text, err := os.ReadFile(d.path("10-a.json"))
		if err != nil {
			t.Fatal(err)
		}
		length, is := d.Probation("10-a", digest(text))
		if length != step.length || (is == nil) != (step.is == nil) || is != nil && *is != *step.is {
			t.Errorf("%+v: the length is %v, and the share %v", step, length, is)
		}
	}
}

// TestModulesStay: a module goes when no JSON file names it any more, whoever has written that one. Modules that no delivery
// has written stay, and all do while a file cannot be read.
func TestModulesStay(t *testing.T) {
	d := Directory(t.TempDir())
	one := plugins{"10-a": "same {}", "11-a": "a {}"}.delivery(t, "a")
	deliver(t, d, one)
	deliver(t, d, plugins{"20-b": "same {}"}.delivery(t, "b"))
	same, own := one.Plugins[0].Digest, one.Plugins[1].Digest
	write(t, d.path(registry.Modules, "hand.wasm"), header+"hand")
	write(t, d.path("50-hand.json"), `{"wasm-module": "`+modulePath(own)+`"}`)
	lies := func(what string, digests ...string) {
		t.Helper()
		for _, digest := range []string{same, own, "hand"} {
			_, err := os.Lstat(d.path(modulePath(digest)))
			if (err == nil) != slices.Contains(digests, digest) {
				t.Errorf("%s: of the module %s: %v", what, digest, err)
			}
		}
	}
	deliver(t, d, Delivery{Owner: "a", MayEmpty: true})
	lies("a has none any more", same, own, "hand")
	if err := os.WriteFile(d.path("50-hand.json"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	deliver(t, d, Delivery{Owner: "b", MayEmpty: true})
	lies("a file cannot be read", same, own, "hand")
	if err := os.Remove(d.path("50-hand.json")); err != nil {
		t.Fatal(err)
	}
	deliver(t, d, Delivery{Owner: "c"})
	lies("nobody names a module", "hand")
}

// TestEditedOnTheNode: an edit stays until the delivery has other code or settings for the plugin. An edit that becomes what is
// delivered is none any more, and a module that somebody has removed or damaged comes again.
func TestEditedOnTheNode(t *testing.T) {
	d := Directory(t.TempDir())
	first, second := plugins{"10-a": "a1 {}", "11-a": "a1 {}"}.delivery(t, "a"), plugins{"10-a": "a2 {}", "11-a": "a1 {}"}.delivery(t, "a")
	deliver(t, d, first)
	now, err := os.ReadFile(d.path("10-a.json"))
	if err != nil {
		t.Fatal(err)
	}
	edited, err := SetKey(now, "enabled", false)
	if err != nil {
		t.Fatal(err)
	}
	write(t, d.path("10-a.json"), string(edited))
	for range 2 {
		if plan := deliver(t, d, first); !slices.Equal(plan.Kept, []string{"10-a"}) || len(plan.Write) > 0 {
			t.Errorf("without news it is %+v", plan)
		}
	}
	if text, err := os.ReadFile(d.path("10-a.json")); err != nil || string(text) != string(edited) {
		t.Errorf("the edit has become %s, error %v", text, err)
	}
	if plan := deliver(t, d, second); !slices.Equal(plan.Edited, []string{"10-a"}) || len(plan.Write) != 1 {
		t.Errorf("with news it is %+v", plan)
	}
	plugins{"10-a": "a2 {}", "11-a": "a1 {}"}.has(t, d)
	module := d.path(modulePath(second.Plugins[0].Digest))
	for _, lost := range []error{os.Remove(module), os.Truncate(d.path(modulePath(second.Plugins[1].Digest)), 0)} {
		if lost != nil {
			t.Fatal(lost)
		}
	}
	deliver(t, d, second)
	plugins{"10-a": "a2 {}", "11-a": "a1 {}"}.has(t, d)
	write(t, d.path("11-a.json"), `{"order": "12"}`)
	deliver(t, d, second)
	third := plugins{"10-a": "a2 {}", "11-a": `a1 {"order": "13"}`}.delivery(t, "a")
	write(t, d.path("11-a.json"), string(third.Plugins[1].Text))
	deliver(t, d, third)
	deliver(t, d, second)
	plugins{"10-a": "a2 {}", "11-a": "a1 {}"}.has(t, d)
}

// TestKilledBetweenSteps: whenever a delivery is killed, each plugin is as it was or as it is to be. The same delivery makes
// all as they are to be, the one before makes all as they were, and both can be delivered after that.
func TestKilledBetweenSteps(t *testing.T) {
	before := plugins{"10-a": "a1 {}", "11-a": "a1 {}", "12-gone": "a1 {}", "13-same": "s {}"}
	after := plugins{"10-a": "a2 {}", "11-a": `a1 {"order": "99"}`, "13-same": "s {}", "14-new": "n {}"}
	for n, more := 0, true; more; n++ {
		for _, next := range []string{"the same", "the one before"} {
			t.Run(fmt.Sprintf("%s after %d steps", next, n), func(t *testing.T) {
				d := Directory(t.TempDir())
				old, of := before.delivery(t, "a"), after.delivery(t, "a")
				deliver(t, d, old)
				deliver(t, d, plugins{"20-b": "a1 {}"}.delivery(t, "b"))
				more = killed(t, d, of, n)
				whole(t, d, before, after)
				if next == "the same" {
					deliver(t, d, of)
					after.and("20-b", "a1 {}").has(t, d)
				}
				deliver(t, d, old)
				before.and("20-b", "a1 {}").has(t, d)
				if next == "the one before" {
					deliver(t, d, of)
					after.and("20-b", "a1 {}").has(t, d)
				}
				r, err := d.record()
				for id, one := range r.Plugins {
					if len(one.Texts) != 1 {
						t.Errorf("the record has %d texts of %s", len(one.Texts), id)
					}
				}
				if err != nil || len(r.Plugins) != 5 {
					t.Errorf("the record has %v, error %v", r, err)
				}
			})
		}
	}
}

func (all plugins) and(id, both string) plugins {
	all = maps.Clone(all)
	all[id] = both
	return all
}

// killed begins a delivery, and does n steps of it. more: there are others. The process's end gives up its locks, and removes
// nothing that is staged.
func killed(t *testing.T, d Directory, of Delivery, n int) (more bool) {
	t.Helper()
	unlock, err := d.begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	plan, err := d.try(of, fine)
	if err != nil {
		t.Fatal(err)
	}
	r, err := d.record()
	if err != nil {
		t.Fatal(err)
	}
	steps := d.steps(of, plan, r)
	for _, step := range steps[:min(n, len(steps))] {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	left := files(t, d)
	unlock()
	for path, text := range left { // as staged files stay when a process is killed
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return n < len(steps)
}

// whole requires that each plugin is that of one of two deliveries, with its code and settings, or is not there, as in one.
func whole(t *testing.T, d Directory, before, after plugins) {
	t.Helper()
	found, problems := registry.Read(registry.Dirs{Plugins: string(d)})
	if len(problems) > 0 {
		t.Errorf("the proxy finds %v", problems)
	}
	there := map[string]bool{}
	for _, one := range found {
		there[one.ID] = true
		if got := content(t, one); one.ID != "20-b" && got != before[one.ID] && got != after[one.ID] {
			t.Errorf("%s is %q", one.ID, got)
		}
	}
	for id := range before {
		if after[id] != "" && !there[id] {
			t.Errorf("%s is not there", id)
		}
	}
}

// TestShadowThatAProgramAdds: a shadow that the fleet's agent adds to a delivered file makes no other version of the plugin.
func TestShadowThatAProgramAdds(t *testing.T) {
	for _, settings := range []string{"{}", `{"failure-policy": "Fail"}`, "{\n  \"failure-policy\": \"Fail\"\n}\n"} {
		d := Directory(t.TempDir())
		of := plugins{"10-a": "a1 " + settings}.delivery(t, "a")
		deliver(t, d, of)
		generation := func() string {
			t.Helper()
			found, problems := registry.Read(registry.Dirs{Plugins: string(d)})
			if len(found) != 1 || len(problems) > 0 {
				t.Fatal(found, problems)
			}
			return found[0].Generation()
		}
		alone := generation()
		with, err := SetKey(of.Plugins[0].Text, "shadow", map[string]string{"wasm-module": modulePath(of.Plugins[0].Digest)})
		if err != nil {
			t.Fatal(err)
		}
		of.Plugins[0].Text = with
		deliver(t, d, of)
		if beside := generation(); beside != alone {
			t.Errorf("%s is another version than %s", with, settings)
		}
	}
}
