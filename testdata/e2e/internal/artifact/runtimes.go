package artifact

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Containerd puts links to containerd, its shim and runc into dir.
func (b *Builder) Containerd(ctx context.Context, dir string) error {
	return b.Programs(ctx, dir, containerd, containerdShim, runc)
}

// DebianContainerd does the same with those of Debian 12, 1.6 and 1.1.
func (b *Builder) DebianContainerd(ctx context.Context, dir string) error {
	return b.debianPrograms(ctx, dir, debianContainerd)
}

// DebianCrun does the same with crun in the place of runc.
func (b *Builder) DebianCrun(ctx context.Context, dir string) error {
	return errors.Join(
		InstallDebianPackages(ctx, "libyajl2"), // of crun
		b.debianPrograms(ctx, dir, map[string][]string{"containerd": debianContainerd["containerd"], "crun": {"usr/bin/crun"}}),
	)
}

// CRIO puts links to CRI-O, its pinns, conmon and runc into dir, and ClampedRunc.
func (b *Builder) CRIO(ctx context.Context, dir string) error {
	return errors.Join(
		InstallDebianPackages(ctx, "libglib2.0-0", "libsystemd0"), // of conmon
		b.Programs(ctx, dir, crio, runc),
		b.pinns(ctx, dir),
		b.debianPrograms(ctx, dir, map[string][]string{"conmon": {"usr/bin/conmon"}}),
		b.clampedRunc(ctx, dir),
	)
}

// CRIDockerd puts a link to cri-dockerd into dir, and those of Docker.
func (b *Builder) CRIDockerd(ctx context.Context, dir string) error {
	return errors.Join(
		InstallDebianPackages(ctx, "socat"), // cri-dockerd calls it
		b.Programs(ctx, dir, criDockerd),
		b.Docker(ctx, dir),
	)
}

// Docker puts links to Debian's dockerd, docker, containerd and runc into dir, and ClampedRunc.
func (b *Builder) Docker(ctx context.Context, dir string) error {
	return errors.Join(
		InstallDebianPackages(ctx, "libdevmapper1.02.1", "libsystemd0"), // of dockerd
		b.debianPrograms(ctx, dir, debianContainerd),
		b.debianPrograms(ctx, dir, map[string][]string{"docker.io": {"usr/sbin/dockerd", "usr/bin/docker"}}),
		b.clampedRunc(ctx, dir),
	)
}

// debianContainerd are the programs of containerd and runc, by package.
var debianContainerd = map[string][]string{
	"containerd": {"usr/bin/containerd", "usr/bin/containerd-shim-runc-v2"},
	"runc":       {"usr/sbin/runc"},
}

// ClampedRunc is the name of a program that runs runc for runtimes that ask for
// OOM scores that only a process with CAP_SYS_RESOURCE may give.
const ClampedRunc = "clampedrunc"

func (b *Builder) clampedRunc(ctx context.Context, dir string) error {
	return b.command(ctx, dir, ClampedRunc)
}

// pinns builds CRI-O's helper that holds namespaces, which is C, in the module of crio.
func (b *Builder) pinns(ctx context.Context, dir string) error {
	module := filepath.Join(b.modules(), crio.Module)
	if err := run(ctx, module, nil, "go", "mod", "download", crio.Of); err != nil {
		return err
	}
	source, err := output(ctx, module, "go", "list", "-m", "-f", "{{.Dir}}", crio.Of)
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(source, "pinns/src/*.c"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("%s has no source of pinns (%w)", source, err)
	}
	return run(ctx, "", nil, "gcc", append([]string{"-std=c99", "-O2", "-static", "-o", filepath.Join(dir, "pinns")}, files...)...)
}

// Prometheus puts links to Debian's prometheus and promtool into dir.
func (b *Builder) Prometheus(ctx context.Context, dir string) error {
	return b.debianPrograms(ctx, dir, map[string][]string{"prometheus": {"usr/bin/prometheus", "usr/bin/promtool"}})
}

// debianPrograms puts links to programs of Debian packages into dir. The
// packages are unpacked and not installed: the machine may have such programs of its own.
func (b *Builder) debianPrograms(ctx context.Context, dir string, programs map[string][]string) error {
	for name, files := range programs {
		root := filepath.Join(b.cache, "debian", name)
		if err := unpackDebianPackage(ctx, root, name); err != nil {
			return fmt.Errorf("unpacking the Debian package %s: %w", name, err)
		}
		for _, file := range files {
			if err := os.Symlink(filepath.Join(root, file), filepath.Join(dir, filepath.Base(file))); err != nil {
				return err
			}
		}
	}
	return nil
}
