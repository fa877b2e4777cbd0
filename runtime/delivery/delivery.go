package delivery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/regular"
)

// ExitRefused is the exit code of wasmproxy plugin deliver if the proxy would not load a plugin, whatever the state of the node is.
const ExitRefused = 8

// Delivery is what an owner's plugins are to be, all of them.
type Delivery struct {
	Owner     string
	Plugins   []Plugin
	MayEmpty  bool // the delivery may have no plugin, where that removes some
	CheckOnly bool // the plugins are checked, and none is changed

	// Probation is that of each plugin that changes; 0: none. MaxRefused is how many percent of its calls a plugin may refuse in it; nil:
	// that is not judged. If Probation is not 0, both also hold for plugins that do not change, and whose delivery has asked for a
	// probation.
	Probation  time.Duration
	MaxRefused *int
}

// Plan is what a delivery would change.
type Plan struct {
	Write  []Plugin
	Edited []string // ids of those of Write whose files were edited on the node
	Kept   []string // ids of plugins that stay as they were edited on the node: their delivery has brought nothing new
	Remove []string // ids
	Judge  []string // ids of plugins that stay, and whose probation gets another length or MaxRefused
}

// Plan compares a delivery with the directory. The error names a file that belongs to another owner, or that no
// delivery has brought.
func (d Directory) Plan(of Delivery) (*Plan, error) {
	r, err := d.record()
	if err != nil {
		return nil, err
	}
	plan, wanted := new(Plan), map[string]bool{}
	for _, p := range of.Plugins {
		wanted[p.ID] = true
		path := d.path(p.ID + ".json")
		now, err := os.ReadFile(path)
		before, ours := r.Plugins[p.ID]
		_, module := os.Lstat(d.path(p.ID + ".wasm"))
		has, wants := digest(now), digest(p.Text)
		switch {
		case ours && before.Owner != of.Owner:
			const remedy = "deliver the plugin under another name, or have that owner's delivery give it up"
			return nil, fmt.Errorf("%s belongs to the owner %q: %s", path, before.Owner, remedy)
		case module == nil:
			return nil, byHand(d.path(p.ID + ".wasm"))
		case errors.Is(err, fs.ErrNotExist):
			plan.Write = append(plan.Write, p)
		case err != nil:
			return nil, err
		case !ours:
			return nil, byHand(path)
		case has == wants && p.Module != nil && !d.has(p.Digest): // somebody has removed or changed it
			plan.Write = append(plan.Write, p)
		case has == wants:
			judged := of.Probation != 0 && before.Probation != "" && before.Texts[0] == wants
			same := of.Probation.String() == before.Probation && reflect.DeepEqual(of.MaxRefused, before.MaxRefused)
			if judged && !same {
				plan.Judge = append(plan.Judge, p.ID)
			}
		case slices.Contains(before.Texts, has):
			plan.Write = append(plan.Write, p)
		case before.Texts[0] == wants:
			plan.Kept = append(plan.Kept, p.ID)
		default:
			plan.Write, plan.Edited = append(plan.Write, p), append(plan.Edited, p.ID)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(r.Plugins)) {
		if r.Plugins[id].Owner == of.Owner && !wanted[id] {
			plan.Remove = append(plan.Remove, id)
		}
	}
	if len(of.Plugins) == 0 && len(plan.Remove) > 0 && !of.MayEmpty {
		return nil, fmt.Errorf("there is no plugin to deliver, so that all of the owner %q would be removed: %s; give --allow-empty if that is meant",
			of.Owner, strings.Join(plan.Remove, ", "))
	}
	return plan, nil
}

func byHand(path string) error {
	return fmt.Errorf("%s is there, and no delivery has brought it: remove it, or deliver the plugin under another name", path)
}

// Deliver makes an owner's plugins those of a delivery, if check accepts those that are to be written. A process that is
// killed leaves each plugin as it was or as it is to be, as a whole, and the next delivery goes on from there.
func (d Directory) Deliver(ctx context.Context, of Delivery, check Check) (*Plan, error) {
	end, err := d.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	tried, err := d.try(of, check)
	if err != nil || of.CheckOnly {
		return tried, err
	}
	var plan *Plan
	err = d.Edit(ctx, func() (err error) {
		if plan, err = d.Plan(of); err != nil {
			return err
		}
		for _, p := range plan.Write {
			if !slices.ContainsFunc(tried.Write, func(t Plugin) bool { return t.ID == p.ID }) {
				return fmt.Errorf("%s was changed while the plugins were checked: try again", d.path(p.ID+".json"))
			}
		}
		r, err := d.record()
		if err != nil {
			return err
		}
		for _, step := range d.steps(of, plan, r) { // the process may be killed between any two
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	})
	return plan, err
}

// Check gets a plugin directory with the plugins that are to be written, exactly as they are to be, and the path of a
// directory for files of its own. Both are absolute.
type Check func(plugins, scratch string) error

// try has the plugins checked that are to be written, in a directory of their own.
func (d Directory) try(of Delivery, check Check) (*Plan, error) {
	plan, err := d.Plan(of)
	if err != nil || len(plan.Write) == 0 {
		return plan, err
	}
	if err := os.MkdirAll(d.path(staged, registry.Modules), 0o755); err != nil {
		return nil, err
	}
	for _, p := range plan.Write {
		err := regular.Replace(d.path(staged, p.ID+".json"), p.Text, 0o644)
		if err == nil && p.Module != nil {
			err = regular.Replace(d.path(staged, modulePath(p.Digest)), p.Module, 0o644)
		}
		if err != nil {
			return nil, err
		}
	}
	whole, err := filepath.Abs(string(d))
	if err != nil {
		return nil, err
	}
	return plan, check(filepath.Join(whole, staged), filepath.Join(whole, scratch))
}

// steps put the staged files into their places. The record says first what may be there, and in the end what is. Modules come
// before the JSON files that name them.
func (d Directory) steps(of Delivery, plan *Plan, r record) (all []func() error) {
	all = append(all, func() error { return d.announce(of, plan, &r) })
	for _, p := range plan.Write {
		if p.Module == nil {
			continue
		}
		all = append(all, func() error {
			err := d.rename(d.path(staged, modulePath(p.Digest)), modulePath(p.Digest))
			if errors.Is(err, fs.ErrNotExist) { // of two plugins with one module the second one finds it in its place
				_, err = os.Lstat(d.path(modulePath(p.Digest)))
			}
			return err
		})
	}
	for _, p := range plan.Write {
		all = append(all, func() error { return d.rename(d.path(staged, p.ID+".json"), p.ID+".json") })
	}
	for _, id := range plan.Remove {
		all = append(all, func() error {
			if err := os.Remove(d.path(id + ".json")); !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		})
	}
	var left error // a module that cannot be removed is no reason to keep a wrong record
	return append(all,
		func() error { left = d.conclude(of.Owner, plan, &r); return nil },
		func() error { return errors.Join(left, d.save(r)) },
	)
}

// announce writes down which files the delivery may leave if it is killed, and makes the directory of modules.
func (d Directory) announce(of Delivery, plan *Plan, r *record) error {
	probation := ""
	if of.Probation > 0 {
		probation = of.Probation.String()
	}
	for _, p := range plan.Write {
		texts := []string{digest(p.Text)}
		if now, err := os.ReadFile(d.path(p.ID + ".json")); err == nil {
			texts = append(texts, digest(now))
		}
		r.Plugins[p.ID] = brought{of.Owner, texts, probation, of.MaxRefused}
		if p.Module != nil && !d.has(p.Digest) && !slices.Contains(r.Modules, p.Digest) {
			r.Modules = append(r.Modules, p.Digest)
		}
	}
	for _, id := range plan.Judge {
		one := r.Plugins[id]
		one.Probation, one.MaxRefused = probation, of.MaxRefused
		r.Plugins[id] = one
	}
	if err := os.Mkdir(d.path(registry.Modules), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return d.save(*r)
}

// conclude makes the record say what is there. A file that was edited on the node keeps the text of its delivery.
func (d Directory) conclude(owner string, plan *Plan, r *record) error {
	for _, id := range plan.Remove {
		delete(r.Plugins, id)
	}
	for id, has := range r.Plugins {
		if has.Owner != owner {
			continue
		}
		texts := has.Texts[:1]
		if now, err := os.ReadFile(d.path(id + ".json")); err == nil && !slices.Contains(plan.Kept, id) {
			texts = []string{digest(now)}
		}
		r.Plugins[id] = brought{owner, texts, has.Probation, has.MaxRefused}
	}
	return d.collect(r)
}

// has reports whether a module lies in its place, as it was delivered.
func (d Directory) has(of string) bool {
	module, err := regular.Read(d.path(modulePath(of)), abi.MaxModule, nil)
	return err == nil && digest(module) == of
}

// collect removes modules that a delivery has written and that no JSON file names. If one cannot be read, or the directory,
// it may name any of them, and all stay.
func (d Directory) collect(r *record) error {
	found, err := registry.ReadUntrusted(string(d))
	named, all := modules(found, "")
	if !all || errors.As(err, new(syscall.Errno)) {
		return nil
	}
	var errs error
	r.Modules = slices.DeleteFunc(r.Modules, func(digest string) bool {
		if named[modulePath(digest)] {
			return false
		}
		err := os.Remove(d.path(modulePath(digest)))
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		errs = errors.Join(errs, err)
		return err == nil
	})
	return errs
}
