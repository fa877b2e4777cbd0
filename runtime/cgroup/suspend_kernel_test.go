package cgroup

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

func wantInvalid(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, syscall.EINVAL) {
		t.Errorf("the kernel answered %v, not EINVAL: is holding back still needed?", err)
	}
}

// runc writes the shares it knows at every update, whatever the update names.
func TestKernelTakesSharesOfAnIdleGroup(t *testing.T) {
	k := newKernel(t)
	k.set(t, "1", "0", -1)
	wantInvalid(t, k.shares(256))

	h := must(k.SuspendForUpdate(t.Context(), k.group, Update{}))(t)
	if err := k.shares(256); err != nil {
		t.Error(err)
	}
	if err := h.Restore(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	k.want(t, "1", "0")
	wantForgotten(t, k.FS)
}

func TestKernelTakesQuotaBelowTheBurst(t *testing.T) {
	for _, before := range []int{50000, -1} {
		k := newKernel(t)
		k.set(t, "1", "40000", before)
		wantInvalid(t, k.quota(25000))

		h := must(k.SuspendForUpdate(t.Context(), k.group, Update{Quota: 25000}))(t)
		if err := errors.Join(k.shares(256), k.quota(25000)); err != nil {
			t.Error(err)
		}
		if err := h.Restore(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		k.want(t, "1", "25000")
	}
}

// A burst that the update leaves room for is not touched, and need not be.
func TestKernelTakesQuotaAboveTheBurst(t *testing.T) {
	for _, quota := range []int{40000, 80000, -1} {
		k := newKernel(t)
		k.set(t, "0", "40000", 50000)
		h := must(k.SuspendForUpdate(t.Context(), k.group, Update{Quota: int64(quota)}))(t)
		k.want(t, "0", "40000")
		if err := errors.Join(k.quota(quota), h.Restore(t.Context(), true)); err != nil {
			t.Error(err)
		}
		k.want(t, "0", "40000")
	}
}

func TestKernelRestoresAfterRefusal(t *testing.T) {
	k := newKernel(t)
	k.set(t, "1", "40000", 50000)
	share := k.share(t)
	h := must(k.SuspendForUpdate(t.Context(), k.group, Update{Quota: 25000}))(t)
	if err := h.Restore(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	k.want(t, "1", "40000")
	if got := k.share(t); got != share {
		t.Errorf("share %s, was %s", got, share)
	}
}

// A group that stops being idle gets the default share. Within an update it
// keeps the one that the update brings.
func TestKernelShareWhenIdleEnds(t *testing.T) {
	k := newKernel(t)
	unset := k.share(t)
	if err := k.shares(256); err != nil {
		t.Fatal(err)
	}
	asked := k.share(t)
	k.set(t, "1", "0", -1)
	k.set(t, "0", "0", -1)
	if got := k.share(t); got != unset || got == asked {
		t.Errorf("share after idle %s; want the default %s, not %s: the note at Write is out of date", got, unset, asked)
	}

	k.set(t, "1", "0", -1)
	h := must(k.SuspendForUpdate(t.Context(), k.group, Update{}))(t)
	err := errors.Join(k.shares(256), k.Write(t.Context(), k.group, rules.CPUIdle, "0"), h.Restore(t.Context(), true))
	if err != nil {
		t.Fatal(err)
	}
	k.want(t, "0", "0")
	if got := k.share(t); got != asked {
		t.Errorf("share %s, want %s", got, asked)
	}
}

func TestKernelGroupGoes(t *testing.T) {
	k := newKernel(t)
	k.set(t, "1", "40000", 50000)
	h := must(k.SuspendForUpdate(t.Context(), k.group, Update{}))(t)
	if err := os.Remove(k.dir("cpu")); err != nil {
		t.Fatal(err)
	}
	if err := h.Restore(t.Context(), true); err != nil {
		t.Error(err)
	}
	if err := must(k.SuspendForUpdate(t.Context(), k.group, Update{}))(t).Restore(t.Context(), true); err != nil {
		t.Error(err)
	}
	wantCode(t, k.Write(t.Context(), k.group, rules.CPUIdle, "1"), abi.NotFound)
	wantForgotten(t, k.FS)
}

// Many updates of one group at once: none meets an idle group or a burst, and
// after the last both are as they were.
func TestKernelHammer(t *testing.T) {
	k := newKernel(t)
	k.set(t, "1", "40000", 50000)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 200 {
				h, err := k.SuspendForUpdate(t.Context(), k.group, Update{})
				if err == nil && n%3 != 0 {
					err = errors.Join(k.shares(100+n), k.quota(41000+1000*i))
				}
				if err := errors.Join(err, h.Restore(t.Context(), n%3 != 0)); err != nil {
					t.Errorf("update %d of %d: %v", n, i, err)
					return
				}
			}
		})
	}
	wg.Wait()
	k.want(t, "1", "40000")
	wantForgotten(t, k.FS)
}

// BenchmarkKernelSuspend is what a resource update pays: for a group with nothing
// to suspend, and for an idle one with a burst.
func BenchmarkKernelSuspend(b *testing.B) {
	for _, idle := range []string{"0", "1"} {
		b.Run("idle="+idle, func(b *testing.B) {
			k := newKernel(b)
			k.set(b, idle, map[string]string{"0": "0", "1": "40000"}[idle], 50000)
			for b.Loop() {
				h, err := k.SuspendForUpdate(b.Context(), k.group, Update{Quota: 25000})
				if err := errors.Join(err, h.Restore(b.Context(), false)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
