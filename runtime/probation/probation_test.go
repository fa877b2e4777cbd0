package probation_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/probation"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
)

// node is a node's data directory, with one plugin that is delivered for an hour of probation.
type node struct {
	dir    string
	events observe.Recorder
}

func newNode(t *testing.T) *node {
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return &node{dir: dir}
}

func (n *node) start(t *testing.T) *probation.Trials {
	all := probation.New(n.dir, &n.events)
	all.Begin(t.Context(), []registry.Description{one("1")})
	return all
}

func one(settings string) registry.Description {
	return registry.Description{ID: "50-qos", File: "/plugins.d/50-qos.json", Digest: "ab", Settings: settings}
}

func found(t *testing.T, all *probation.Trials, d ...registry.Description) {
	t.Helper()
	all.Found(t.Context(), registry.List{Plugins: d, Complete: true}, func(registry.Description) probation.Terms { return probation.Terms{For: time.Hour} })
}

// TestClockSetBack: a probation that began while the node's clock was years ahead lasts no longer than its length from the next
// start on.
func TestClockSetBack(t *testing.T) {
	n, d := newNode(t), one("1")
	all := n.start(t)
	found(t, all, d)
	all.Activate(d.ID, d.Generation(), probation.Counts{})
	all.Save(t.Context())
	path := filepath.Join(n.dir, "probation.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	ends := all.Get(d.ID, d.Generation()).Ends
	ahead := strings.Replace(string(text), ends.Format(`"ends": "2006`), ends.AddDate(50, 0, 0).Format(`"ends": "2006`), 1)
	if err := os.WriteFile(path, []byte(ahead), 0o600); err != nil || ahead == string(text) {
		t.Fatal("the end is not in the file", err)
	}
	if again := n.start(t).Get(d.ID, d.Generation()).Ends; again.After(time.Now().Add(time.Hour)) {
		t.Errorf("the probation of an hour ends at %v", again)
	}
}

// TestJudge has a row for each reason, and for what is none.
func TestJudge(t *testing.T) {
	for name, row := range map[string]struct {
		before, after probation.Counts // the second since the trial began
		want          string           // a part of the reason; "": it does not fail
	}{
		"nothing happened":                {},
		"no call fails":                   {after: probation.Counts{Calls: 1000}},
		"one of 19 calls fails":           {after: probation.Counts{Calls: 19, Failures: 19}},
		"one of 20 calls fails":           {after: probation.Counts{Calls: 20, Failures: 1}},
		"two of 20 calls fail":            {after: probation.Counts{Calls: 20, Failures: 2}, want: "2 of its 20 calls failed; 0 of 0 failed before"},
		"as many failed before":           {before: probation.Counts{Calls: 100, Failures: 10}, after: probation.Counts{Calls: 20, Failures: 2}},
		"fewer failed before":             {before: probation.Counts{Calls: 100, Failures: 9}, after: probation.Counts{Calls: 20, Failures: 2}, want: "9 of 100 failed before"},
		"its breaker opened":              {after: probation.Counts{Calls: 5, Failures: 5, Openings: 1}, want: "circuit breaker"},
		"its breaker opened before":       {before: probation.Counts{Openings: 1}},
		"a write fails":                   {after: probation.Counts{WriteFailures: 1}, want: "1 of its writes"},
		"writes failed before as well":    {before: probation.Counts{WriteFailures: 1}, after: probation.Counts{WriteFailures: 3}},
		"a file is fought for":            {after: probation.Counts{Fights: 1}, want: "1 of its cgroup files"},
		"a file was fought for before it": {before: probation.Counts{Fights: 2}, after: probation.Counts{Fights: 1}},
	} {
		n := newNode(t)
		all := n.start(t)
		d := one("1")
		found(t, all, d)
		all.Activate(d.ID, d.Generation(), row.before)
		sum := probation.Counts{
			Calls: row.before.Calls + row.after.Calls, Failures: row.before.Failures + row.after.Failures, Openings: row.before.Openings + row.after.Openings,
			WriteFailures: row.before.WriteFailures + row.after.WriteFailures, Fights: row.before.Fights + row.after.Fights,
		}
		got := all.Get(d.ID, d.Generation()).Judge(sum)
		if !strings.Contains(got, row.want) || (got == "") != (row.want == "") {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}

// TestMaxRefused judges refusals only where the delivery has asked for it, also after a restart. Ticks are not among the calls.
func TestMaxRefused(t *testing.T) {
	five, none := 5, 0
	for _, row := range []struct {
		most           *int
		calls, refused uint64
		want           string
	}{
		{nil, 100, 100, ""},
		{&five, 100, 5, ""},
		{&five, 100, 6, "it refused 6 of the 100 calls that it could refuse, and may refuse 5 %"},
		{&five, 19, 19, ""},
		{&none, 20, 0, ""},
		{&none, 20, 1, "it refused 1 of the 20 calls that it could refuse, and may refuse 0 %"},
	} {
		n, d := newNode(t), one("1")
		all := n.start(t)
		all.Found(t.Context(), registry.List{Plugins: []registry.Description{d}, Complete: true}, func(registry.Description) probation.Terms {
			return probation.Terms{For: time.Hour, MaxRefused: row.most}
		})
		all = n.start(t)
		all.Activate(d.ID, d.Generation(), probation.Counts{Calls: 7, Refusable: 7, Rejections: 7})
		if got := all.Get(d.ID, d.Generation()).Judge(probation.Counts{Calls: 1000, Refusable: 7 + row.calls, Rejections: 7 + row.refused}); got != row.want {
			t.Errorf("%d of %d calls: %q, not %q", row.refused, row.calls, got, row.want)
		}
	}
}

// TestChange changes the terms during the probation, and not after it.
func TestChange(t *testing.T) {
	five, hour := 5, time.Hour
	n, d := newNode(t), one("1")
	all := n.start(t)
	found(t, all, d)
	change := func(length time.Duration, most *int) (changed bool) {
		was := all.Get(d.ID, d.Generation())
		all.Change(d.ID, d.Generation(), probation.Terms{For: length, MaxRefused: most})
		return !reflect.DeepEqual(was, all.Get(d.ID, d.Generation()))
	}
	if !change(2*hour, nil) || !all.Get(d.ID, d.Generation()).Ends.IsZero() {
		t.Error("a probation that has not begun has an end, or keeps its length")
	}
	all.Activate(d.ID, d.Generation(), probation.Counts{})
	refuses := func() bool {
		return all.Get(d.ID, d.Generation()).Judge(probation.Counts{Calls: 20, Refusable: 20, Rejections: 20}) != ""
	}
	if refuses() {
		t.Error("refusals are judged without a share")
	}
	if !change(2*hour, &five) || !refuses() || change(2*hour, &five) {
		t.Error("a new share is not taken, or is always new")
	}
	if all.Change(d.ID, "another", probation.Terms{For: hour}); change(2*hour, &five) {
		t.Error("another generation has a trial")
	}
	if !change(2*hour, nil) || refuses() {
		t.Error("a share cannot be taken back")
	}
	ends := all.Get(d.ID, d.Generation()).Ends
	for _, length := range []time.Duration{hour, 3 * hour, time.Second} {
		if !change(length, nil) || change(length, nil) {
			t.Errorf("the length %v is not taken, or is always new", length)
		}
		all.Save(t.Context())
		all = n.start(t)
		if now := all.Get(d.ID, d.Generation()).Ends; !now.Equal(ends.Add(length - 2*hour)) {
			t.Errorf("a probation of 2 h that ended at %v ends at %v with the length %v", ends, now, length)
		}
		all.Close(t.Context())
	}
	all.Pass(d.ID, d.Generation())
	if change(hour, &five) {
		t.Error("a version that has passed is judged")
	}
}

// TestBeforeIsOfGoodVersions: what versions have done that did not pass does not excuse the next one, be it the same or another.
func TestBeforeIsOfGoodVersions(t *testing.T) {
	n, d := newNode(t), one("1")
	all := n.start(t)
	found(t, all, d)
	all.Activate(d.ID, d.Generation(), probation.Counts{Calls: 50})
	all.Activate(d.ID, d.Generation(), probation.Counts{Calls: 60, Failures: 9}) // after a bypass
	all.Fail(t.Context(), d.ID, d.Generation(), "a test")
	all.Retry(t.Context(), d.ID) // there was nothing to go back to
	all.Activate(d.ID, d.Generation(), probation.Counts{Calls: 70, Failures: 15})
	if got := all.Get(d.ID, d.Generation()).Before; got != (probation.Counts{Calls: 50}) {
		t.Errorf("before the first version are counted %+v", got)
	}
	all.Fail(t.Context(), d.ID, d.Generation(), "a test")
	all.Settle(d.ID, func(string) probation.Counts {
		return probation.Counts{Calls: 80, Failures: 20, WriteFailures: 1, Fights: 1}
	}) // the version before is active again
	all.Retry(t.Context(), d.ID)
	all.Activate(d.ID, d.Generation(), probation.Counts{Calls: 130, Failures: 20, WriteFailures: 1, Fights: 1})
	again := all.Get(d.ID, d.Generation())
	if again.Before != (probation.Counts{Calls: 100}) {
		t.Errorf("before it are counted %+v", again.Before)
	}
	const want = "2 of its 20 calls failed; 0 of 100 failed before"
	if got := again.Judge(probation.Counts{Calls: 150, Failures: 22, WriteFailures: 1, Fights: 1}); got != want {
		t.Errorf("it is judged as %q, want %q", got, want)
	}
	next := one("2")
	found(t, all, next)
	all.Activate(next.ID, next.Generation(), probation.Counts{Calls: 230, Failures: 30})
	if got := all.Get(next.ID, next.Generation()).Before; got.Calls != 100 || got.Failures != 0 {
		t.Errorf("before another version on probation are counted %+v", got)
	}
	all.Pass(next.ID, next.Generation())
	last := one("3")
	found(t, all, last)
	all.Activate(last.ID, last.Generation(), probation.Counts{Calls: 240, Failures: 31})
	if got := all.Get(last.ID, last.Generation()).Before; got.Calls != 110 || got.Failures != 1 {
		t.Errorf("after one that has passed are counted %+v", got)
	}
}

// TestCountsOfTheVersionBefore: what that has done since a restart, while the version on probation could not be loaded, is not of the
// latter.
func TestCountsOfTheVersionBefore(t *testing.T) {
	n, d := newNode(t), one("1")
	all := n.start(t)
	found(t, all, d)
	all.Activate(d.ID, d.Generation(), probation.Counts{})
	all.Close(t.Context())
	all = n.start(t)
	before := probation.Counts{Calls: 100, Failures: 50, WriteFailures: 1, Openings: 1}
	all.Activate(d.ID, d.Generation(), before)
	if got := all.Get(d.ID, d.Generation()).Judge(before); got != "" {
		t.Errorf("a version that has done nothing is judged as %q", got)
	}
}

// TestThirdStart: a version under which the proxy is started three times without an orderly stop has failed, before it is loaded.
func TestThirdStart(t *testing.T) {
	n, d := newNode(t), one("1")
	found(t, n.start(t), d)
	for start := 1; start <= 2; start++ {
		if one := n.start(t).Get(d.ID, d.Generation()); one == nil || !one.Open() {
			t.Fatalf("start %d: %+v", start, one)
		}
	}
	all := n.start(t)
	if one := all.Get(d.ID, d.Generation()); one == nil || one.Failure == nil || !strings.Contains(one.Failure.Reason, "started 3 times") {
		t.Fatalf("%+v", one)
	}
	all.Close(context.Background())
	if one := n.start(t).Get(d.ID, d.Generation()); one == nil || one.Failure == nil {
		t.Errorf("after an orderly stop it is %+v", one)
	}
	again := n.start(t)
	if !again.Retry(t.Context(), d.ID) || again.Retry(t.Context(), d.ID) || !n.start(t).Get(d.ID, d.Generation()).Open() {
		t.Error("it is not tried once more when told")
	}
}

// TestStartsWithoutTheVersion: a version that the proxy does not load, or cannot load, has not ended it.
func TestStartsWithoutTheVersion(t *testing.T) {
	off, bad := one("1"), one("1")
	off.Disabled, bad.Problem = true, errors.New("a test")
	for name, loads := range map[string][]registry.Description{"disabled": {off}, "bad": {bad}, "another": {one("2")}, "bypassed": nil, "not loaded": {one("1")}} {
		n, d := newNode(t), one("1")
		found(t, n.start(t), d)
		for range 5 {
			all := probation.New(n.dir, &n.events)
			all.Begin(t.Context(), loads)
			if one := all.Get(d.ID, d.Generation()); one == nil || !one.Open() {
				t.Fatalf("%s: %+v", name, one)
			}
			if name == "not loaded" {
				all.NotLoaded(d.ID, d.Generation())
				all.Save(t.Context())
			}
		}
	}
}

// TestOrderlyStops: restarts alone fail no version.
func TestOrderlyStops(t *testing.T) {
	n, d := newNode(t), one("1")
	found(t, n.start(t), d)
	for range 5 {
		all := n.start(t)
		if one := all.Get(d.ID, d.Generation()); one == nil || !one.Open() {
			t.Fatalf("%+v", one)
		}
		all.Close(t.Context())
	}
}

// TestTrialsOfFiles: a trial is of one content of the files. What has passed stays so, and a change by hand has no trial.
func TestTrialsOfFiles(t *testing.T) {
	n, d := newNode(t), one("1")
	all := n.start(t)
	found(t, all, d)
	all.Activate(d.ID, d.Generation(), probation.Counts{})
	ends := all.Get(d.ID, d.Generation()).Ends
	if left := time.Until(ends); left < 50*time.Minute || left > time.Hour {
		t.Errorf("it ends in %s", left)
	}
	all.Save(t.Context())
	later := n.start(t)
	later.Activate(d.ID, d.Generation(), probation.Counts{})
	if again := later.Get(d.ID, d.Generation()); !again.Ends.Equal(ends) {
		t.Errorf("a restart moves its end from %s to %s", ends, again.Ends)
	}
	all.Pass(d.ID, d.Generation())
	found(t, all, d)
	if one := all.Get(d.ID, d.Generation()); one == nil || one.Open() {
		t.Errorf("what has passed is %+v", one)
	}
	hand := one("2")
	all.Found(t.Context(), registry.List{Plugins: []registry.Description{hand}, Complete: true}, func(registry.Description) probation.Terms { return probation.Terms{} })
	if was, now := all.Get(d.ID, d.Generation()), all.Get(hand.ID, hand.Generation()); was != nil || now != nil {
		t.Errorf("after a change by hand there are %+v and %+v", was, now)
	}
	found(t, all, one("3"))
	found(t, all)
	if one := all.Get(d.ID, one("3").Generation()); one != nil {
		t.Errorf("of a plugin that is gone there is %+v", one)
	}
}

// TestBadFiles: what cannot be trusted or read is an event, and there are no trials.
func TestBadFiles(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"cut off":         func(path string) error { return os.Truncate(path, 20) },
		"others write it": func(path string) error { return os.Chmod(path, 0o602) },
		"later format":    func(path string) error { return os.WriteFile(path, []byte(`{"version": 2}`), 0o600) },
		"no object":       func(path string) error { return os.WriteFile(path, []byte(`[]`), 0o600) },
	} {
		n, d := newNode(t), one("1")
		found(t, n.start(t), d)
		if err := damage(filepath.Join(n.dir, "probation.json")); err != nil {
			t.Fatal(err)
		}
		if one := n.start(t).Get(d.ID, d.Generation()); one != nil {
			t.Errorf("%s: %+v", name, one)
		}
		told := n.events.Take()
		if _, ignored := told[len(told)-1].(*observe.ProbationIgnored); len(told) != 1 || !ignored {
			t.Errorf("%s: it tells of %v", name, told)
		}
	}
}

// TestRestartThatKnowsNoTrials: without a data directory, and with a file that is damaged, a version that was there before counts
// as passed, and a later one does not.
func TestRestartThatKnowsNoTrials(t *testing.T) {
	n, d := newNode(t), one("1")
	if err := os.WriteFile(filepath.Join(n.dir, "probation.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, all := range map[string]*probation.Trials{"no directory": probation.New("", &n.events), "damaged": probation.New(n.dir, &n.events)} {
		all.Begin(t.Context(), nil)
		found(t, all, d)
		found(t, all, d)
		if is := all.Get(d.ID, d.Generation()); is.Open() {
			t.Errorf("%s: a version that was there before the restart is on probation: %+v", name, is)
		}
		found(t, all, one("2"))
		if later := all.Get(d.ID, one("2").Generation()); !later.Open() {
			t.Errorf("%s: a version that came after the restart is not on probation: %+v", name, later)
		}
	}
}

// TestSavedAgain: trials that cannot be saved count as not saved, and are saved once they can be, without another change.
func TestSavedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, d := newNode(t), one("1")
		if err := os.Remove(n.dir); err != nil {
			t.Fatal(err)
		}
		all := n.start(t)
		if err := os.WriteFile(n.dir, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go all.Run(ctx)
		found(t, all, d)
		synctest.Wait()
		if all.Saved() {
			t.Error("they are saved in a directory that is none")
		}
		if err := os.Remove(n.dir); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if !all.Saved() || n.start(t).Get(d.ID, d.Generation()) == nil {
			t.Error("they are not saved when they can be")
		}
		cancel()
	})
}
