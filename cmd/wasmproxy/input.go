package main

import (
	"context"
	"fmt"
	"io"
	"os"
)

// maxInput is the most that is read of an event or a configuration, in bytes.
const maxInput = 64 << 20

// readInput reads a file. It may be a pipe, into which nobody writes yet, so it gives up
// when ctx ends.
func readInput(ctx context.Context, path string) ([]byte, error) {
	return readOpen(ctx, path, func() (io.ReadCloser, error) { return os.Open(path) })
}

// readOpen reads all of what open returns, and closes it.
func readOpen(ctx context.Context, name string, open func() (io.ReadCloser, error)) ([]byte, error) {
	done := make(chan struct{})
	var read []byte
	var failed error
	go func() {
		defer close(done)
		in, err := open()
		if err != nil {
			failed = err
			return
		}
		defer in.Close()
		if read, failed = io.ReadAll(io.LimitReader(in, maxInput+1)); failed == nil && len(read) > maxInput {
			failed = fmt.Errorf("%s: has more than %d bytes", name, maxInput)
		}
	}()
	select {
	case <-done:
		return read, failed
	case <-ctx.Done():
		return nil, fmt.Errorf("reading %s: %w", name, ctx.Err())
	}
}
