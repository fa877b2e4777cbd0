package cgroup

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

// quotaText is how each version shows a quota in µs; negative for none.
func quotaText(version int, quota int64) string {
	switch {
	case version == 1:
		return strconv.FormatInt(quota, 10)
	case quota < 0:
		return "max 100000"
	}
	return fmt.Sprintf("%d 100000", quota)
}

// held makes a tree whose group has this idle, burst and quota.
func held(t *testing.T, version int, idle, burst string, quota int64) *FS {
	t.Helper()
	return tree(t, version, map[string]string{rules.CPUIdle: idle, rules.CPUBurst: burst, "cpu.max": quotaText(version, quota)})
}

func TestSuspendForUpdate(t *testing.T) {
	type values struct{ idle, burst string }
	tests := []struct {
		name     string
		before   values
		quota    int64 // before
		update   Update
		during   values
		after    int64 // the quota that the backend left
		accepted bool
		want     values
	}{
		{"nothing is set", values{"0", "0"}, -1, Update{Quota: 25000}, values{"0", "0"}, 25000, true, values{"0", "0"}},
		{"smaller quota", values{"1", "40000"}, 50000, Update{Quota: 25000}, values{"0", "0"}, 25000, true, values{"1", "25000"}},
		{"quota at the burst", values{"1", "40000"}, 50000, Update{Quota: 40000}, values{"0", "40000"}, 40000, true, values{"1", "40000"}},
		{"larger quota", values{"0", "40000"}, 50000, Update{Quota: 80000}, values{"0", "40000"}, 80000, true, values{"0", "40000"}},
		{"no quota any more", values{"1", "40000"}, 50000, Update{Quota: -1}, values{"0", "40000"}, -1, true, values{"1", "40000"}},
		{"first quota", values{"1", "40000"}, -1, Update{Quota: 30000}, values{"0", "0"}, 30000, true, values{"1", "30000"}},
		{"quota not named", values{"1", "40000"}, 50000, Update{}, values{"0", "0"}, 50000, true, values{"1", "40000"}},
		{"refused", values{"1", "40000"}, 50000, Update{Quota: 25000}, values{"0", "0"}, 50000, false, values{"1", "40000"}},
		{"refused half way", values{"1", "40000"}, 50000, Update{Quota: 25000}, values{"0", "0"}, 25000, false, values{"1", "25000"}},
		{"unified quota", values{"0", "40000"}, 50000, Update{Quota: 80000, Unified: map[string]string{"cpu.max": "30000 100000"}},
			values{"0", "0"}, 30000, true, values{"0", "30000"}},
		{"unified ends idle", values{"1", "40000"}, 50000, Update{Unified: map[string]string{"cpu.idle": "0"}},
			values{"0", "0"}, 50000, true, values{"0", "40000"}},
		{"unified ends idle, refused", values{"1", "0"}, 50000, Update{Unified: map[string]string{"cpu.idle": "0"}},
			values{"0", "0"}, 50000, false, values{"1", "0"}},
		{"rubbish in the burst file", values{"0", "lots"}, -1, Update{Quota: 1000}, values{"0", "0"}, -1, false, values{"0", "lots"}},
	}
	for _, version := range []int{1, 2} {
		for _, tt := range tests {
			t.Run(fmt.Sprintf("v%d %s", version, tt.name), func(t *testing.T) {
				f := held(t, version, tt.before.idle, tt.before.burst, tt.quota)
				h, err := f.SuspendForUpdate(t.Context(), pod, tt.update)
				if err != nil {
					t.Fatal(err)
				}
				wantPlain(t, f, rules.CPUIdle, tt.during.idle)
				wantPlain(t, f, rules.CPUBurst, tt.during.burst)
				plain(t, f, "cpu.max", quotaText(version, tt.after))
				for range 2 { // the second does nothing
					if err := h.Restore(t.Context(), tt.accepted); err != nil {
						t.Fatal(err)
					}
				}
				wantPlain(t, f, rules.CPUIdle, tt.want.idle)
				wantPlain(t, f, rules.CPUBurst, tt.want.burst)
				wantForgotten(t, f)
			})
		}
	}
}

func wantForgotten(t *testing.T, f *FS) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.groups) != 0 {
		t.Errorf("%d groups are still remembered", len(f.groups))
	}
}

