package main

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// The test binary is the program itself when a script runs it.
func TestMain(m *testing.M) {
	program := func() {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		os.Exit(run(ctx, newRoot(os.Getenv("NODE_SETTINGS")), commandLine(os.Args), os.Stdout, os.Stderr))
	}
	testscript.Main(m, map[string]func(){"wasmproxy": program, koordName: program, "kubelet": playKubelet})
}

// TestScripts runs the program as its users do. A script is a story: commands,
// and what they must print.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: scripts, Setup: setUp})
}

const scripts = "../../testdata/script"

func setUp(env *testscript.Env) error {
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	program, err := exec.LookPath("wasmproxy") // which testscript has put on PATH
	if err != nil {
		return err
	}
	env.Setenv("PROGRAM", program)
	env.Setenv("GORACE", os.Getenv("GORACE"))
	env.Setenv("WASMPROXY_CACHE_DIR", env.WorkDir+"/cache")
	env.Setenv("WASMPROXY_STATUS_SOCKET", env.WorkDir+"/status/status.sock")
	env.Setenv("GUESTS", here+"/../../testdata/wat")
	env.Setenv("PLUGINS", here+"/../../plugins-wasm")
	return nil
}

// TestNewPlugins builds what plugin new writes, with the compilers of
// testdata/toolchain, no module cache and no network.
func TestNewPlugins(t *testing.T) {
	path := []string{program(t)} // not the tests' own: under the race detector it compiles standard Go's guests for a minute
	for _, toolchain := range []string{"tinygo", "rust", "clang"} {
		out, err := exec.CommandContext(t.Context(), "../../testdata/toolchain/"+toolchain+".sh").Output()
		if err != nil {
			t.Fatalf("setting up %s: %v", toolchain, err)
		}
		path = append(path, filepath.Dir(strings.TrimSpace(string(out))))
	}
	caches, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	goCache, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	target, err := filepath.Abs("../../testdata/toolchain/wp1.json")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{Dir: scripts + "/author", Setup: func(env *testscript.Env) error {
		env.Setenv("PATH", strings.Join(path, ":")+":"+env.Getenv("PATH"))
		env.Setenv("TINYGO_TARGET", target)
		env.Setenv("XDG_CACHE_HOME", caches) // of TinyGo's runtime
		env.Setenv("GOCACHE", strings.TrimSpace(string(goCache)))
		env.Setenv("GOMODCACHE", env.WorkDir+"/modules")
		env.Setenv("GOPROXY", "off")
		env.Setenv("GOFLAGS", "-buildvcs=false")
		env.Setenv("CARGO_HOME", env.WorkDir+"/cargo")
		return setUp(env)
	}})
}
