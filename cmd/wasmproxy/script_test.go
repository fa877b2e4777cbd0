package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// The test binary is the program itself when a script runs it.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"wasmproxy": func() {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
	}})
}

// TestScripts runs the program as its users do. A script is a story: commands,
// and what they must print.
func TestScripts(t *testing.T) {
	guests, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "../../testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("WASMPROXY_CACHE_DIR", env.WorkDir+"/cache")
			env.Setenv("GUESTS", guests+"/../../testdata/wat")
			env.Setenv("PLUGINS", guests+"/../../plugins-wasm")
			return nil
		},
	})
}
