package incumbent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// HookDir is where koord-runtime-proxy reads its hook servers: no flag names another directory.
const HookDir = "/etc/runtime/hookserver.d"

// InEtc returns the attributes under which ExecWithEtc may mount: a mount namespace, and for
// who is not root a user namespace that allows it.
func InEtc() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if uid := os.Geteuid(); uid != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
	}
	return attr
}

// ExecWithEtc becomes the program argv with dir mounted as /etc, in the mount namespace that
// InEtc made, so that the machine's own /etc is neither read nor written.
func ExecWithEtc(dir string, argv []string) error {
	if err := syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := syscall.Mount(dir, "/etc", "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s as /etc: %w", dir, err)
	}
	return fmt.Errorf("run %s: %w", argv[0], syscall.Exec(argv[0], argv, os.Environ()))
}

// HookDirIn returns where HookDir lies in a directory that is mounted as /etc.
func HookDirIn(etc string) string {
	return filepath.Join(etc, strings.TrimPrefix(HookDir, "/etc"))
}
