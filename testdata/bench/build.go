package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
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
	if err := goBuild(ctx, root, b.wasmproxy, "./cmd/wasmproxy"); err != nil {
		return nil, err
	}
	koord := filepath.Join(root, "testdata", "bench", "koord")
	key, err := hashFiles(filepath.Join(koord, "go.mod"), filepath.Join(koord, "go.sum"), filepath.Join(koord, "hookserver", "main.go"))
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(cache, "koord-"+key)
	b.koord, b.hookServer = filepath.Join(dir, "koord-runtime-proxy"), filepath.Join(dir, "hookserver")
	if err := buildOnce(ctx, koord, b.koord, koordPackage); err != nil {
		return nil, err
	}
	return b, buildOnce(ctx, koord, b.hookServer, "./hookserver")
}

const koordPackage = "github.com/koordinator-sh/koordinator/cmd/koord-runtime-proxy"

// buildOnce builds to out unless it is there, which saves asking go for a big module.
func buildOnce(ctx context.Context, dir, out, pkg string) error {
	if _, err := os.Stat(out); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	fmt.Println("building", filepath.Base(out), "(once; some minutes)")
	return goBuild(ctx, dir, out, pkg)
}

// goBuild builds a static binary of pkg, seen from the module in dir: the way in which both
// projects release theirs. nice leaves the machine usable.
func goBuild(ctx context.Context, dir, out, pkg string) error {
	cmd := exec.CommandContext(ctx, "nice", "go", "build", "-trimpath", "-buildvcs=false", "-o", out, pkg)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, text)
	}
	return nil
}

// hashFiles names a build by what it is made of.
func hashFiles(paths ...string) (string, error) {
	sum := sha256.New()
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%d\n%s", len(text), text)
	}
	return hex.EncodeToString(sum.Sum(nil))[:12], nil
}
