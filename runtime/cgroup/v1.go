package cgroup

import (
	"errors"
	"slices"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

// held reads files by which cgroup v1 has a file of v2. One that is optional and that the node lacks is
// left out.
func (g *Group) held(x *rules.File) (rules.Held, error) {
	held := make(rules.Held, len(x.V1.Names))
	for _, name := range x.V1.Names {
		value, err := g.readFile(name, x.V1.Needs)
		switch lacks := err != nil && rules.CodeOf(err) == abi.Unsupported; {
		case err == nil:
			held[name] = value
		case !lacks || !slices.Contains(x.V1.Optional, name):
			return nil, err
		}
	}
	return held, nil
}

// put1 writes a value to the files of cgroup v1. If one of several refuses it, those before
// it get back what they held.
func (g *Group) put1(x *rules.File, value string) (err error) {
	var held rules.Held
	if len(x.V1.Names) > 1 {
		if held, err = g.held(x); err != nil {
			return err
		}
	}
	writes, err := x.V1.Writes(value, held)
	if err != nil {
		return err
	}
	for i, w := range writes {
		err := g.writeFile(w.Name, x.V1.Needs, w.Value)
		if err == nil {
			continue
		}
		for _, done := range slices.Backward(writes[:i]) {
			err = errors.Join(err, g.writeFile(done.Name, x.V1.Needs, done.Undo))
		}
		return err
	}
	return nil
}
