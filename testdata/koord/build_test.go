package koord_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// buildRaced builds wasmproxy with the race detector, which needs a C compiler.
func buildRaced(ctx context.Context, root string) error {
	return goIn(ctx, root, []string{"CGO_ENABLED=1"}, "build", "-race", "-buildvcs=false", "-o", programs.raced, "./cmd/wasmproxy")
}

// buildKoordlet builds the programs of ./koordlet, once, and returns the path of one.
func buildKoordlet(ctx context.Context, cache, program string) (string, error) {
	out, err := exec.CommandContext(ctx, "koordlet/build.sh", cache, program).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("build koordlet: %w\n%s", err, exit.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}

func goIn(ctx context.Context, dir string, env []string, args ...string) error {
	cmd := exec.CommandContext(ctx, "nice", append([]string{"go"}, args...)...)
	cmd.Dir, cmd.Env = dir, append(append(os.Environ(), "GOFLAGS="), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", args[0], err, out)
	}
	return nil
}
