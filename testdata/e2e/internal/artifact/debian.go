package artifact

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// DebianPackages are what the programs and the images are made from or call:
// runc links libseccomp, the images hold busybox and bash, and pods get their
// network from the CNI plugins, which call iptables.
var DebianPackages = []string{
	"gcc", "libc6-dev", "pkg-config", "libseccomp-dev", "busybox-static", "bash-static",
	"containernetworking-plugins", "iptables",
}

// InstallDebianPackages installs those of the packages that are not there. It
// asks the archive for its lists only if an installation without that fails.
func InstallDebianPackages(ctx context.Context, packages ...string) error {
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("the tests need Debian or a system with its packages %s: %w", strings.Join(packages, ", "), err)
	}
	var missing []string
	for _, p := range packages {
		status, err := output(ctx, "", "dpkg-query", "-W", "-f=${Status}", p)
		if err != nil || !strings.HasSuffix(status, " installed") {
			missing = append(missing, p)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	fmt.Fprintln(os.Stderr, "e2e: installing the Debian packages", strings.Join(missing, " "))
	if install(ctx, missing) == nil {
		return nil
	}
	if err := aptGet(ctx, "update"); err != nil {
		return err
	}
	return install(ctx, missing)
}

func install(ctx context.Context, packages []string) error {
	return aptGet(ctx, append([]string{"install", "--yes", "--no-install-recommends"}, packages...)...)
}

func aptGet(ctx context.Context, args ...string) error {
	args = append([]string{"-o", "DPkg::Lock::Timeout=300"}, args...) // another installation may be under way
	return run(ctx, "", []string{"DEBIAN_FRONTEND=noninteractive"}, "apt-get", args...)
}

// unpackDebianPackage unpacks a package into dir, once. It installs nothing.
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
