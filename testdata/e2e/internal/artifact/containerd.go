package artifact

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// DebianContainerd reports whether CONTAINERD asks for the containerd and runc
// of Debian 12, 1.6 and 1.1, in place of those of the pinned modules.
func DebianContainerd() (bool, error) {
	switch name := os.Getenv("CONTAINERD"); name {
	case "":
		return false, nil
	case "debian":
		return true, nil
	default:
		return false, fmt.Errorf("CONTAINERD is %q; it can be debian, or empty", name)
	}
}

// Containerd puts links to containerd, its shim and runc into dir.
func (b *Builder) Containerd(ctx context.Context, dir string) error {
	debian, err := DebianContainerd()
	if err != nil {
		return err
	}
	if !debian {
		return b.Programs(ctx, dir, containerd, containerdShim, runc)
	}
	root := filepath.Join(b.cache, "debian")
	for _, p := range []string{"containerd", "runc"} {
		if err := unpackDebianPackage(ctx, filepath.Join(root, p), p); err != nil {
			return fmt.Errorf("unpacking the Debian package %s: %w", p, err)
		}
	}
	return errors.Join(
		os.Symlink(filepath.Join(root, "containerd/usr/bin/containerd"), filepath.Join(dir, "containerd")),
		os.Symlink(filepath.Join(root, "containerd/usr/bin/containerd-shim-runc-v2"), filepath.Join(dir, "containerd-shim-runc-v2")),
		os.Symlink(filepath.Join(root, "runc/usr/sbin/runc"), filepath.Join(dir, "runc")),
	)
}

// unpackDebianPackage unpacks a package into dir, once. It installs nothing: the
// machine may have a containerd of its own.
func unpackDebianPackage(ctx context.Context, dir, name string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	unfinished := dir + ".unfinished"
	if err := errors.Join(os.RemoveAll(unfinished), os.MkdirAll(unfinished, 0o755)); err != nil {
		return err
	}
	// Without its sandbox apt can write where only root may.
	download := []string{"-o", "APT::Sandbox::User=root", "download", name}
	if run(ctx, unfinished, nil, "apt-get", download...) != nil { // it may not know the archive yet
		if err := aptGet(ctx, "update"); err != nil {
			return err
		}
		if err := run(ctx, unfinished, nil, "apt-get", download...); err != nil {
			return err
		}
	}
	files, err := filepath.Glob(filepath.Join(unfinished, "*.deb"))
	if err != nil || len(files) != 1 {
		return fmt.Errorf("apt-get downloaded %q: %w", files, err)
	}
	if err := run(ctx, "", nil, "dpkg-deb", "--extract", files[0], unfinished); err != nil {
		return err
	}
	if err := os.Remove(files[0]); err != nil {
		return err
	}
	return os.Rename(unfinished, dir)
}
