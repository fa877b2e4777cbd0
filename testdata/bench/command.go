package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/wasmproxy/wasmproxy/testdata/bench/backend"
	"github.com/wasmproxy/wasmproxy/testdata/bench/collector"
	"github.com/wasmproxy/wasmproxy/testdata/bench/incumbent"
	"github.com/wasmproxy/wasmproxy/testdata/bench/relay"
)

// The harness starts itself again under these names, so that the backend, the relay and the
// collector of traces are processes of their own without binaries of their own.
const (
	cmdBackend = "backend" // SOCKET
	cmdRelay   = "relay"   // SOCKET BACKEND
	cmdWithEtc = "withetc" // DIRECTORY PROGRAM [ARGUMENT...]

	cmdCollector = "collector" // FILE
)

func command(args []string) error {
	if len(args) == 2 && args[0] == cmdBackend {
		return backend.Serve(args[1])
	}
	if len(args) == 2 && args[0] == cmdCollector {
		return collector.Serve(args[1])
	}
	if len(args) == 3 && args[0] == cmdRelay {
		return relay.Serve(args[1], args[2])
	}
	if len(args) >= 3 && args[0] == cmdWithEtc {
		return incumbent.ExecWithEtc(args[1], args[2:])
	}
	return measureAll(args)
}

func measureAll(args []string) error {
	o, err := parseOptions(args)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	fmt.Println("written to", o.results())
	return nil
}
