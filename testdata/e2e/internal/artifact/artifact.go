// Package artifact builds what the end-to-end tests run: programs of other
// projects, from Go modules whose versions are pinned in ../../modules, and the
// project's own programs and plugins from the checkout; and it installs the few
// Debian packages that they need.
//
// Programs of pinned modules are kept in the cache, under a key made of all
// that goes into them, so that the next run finds them.
package artifact

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Builder builds for one checkout of the project.
type Builder struct {
	project string // the directory of the project's go.mod
	cache   string
}

// NewBuilder finds the checkout around the working directory.
func NewBuilder(ctx context.Context) (*Builder, error) {
	gomod, err := output(ctx, "", "go", "env", "GOMOD")
	if err != nil {
		return nil, err
	}
	project := filepath.Dir(filepath.Dir(filepath.Dir(gomod))) // of <project>/testdata/e2e/go.mod
	cache, err := filepath.Abs(cmp.Or(os.Getenv("WASMPROXY_CACHE"), filepath.Join(project, ".cache")))
	if err != nil {
		return nil, fmt.Errorf("finding the cache directory: %w", err)
	}
	return &Builder{project: project, cache: filepath.Join(cache, "e2e")}, nil
}

// Cache is the directory that keeps programs from run to run.
func (b *Builder) Cache() string { return b.cache }

// ProjectFile returns the path of a file of the checkout.
func (b *Builder) ProjectFile(name string) string { return filepath.Join(b.project, name) }

// modules is the directory of the pinned modules.
func (b *Builder) modules() string { return filepath.Join(b.project, "testdata/e2e/modules") }

// Proxy builds wasmproxy into the directory dir, as `make build` does. Go's build cache alone decides what there is to do.
func (b *Builder) Proxy(ctx context.Context, dir string) error {
	return run(ctx, b.project, []string{"MAKEFLAGS="}, "make", "-s", "build", "BIN="+filepath.Join(dir, "wasmproxy"))
}

// Fleet builds the fleet's programs, of a module of their own, into dir.
func (b *Builder) Fleet(ctx context.Context, dir string) error {
	return run(ctx, filepath.Join(b.project, "fleet"), []string{"CGO_ENABLED=0"}, "go", "build", "-trimpath", "-buildvcs=false", "-o", dir+"/", "./cmd/...")
}

// Raced builds wasmproxy with the race detector into dir, as wasmproxy-race. As in `make unit`, wazero's
// compiler is without it: under it a large plugin takes a minute to compile.
func (b *Builder) Raced(ctx context.Context, dir string) error {
	args := []string{"build", "-race", "-buildvcs=false", "-o", filepath.Join(dir, "wasmproxy-race")}
	for _, pkg := range []string{"ssa", "frontend", "backend/..."} {
		args = append(args, "-gcflags=github.com/tetratelabs/wazero/internal/engine/wazevo/"+pkg+"=-race=false")
	}
	return run(ctx, b.project, []string{"CGO_ENABLED=1"}, "go", append(args, "./cmd/wasmproxy")...)
}

// ImagePrograms builds the programs of the test images into dir: multicall and pause.
func (b *Builder) ImagePrograms(ctx context.Context, dir string) error {
	return errors.Join(
		b.command(ctx, dir, "image/multicall"),
		run(ctx, "", nil, "gcc", "-static", "-nostdlib", "-fno-stack-protector", "-Os", "-o", filepath.Join(dir, "pause"),
			filepath.Join(b.project, "testdata/e2e/internal/image/pause/pause.c")),
	)
}

// command builds a program of this module, by its directory below internal, into dir.
func (b *Builder) command(ctx context.Context, dir, name string) error {
	return run(ctx, filepath.Join(b.project, "testdata/e2e"), []string{"CGO_ENABLED=0"}, "go", "build",
		"-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", dir+"/", "./internal/"+name)
}

// Bench builds the benchmark's program into dir: "bench backend SOCKET" is a CRI runtime that
// answers at once and runs nothing.
func (b *Builder) Bench(ctx context.Context, dir string) error {
	return run(ctx, filepath.Join(b.project, "testdata/bench"), []string{"CGO_ENABLED=0"}, "go", "build", "-trimpath", "-buildvcs=false", "-o", dir+"/", ".")
}

// Koordinator builds Koordinator's types as a hook server, a module of its own, into dir.
func (b *Builder) Koordinator(ctx context.Context, dir string) error {
	return run(ctx, filepath.Join(b.project, "runtime/remote/testdata/koordinator"), []string{"CGO_ENABLED=0"}, "go", "build",
		"-trimpath", "-buildvcs=false", "-o", dir+"/", ".")
}

// NRIHost builds the second host of the plugin ABI into dir.
func (b *Builder) NRIHost(ctx context.Context, dir string) error {
	return run(ctx, filepath.Join(b.project, "testdata/nri-host"), []string{"CGO_ENABLED=0"},
		"go", "build", "-trimpath", "-buildvcs=false", "-o", filepath.Join(dir, "nri-host"), ".")
}

// Koordlet puts a link to koordlet's hook server into dir.
func (b *Builder) Koordlet(ctx context.Context, dir string) error {
	program, err := output(ctx, "", filepath.Join(b.project, "testdata/koord/koordlet/build.sh"), filepath.Join(b.cache, "../koord"), "koordlet")
	if err != nil {
		return err
	}
	return os.Symlink(program, filepath.Join(dir, "koordlet"))
}

// Plugin builds a package of the project's own module as a WebAssembly plugin.
func (b *Builder) Plugin(ctx context.Context, file, pkg string) error {
	return run(ctx, b.project, []string{"GOOS=wasip1", "GOARCH=wasm"}, "go", "build",
		"-trimpath", "-buildvcs=false", "-buildmode=c-shared", "-ldflags=-s -w", "-o", file, pkg)
}

// TinyGoPlugin builds a package of the project's own module, by its directory, as
// a WebAssembly plugin with TinyGo, as the stock plugins are built.
func (b *Builder) TinyGoPlugin(ctx context.Context, file, dir string) error {
	return run(ctx, b.project, nil, "testdata/toolchain/plugin.sh", dir, file)
}

// NewPlugin has a program of wasmproxy write the plugin of the tutorial, in TinyGo, and builds it.
func (b *Builder) NewPlugin(ctx context.Context, program, file string) error {
	dir, err := os.MkdirTemp("", "new-plugin-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := run(ctx, dir, nil, program, "plugin", "new", "--lang", "tinygo", "cpu-boost"); err != nil {
		return err
	}
	return b.TinyGoPlugin(ctx, file, filepath.Join(dir, "cpu-boost"))
}

// Tests builds the tests of a package of the project's own module as a program.
func (b *Builder) Tests(ctx context.Context, file, pkg string) error {
	return run(ctx, b.project, []string{"CGO_ENABLED=0"}, "go", "test", "-c", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", file, pkg)
}

// OwnTests builds the tests of a package of this module as a program.
func (b *Builder) OwnTests(ctx context.Context, file, pkg string) error {
	return run(ctx, filepath.Join(b.project, "testdata/e2e"), []string{"CGO_ENABLED=0"}, "go", "test", "-c", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", file, pkg)
}

// run runs a command in dir with additions to the environment; its output appears only in the error.
func run(ctx context.Context, dir string, env []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	cmd.Env = append(cmd.Env, env...)
	cmd.WaitDelay = 5 * time.Second // what go has started may outlive it
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// output returns what a command prints on its standard output, without the last newline.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, exit.Stderr)
	}
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimRight(string(out), "\n"), nil
}
