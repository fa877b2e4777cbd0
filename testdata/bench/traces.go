package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/wasmproxy/wasmproxy/testdata/bench/process"
)

// startCollector starts the collector of traces, which takes those of the party with all sinks.
func (n *node) startCollector(ctx context.Context) error {
	file := n.path("collector.url")
	p, err := process.Start(n.path(logs), "collector", nil, n.bin.self, cmdCollector, file)
	if err != nil {
		return err
	}
	n.traces, n.started = p, append(n.started, p)
	return p.Await(ctx, func(context.Context) error {
		url, err := os.ReadFile(file)
		if err == nil && len(url) == 0 {
			err = fmt.Errorf("%s is empty", file)
		}
		n.tracesURL = string(url)
		return err
	})
}

// checkTraces tells whether the collector got a span of each hooked call, and one of the plugin in
// it. The last ones may be lost if the proxy cannot send them within a second when it ends.
func (n *node) checkTraces() error {
	got, err := strconv.Atoi(string(bytes.TrimSpace(n.traces.LastWords())))
	if err != nil {
		return fmt.Errorf("count of the collector of traces: %w", err)
	}
	if want := 2 * n.parties[withSinks].asked[preCreate]; got > want || got < want*9/10 {
		return fmt.Errorf("the collector of traces got %d spans, want %d", got, want)
	}
	return nil
}
