package guest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/dirhash"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/artifact"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/isolation"
)

// Image is a directory with the files that image.sh makes.
type Image string

func (i Image) file(name string) string { return filepath.Join(string(i), name) }

// packages are those of the machine itself that run the guest and make its image.
var packages = []string{"qemu-system-x86", "e2fsprogs", "busybox-static"}

// MakeImage returns the guest's image. It is kept in the cache, and made again when
// the programs or the files in it are others.
func MakeImage(ctx context.Context, b *artifact.Builder) (image Image, err error) {
	if os.Geteuid() != 0 {
		return "", errors.New("root is needed: the guest's file system has the owners of Debian's packages")
	}
	unlock, err := isolation.LockCache(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	bin, err := os.MkdirTemp("", "guest-programs-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(bin)
	if err := errors.Join(
		artifact.InstallDebianPackages(ctx, append(packages, artifact.DebianPackages...)...),
		b.Containerd(ctx, bin),
		b.Programs(ctx, bin, artifact.Kubelet(), artifact.Crictl),
	); err != nil {
		return "", err
	}
	sources := b.ProjectFile("testdata/e2e/internal/guest/image")
	key, err := imageKey(sources, bin)
	if err != nil {
		return "", err
	}
	image = Image(filepath.Join(b.Cache(), "guest", key))
	if _, err := os.Stat(string(image)); err == nil {
		return image, nil
	}
	return image, image.make(ctx, sources, bin)
}

// imageKey is made of the sources and of the names of the programs in the cache, which stand for their content.
func imageKey(sources, bin string) (string, error) {
	hash, err := dirhash.HashDir(sources, "", dirhash.Hash1)
	if err != nil {
		return "", err
	}
	programs, err := filepath.Glob(filepath.Join(bin, "*"))
	if err != nil {
		return "", err
	}
	for _, program := range programs {
		file, err := os.Readlink(program)
		if err != nil {
			return "", err
		}
		hash += " " + filepath.Base(file)
	}
	sum := sha256.Sum256([]byte(hash))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:10])), nil
}

// make makes the image beside its place and renames, and removes those before it.
func (i Image) make(ctx context.Context, sources, bin string) error {
	fmt.Fprintln(os.Stderr, "e2e: making the guest's image ...")
	start := time.Now()
	images := filepath.Dir(string(i))
	unfinished := string(i) + ".unfinished"
	if err := errors.Join(os.RemoveAll(images), os.MkdirAll(unfinished, 0o755)); err != nil {
		return err
	}
	programs, err := filepath.Glob(filepath.Join(bin, "*"))
	if err != nil {
		return err
	}
	args := append([]string{filepath.Join(sources, "image.sh"), unfinished, filepath.Join(sources, "root")}, programs...)
	out, err := exec.CommandContext(ctx, "bash", args...).CombinedOutput()
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return fmt.Errorf("making the guest's image: %w\n%s", err, out)
	}
	fmt.Fprintf(os.Stderr, "e2e: made the guest's image in %.0f s\n", time.Since(start).Seconds())
	return os.Rename(unfinished, string(i))
}
