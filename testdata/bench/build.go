package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/wasmproxy/wasmproxy/testdata/bench/incumbent"
)

// binaries are the paths of the programs that the harness starts.
type binaries struct {
	self       string // this program
	wasmproxy  string
	koord      string // koord-runtime-proxy
	hookServer string
}

// build builds what is missing. root is the repository, cache a directory for what is built.
func build(ctx context.Context, root, cache string) (*binaries, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	b := &binaries{self: self, wasmproxy: filepath.Join(cache, "wasmproxy")}
	build := exec.CommandContext(ctx, "nice", "make", "-s", "build", "BIN="+b.wasmproxy)
	build.Dir, build.Env = root, append(os.Environ(), "MAKEFLAGS=", "GOFLAGS=")
	if text, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("make build: %w\n%s", err, text)
	}
	koord, err := incumbent.Build(ctx, root, cache)
	b.koord, b.hookServer = koord.Proxy, koord.HookServer
	return b, err
}
