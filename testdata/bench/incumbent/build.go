// Package incumbent builds Koordinator's koord-runtime-proxy, and runs it with an
// /etc of its own, for those who compare with it.
package incumbent

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

// Programs are the paths of what is built of Koordinator's released module.
type Programs struct {
	Proxy      string // koord-runtime-proxy
	HookServer string // ../koord/hookserver
}

const proxyPackage = "github.com/koordinator-sh/koordinator/cmd/koord-runtime-proxy"

// Build builds what is missing in cache. root is the repository.
func Build(ctx context.Context, root, cache string) (Programs, error) {
	module := filepath.Join(root, "testdata", "bench", "koord")
	key, err := hashFiles(filepath.Join(module, "go.mod"), filepath.Join(module, "go.sum"), filepath.Join(module, "hookserver", "main.go"))
	if err != nil {
		return Programs{}, err
	}
	dir := filepath.Join(cache, "koord-"+key)
	p := Programs{Proxy: filepath.Join(dir, "koord-runtime-proxy"), HookServer: filepath.Join(dir, "hookserver")}
	if err := buildOnce(ctx, module, p.Proxy, proxyPackage); err != nil {
		return p, err
	}
	return p, buildOnce(ctx, module, p.HookServer, "./hookserver")
}

// buildOnce builds to out unless it is there, which saves asking go for a big module.
func buildOnce(ctx context.Context, dir, out, pkg string) error {
	if _, err := os.Stat(out); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	fmt.Println("building", filepath.Base(out), "(once; some minutes)")
	return GoBuild(ctx, dir, out, pkg)
}

// GoBuild builds a static binary of pkg, seen from the module in dir: the way in which Koordinator
// releases its own. nice leaves the machine usable.
func GoBuild(ctx context.Context, dir, out, pkg string) error {
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