// The first of two updates must not put values back under the second, nor the
// second remember the first one's zero.
func TestHoldsOverlap(t *testing.T) {
	f := held(t, 2, "1", "40000", 50000)
	first := must(f.SuspendForUpdate(t.Context(), pod, Update{Quota: 80000}))(t)
	wantPlain(t, f, rules.CPUBurst, "40000")
	second := must(f.SuspendForUpdate(t.Context(), pod, Update{Quota: 30000}))(t)
	wantPlain(t, f, rules.CPUBurst, "0")
	if err := first.Restore(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	wantPlain(t, f, rules.CPUIdle, "0")
	wantPlain(t, f, rules.CPUBurst, "0")
	if err := second.Restore(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	wantPlain(t, f, rules.CPUIdle, "1")
	wantPlain(t, f, rules.CPUBurst, "40000")
	wantForgotten(t, f)
}

// A write of a quota, which cuts the burst, waits while an update suspends the burst, and does not
// bring it back.
func TestQuotaWaitsForASuspension(t *testing.T) {
	f := held(t, 2, "0", "80000", 100000)
	rel := must(clean(pod))(t)
	g := f.enter(rel) // as SuspendForUpdate does
	written := make(chan error, 1)
	go func() { written <- f.Write(t.Context(), pod, "cpu.max", "50000 100000") }()
	for waits := false; !waits; {
		select {
		case err := <-written:
			t.Fatalf("the write did not wait: %v", err)
		default:
			f.mu.Lock()
			waits = g.users == 2
			f.mu.Unlock()
			time.Sleep(time.Millisecond)
		}
	}
	plain(t, f, rules.CPUBurst, "0")
	f.leave(rel, g)
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	wantPlain(t, f, "cpu.max", "50000 100000")
	wantPlain(t, f, rules.CPUBurst, "0")
	wantForgotten(t, f)
}

// Groups do not wait for one another, nor share what is kept.
func TestHoldIsPerGroup(t *testing.T) {
	f := held(t, 2, "1", "0", -1)
	h := must(f.SuspendForUpdate(t.Context(), pod, Update{}))(t)
	other := must(f.SuspendForUpdate(t.Context(), "/kubepods/other", Update{}))(t)
	if err := h.Restore(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	wantPlain(t, f, rules.CPUIdle, "1")
	if err := other.Restore(t.Context(), true); err != nil {
		t.Fatal(err)
	}
}

// One group has one spelling, or two suspensions of it would not know of each other.
func TestHoldKnowsTheGroupByAnySpelling(t *testing.T) {
	f := held(t, 2, "1", "0", -1)
	first := must(f.SuspendForUpdate(t.Context(), pod, Update{}))(t)
	second := must(f.SuspendForUpdate(t.Context(), "kubepods//burstable/./pod1/", Update{}))(t)
	if err := first.Restore(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	wantPlain(t, f, rules.CPUIdle, "0")
	if err := second.Restore(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	wantPlain(t, f, rules.CPUIdle, "1")
}

// What a plugin writes while an update is under way is what comes back, and
// reads as if it were there already.
func TestWriteDuringUpdate(t *testing.T) {
	for _, version := range []int{1, 2} {
		f := held(t, version, "1", "20000", 50000)
		h := must(f.SuspendForUpdate(t.Context(), pod, Update{Quota: 30000}))(t)
		for file, value := range map[string]string{rules.CPUIdle: "0", rules.CPUBurst: "31000"} {
			if err := f.Write(t.Context(), pod, file, value); err != nil {
				t.Fatal(err)
			}
			if got, err := f.Read(pod, file); err != nil || got != value {
				t.Errorf("%s reads %q, %v; want %q", file, got, err, value)
			}
		}
		wantPlain(t, f, rules.CPUBurst, "20000")
		wantCode(t, f.Write(t.Context(), pod, rules.CPUBurst, "-1"), abi.Invalid)
		wantCode(t, f.Write(t.Context(), pod+"/none", rules.CPUBurst, "1"), abi.NotFound)

		late := must(f.SuspendForUpdate(t.Context(), pod, Update{Quota: 10000}))(t) // has to move the burst, which must not lose the noted one
		wantPlain(t, f, rules.CPUBurst, "0")
		plain(t, f, "cpu.max", quotaText(version, 31000))
		if err := errors.Join(h.Restore(t.Context(), true), late.Restore(t.Context(), true)); err != nil {
			t.Fatal(err)
		}
		wantPlain(t, f, rules.CPUIdle, "0")
		wantPlain(t, f, rules.CPUBurst, "31000")
		wantForgotten(t, f)
	}
}

func TestReadDuringUpdate(t *testing.T) {
	f := held(t, 2, "1", "20000", 50000)
	h := must(f.SuspendForUpdate(t.Context(), pod, Update{}))(t)
	defer h.Restore(t.Context(), false)
	for file, want := range map[string]string{rules.CPUIdle: "1", rules.CPUBurst: "20000"} {
		if got, err := f.Read(pod, file); err != nil || got != want {
			t.Errorf("%s reads %q, %v; want %q", file, got, err, want)
		}
	}
}

func TestHoldWithoutGroup(t *testing.T) {
	for _, version := range []int{1, 2} {
		f := tree(t, version, nil) // v1: not even the controller
		h := must(f.SuspendForUpdate(t.Context(), pod, Update{Quota: 1000}))(t)
		wantCode(t, f.Write(t.Context(), pod, rules.CPUIdle, "1"), map[int]abi.Errno{1: abi.Unsupported, 2: abi.NotFound}[version])
		if err := h.Restore(t.Context(), true); err != nil {
			t.Error(err)
		}
		wantForgotten(t, f)
	}
	var none *Suspension
	if err := none.Restore(t.Context(), true); err != nil {
		t.Error(err)
	}
}

// An old kernel lacks the files, an odd one the quota.
func TestHoldWithoutFiles(t *testing.T) {
	f := tree(t, 2, map[string]string{rules.CPUBurst: "40000"})
	h := must(f.SuspendForUpdate(t.Context(), pod, Update{Quota: 1000}))(t)
	wantPlain(t, f, rules.CPUBurst, "0")
	if err := h.Restore(t.Context(), true); err != nil {
		t.Error(err)
	}
	wantPlain(t, f, rules.CPUBurst, "40000")
}

func TestGroupGoesDuringUpdate(t *testing.T) {
	f := held(t, 2, "1", "40000", 50000)
	h := must(f.SuspendForUpdate(t.Context(), pod, Update{Quota: 1000}))(t)
	if err := os.RemoveAll(f.path + "/kubepods"); err != nil {
		t.Fatal(err)
	}
	if err := h.Restore(t.Context(), true); err != nil {
		t.Error(err)
	}
	wantForgotten(t, f)
}
