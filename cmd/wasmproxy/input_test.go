package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A pipe that nobody writes to does not keep Ctrl-C from ending the command.
func TestReadInputEndsWithItsContext(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := readInput(ctx, pipe); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v", err)
	}
	w, err := os.OpenFile(pipe, os.O_RDWR, 0) // lets the reader go
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
}
