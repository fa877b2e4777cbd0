package cgroup

import (
	"errors"
	"slices"

	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

// held reads the files by which cgroup v1 has a file of v2. One that the kernel lacks and may
// lack is left out.
func (o *opened) held(x *rules.File) (rules.Held, error) {
	if err := x.In(1); err != nil {
		return nil, err
	}
	held := make(rules.Held, len(x.V1.Names))
	for _, name := range x.V1.Names {
		value, err := o.readFile(x.V1.Controller, name, x.V1.Needs)
		if err == nil {
			held[name] = value
		} else if !absent(err) || !slices.Contains(x.V1.Optional, name) {
			return nil, err
		}
	}
	return held, nil
}

// put1 writes a value to the files of cgroup v1. If one of several refuses it, those before
// it get back what they held.
func (o *opened) put1(x *rules.File, value string) (err error) {
	if err := x.In(1); err != nil {
		return err
	}
	var held rules.Held
	if !x.V1.Direct() {
		if held, err = o.held(x); err != nil {
			return err
		}
	}
	writes, err := x.V1.Writes(value, held)
	if err != nil {
		return err
	}
	for i, w := range writes {
		err := o.writeFile(x.V1.Controller, w.Name, x.V1.Needs, w.Value)
		if err == nil {
			continue
		}
		for _, done := range slices.Backward(writes[:i]) {
			err = errors.Join(err, o.writeFile(x.V1.Controller, done.Name, x.V1.Needs, done.Undo))
		}
		return err
	}
	return nil
}
