package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

const (
	// settling is how long processes are left alone before their memory is read.
	settling = 5 * time.Second

	// manyCalls are what a proxy has to show that its memory does not grow with.
	manyCalls = 1000
)

// A size is a number of bytes that a party needs.
type size struct {
	party string
	of    string // "RSS/at=idle", "RSSAnon/at=idle", "Binary"
	bytes int64
}

// sizes reads the memory of proxies before and after hooked calls, and the sizes of the binaries.
func (n *node) sizes(ctx context.Context) ([]size, error) {
	var with []*party
	for _, name := range []string{wasmproxy, wasmproxy5, koordHook} {
		if p, ok := n.parties[name]; ok {
			with = append(with, p)
		}
	}
	idle, err := settledMemory("idle", with)
	if err != nil {
		return nil, err
	}
	for _, p := range with {
		if err := p.createMany(ctx, manyCalls); err != nil {
			return nil, fmt.Errorf("party %s: %w", p.name, err)
		}
	}
	after, err := settledMemory(fmt.Sprintf("after%dcalls", manyCalls), with)
	if err != nil {
		return nil, err
	}
	binaries, err := n.bin.sizes()
	return append(append(idle, after...), binaries...), err
}

// settledMemory reads the memory of the parties after a time in which nobody calls them.
func settledMemory(at string, parties []*party) ([]size, error) {
	time.Sleep(settling)
	var sizes []size
	for _, row := range []struct{ of, value string }{{"RSS", "VmRSS"}, {"RSSAnon", "RssAnon"}} {
		for _, p := range parties {
			bytes, err := p.process.Memory(row.value)
			if err != nil {
				return nil, fmt.Errorf("memory of %s: %w", p.name, err)
			}
			sizes = append(sizes, size{party: p.name, of: row.of + "/at=" + at, bytes: bytes})
		}
	}
	return sizes, nil
}

func (p *party) createMany(ctx context.Context, n int) error {
	for range n {
		if err := createIn(plain)(ctx, p); err != nil {
			return err
		}
	}
	return p.kubelet.remove(ctx)
}

func (b *binaries) sizes() ([]size, error) {
	var sizes []size
	for _, binary := range []struct{ party, path string }{{wasmproxy, b.wasmproxy}, {koord, b.koord}} {
		info, err := os.Stat(binary.path)
		if err != nil {
			return nil, err
		}
		sizes = append(sizes, size{party: binary.party, of: "Binary", bytes: info.Size()})
	}
	return sizes, nil
}
