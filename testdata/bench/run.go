package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
)

// run builds, starts, measures, checks and writes.
func run(ctx context.Context, o *options) error {
	bin, err := build(ctx, o.root, o.cache)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "wasmproxy-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	memory, err := os.MkdirTemp("/dev/shm", "wasmproxy-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(memory)
	n, err := startNode(ctx, dir, memory, bin, o.root)
	if err != nil {
		return errors.Join(err, n.stop())
	}
	r, err := n.run(ctx, o)
	if err := errors.Join(err, n.checkShadow(ctx), n.stop()); err != nil {
		return err
	}
	if err := errors.Join(n.checkHooks(), n.checkTraces(), n.checkRecording()); err != nil {
		return err
	}
	return write(ctx, o, r)
}

// run makes all measurements.
func (n *node) run(ctx context.Context, o *options) (*result, error) {
	for name, p := range n.parties {
		if err := p.kubelet.runPods(ctx); err != nil {
			return nil, fmt.Errorf("party %s: %w", name, err)
		}
		p.asked[preRun] += len(p.kubelet.create)
	}
	r := &result{}
	var err error
	if r.sizes, err = n.sizes(ctx); err != nil {
		return nil, err
	}
	if err := n.checkChange(ctx); err != nil {
		return nil, err
	}
	if err := n.fill(ctx, o.full); err != nil {
		return nil, err
	}
	if o.only.MatchString(startName) {
		fmt.Println("measuring", startName)
		starts, err := n.starts(ctx, o)
		if err != nil {
			return nil, err
		}
		r.series = append(r.series, starts...)
	}
	for _, group := range benchmarks() {
		group = slices.DeleteFunc(group, func(b benchmark) bool { return !o.only.MatchString(b.name) })
		for _, b := range group {
			fmt.Println("measuring", b.name)
		}
		all, err := n.measure(ctx, group, o.rounds)
		if err != nil {
			return nil, err
		}
		r.series = append(r.series, all...)
	}
	return r, nil
}

// fill makes containers in both pods of each party, which stay.
func (n *node) fill(ctx context.Context, containers int) error {
	for name, p := range n.parties {
		for range containers {
			for kind := range p.kubelet.create {
				if err := createIn(kind)(ctx, p); err != nil {
					return fmt.Errorf("party %s: %w", name, err)
				}
			}
		}
		p.kubelet.ids = nil // of what is removed after a round
	}
	return nil
}
