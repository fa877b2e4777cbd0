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
	type input struct {
		b   []byte
		err error
	}
	done := make(chan input, 1)
	go func() {
		b, err := readAll(name, open)
		done <- input{b, err}
	}()
	select {
	case i := <-done:
		return i.b, i.err
	case <-ctx.Done():
		return nil, fmt.Errorf("reading %s: %w", name, ctx.Err())
	}
}

func readAll(name string, open func() (io.ReadCloser, error)) ([]byte, error) {
	in, err := open()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	b, err := io.ReadAll(io.LimitReader(in, maxInput+1))
	if err == nil && len(b) > maxInput {
		err = fmt.Errorf("%s: has more than %d bytes", name, maxInput)
	}
	return b, err
}
