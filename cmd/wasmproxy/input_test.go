package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
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

// Ctrl-C ends a command that waits for an answer or for tests.
func TestWaitingForInputEndsWithItsContext(t *testing.T) {
	for _, args := range []string{"host install --root " + image(t), "abi host"} {
		t.Run(args, func(t *testing.T) {
			in, nobody := io.Pipe()
			defer nobody.Close()
			root := newRoot("")
			root.SetIn(in)
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			ended := make(chan string, 1)
			go func() {
				var errs strings.Builder
				run(ctx, root, strings.Fields(args), io.Discard, &errs)
				ended <- errs.String()
			}()
			select {
			case errs := <-ended:
				if errs == "" {
					t.Error("it does not say why")
				}
			case <-time.After(time.Minute):
				t.Error("it waits on")
			}
		})
	}
}
