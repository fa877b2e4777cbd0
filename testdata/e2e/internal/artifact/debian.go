package artifact

import (
	"context"
	"fmt"
	"os"
	"os/exec"
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
