package enforce

import (
	"slices"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
)

// ask notes a wish, and returns the earlier one of the same plugin.
func (v *Value) ask(w Wish) (former *Wish) {
	v.renewed()
	for i := range v.Wishes {
		if v.Wishes[i].Plugin == w.Plugin {
			was := v.Wishes[i]
			if was.Value == w.Value {
				w.Since = was.First()
			}
			v.Wishes[i] = w
			return &was
		}
	}
	v.Wishes = append(v.Wishes, w)
	return nil
}

// renewed has a value be written that was refused, or left alone: something else is wanted now.
func (v *Value) renewed() {
	v.Drift.Fight, v.Drift.row = false, 0
	if v.Failed != nil {
		v.Failed.noRetry = false
	}
}

// refusedAt reports whether the last write failed while the file showed this.
func (v *Value) refusedAt(held string) bool {
	return v.Failed != nil && v.Failed.noRetry && v.Failed.held == held
}

// fails reports whether the value does not hold: it could not be written, or is left alone.
func (v *Value) fails() bool { return v.Drift.Fight || v.Failed != nil }

// end ends the wish of a plugin for a target, and returns it with its place among the wishes; nil if there was none.
func (o *object) end(t Target, plugin string) (former *Wish, place int) {
	v := o.values[t]
	if v == nil {
		return nil, 0
	}
	i := v.wishOf(plugin)
	if i < 0 {
		return nil, 0
	}
	w := v.Wishes[i]
	v.Wishes = slices.Delete(v.Wishes, i, i+1)
	v.renewed()
	o.dropUnused(t)
	return &w, i
}

// wishOf is the place of a plugin's wish; negative if it has none.
func (v *Value) wishOf(plugin string) int {
	return slices.IndexFunc(v.Wishes, func(w Wish) bool { return w.Plugin == plugin })
}

// revert puts the former wish in the place of w, or takes w away if there was none. It reports
// false if the plugin has asked for something else since.
func (v *Value) revert(w Wish, former *Wish) bool {
	i := slices.IndexFunc(v.Wishes, func(has Wish) bool {
		w.Since = has.Since // which the one who asked does not know
		return has == w
	})
	switch {
	case i < 0:
		return false
	case former == nil:
		v.Wishes = slices.Delete(v.Wishes, i, i+1)
	default:
		v.Wishes[i] = *former
	}
	return true
}

// withdraw ends wishes, and reports whether there was one to end.
func (o *object) withdraw(end func(Target, Wish) bool) (any bool) {
	for t, v := range o.values {
		before := len(v.Wishes)
		v.Wishes = slices.DeleteFunc(v.Wishes, func(w Wish) bool { return end(t, w) })
		if len(v.Wishes) < before {
			any = true
			v.renewed()
			o.dropUnused(t)
		}
	}
	return any
}

// dropUnused drops a target that no plugin wants to set, and that has nothing to be undone.
func (o *object) dropUnused(t Target) {
	v := o.values[t]
	if v == nil || len(v.Wishes) > 0 {
		return
	}
	undone := !v.unsent()
	if _, file := t.File(); file {
		undone = v.unwritten()
	}
	if undone || v.Kubelet == nil { // without kubelet's value there is nothing to bring back
		delete(o.values, t)
	}
}

// unwritten reports whether the host has not written the file.
func (v *Value) unwritten() bool { return v.Last == "" && v.Writing == "" }

// undoing reports whether kubelet's value of a file is yet to be written.
func (o *object) undoing(t Target) (undo bool) {
	if v := o.values[t]; v != nil {
		_, undo, _ = v.wanted()
	}
	return undo
}

// wanted returns the value that the kernel is to hold: that of the first wish, or, with undo,
// kubelet's. It is false if nothing is to be written.
func (v *Value) wanted() (value string, undo, ok bool) {
	switch {
	case len(v.Wishes) > 0:
		return v.Wishes[0].Value, false, true
	case !v.unwritten() && v.Kubelet != nil:
		return *v.Kubelet, true, true
	}
	return "", false, false
}

// owner returns whose wish the value is, and in which hook; empty of kubelet's.
func (v *Value) owner() (plugin string, hook abi.Hook) {
	if len(v.Wishes) == 0 {
		return "", hook
	}
	return v.Wishes[0].Plugin, v.Wishes[0].Hook
}

// ours reports whether the kernel may hold this because the host wrote it.
func (v *Value) ours(held string, holds func(value string) bool) bool {
	written := func(value string) bool { return value != "" && holds(value) }
	readBack := v.Read != "" && held == v.Read
	return readBack || written(v.Last) || written(v.Writing)
}

// Holds reports whether a file that shows held has the value that it is to have: that of the
// plugin that asked first, also if it was fitted to what the kernel takes, else kubelet's.
func (v *Value) Holds(file, held string, kernel Kernel) bool {
	value, undo, ok := v.wanted()
	if !ok || undo {
		return !ok || held == value
	}
	holds := func(value string) bool { return kernel.Holds(file, value, held) }
	return holds(kernel.Fit(file, value)) || v.ours(held, holds)
}

// isKubelets notes what kubelet wants, and reports whether that is another value than before.
func (v *Value) isKubelets(found, exact string) (changed bool) {
	changed = v.Kubelet == nil || *v.Kubelet != found || v.Exact != exact
	v.Kubelet, v.Exact = &found, exact
	return changed
}

// renew adds what a later record of the same target knows, which was made without v: it may have
// taken a value of the host for kubelet's.
func (v *Value) renew(t Target, later *Value) {
	asked := make([]Asked, len(later.Wishes))
	for i, w := range later.Wishes {
		asked[i] = Asked{Target: t, Wish: w}
	}
	if kubelet := later.Kubelet; kubelet != nil {
		if _, file := t.File(); !file && *kubelet != v.Last {
			v.hear(t, *kubelet, asked, time.Time{})
		} else if file && !v.ours(*kubelet, func(value string) bool { return value == *kubelet }) {
			v.isKubelets(*kubelet, later.Exact)
		}
	}
	for _, w := range later.Wishes {
		v.ask(w)
	}
	if !later.unwritten() {
		v.Last, v.Read, v.Writing = later.Last, later.Read, later.Writing
	}
	v.Failed = later.Failed
}
