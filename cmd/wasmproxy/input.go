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
	return untilDone(ctx, name, func() ([]byte, error) {
		in, err := open()
		if err != nil {
			return nil, err
		}
		defer in.Close()
		read, err := io.ReadAll(io.LimitReader(in, maxInput+1))
		if err == nil && len(read) > maxInput {
			err = fmt.Errorf("%s: has more than %d bytes", name, maxInput)
		}
		return read, err
	})
}

// untilDone returns what read returns, which reads from name, and an error if ctx ends before: Ctrl-C ends no read of a
// terminal or a pipe. read then goes on until the process ends.
func untilDone[T any](ctx context.Context, name string, read func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := read()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		return *new(T), fmt.Errorf("reading %s: %w", name, ctx.Err())
	}
}
