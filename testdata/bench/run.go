package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// settling is how long a process is left alone before its memory is read.
const settling = 5 * time.Second

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
	n, err := startNode(ctx, dir, bin, filepath.Join(o.root, "plugins-wasm", "qos", "qos.wasm"))
	if err != nil {
		return errors.Join(err, n.stop())
	}
	r, err := n.run(ctx, o)
	if err := errors.Join(err, n.stop()); err != nil {
		return err
	}
	if err := n.checkHooks(); err != nil {
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
	}
	r := &result{}
	var err error
	if r.sizes, err = n.sizes(ctx); err != nil {
		return nil, err
	}
	for _, b := range benchmarks() {
		if !o.only.MatchString(b.name) {
			continue
		}
		fmt.Println("measuring", b.name)
		all, err := n.measure(ctx, b, o.rounds)
		if err != nil {
			return nil, err
		}
		r.series = append(r.series, all)
	}
	return r, nil
}

// sizes reads the memory of the proxies with plugins, before and after work, and the sizes of the binaries.
func (n *node) sizes(ctx context.Context) ([]size, error) {
	var sizes []size
	for _, at := range []struct {
		name  string
		calls int
	}{{"idle", 0}, {"after1000calls", 1000}} {
		for _, name := range []string{wasmproxy, wasmproxy5, koordHook} {
			p, ok := n.parties[name]
			if !ok {
				continue
			}
			bytes, err := p.rssAfter(ctx, at.calls)
			if err != nil {
				return nil, fmt.Errorf("memory of %s: %w", name, err)
			}
			sizes = append(sizes, size{of: "RSS/at=" + at.name, party: name, bytes: bytes})
		}
	}
	return appendBinaries(sizes, n.bin)
}

func (p *party) rssAfter(ctx context.Context, calls int) (int64, error) {
	for range calls {
		if err := createIn(plain)(ctx, p); err != nil {
			return 0, err
		}
	}
	if err := p.kubelet.removeContainers(ctx); err != nil {
		return 0, err
	}
	time.Sleep(settling)
	return p.process.rss()
}

func appendBinaries(sizes []size, bin *binaries) ([]size, error) {
	for _, binary := range []struct{ party, path string }{{wasmproxy, bin.wasmproxy}, {koord, bin.koord}} {
		info, err := os.Stat(binary.path)
		if err != nil {
			return nil, err
		}
		sizes = append(sizes, size{of: "Binary", party: binary.party, bytes: info.Size()})
	}
	return sizes, nil
}
