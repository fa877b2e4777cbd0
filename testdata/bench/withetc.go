package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// koord-runtime-proxy reads its hook servers from this directory only: no flag names another.
const koordHookDir = "/etc/runtime/hookserver.d"

// inEtc returns the attributes under which execWithEtc may mount: a mount namespace, and for
// who is not root a user namespace that allows it.
func inEtc() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if uid := os.Geteuid(); uid != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
	}
	return attr
}

// execWithEtc becomes the program argv with dir mounted as /etc, in the mount namespace that
// inEtc made, so that the machine's own /etc is neither read nor written.
func execWithEtc(dir string, argv []string) error {
	if err := syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := syscall.Mount(dir, "/etc", "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s as /etc: %w", dir, err)
	}
	return fmt.Errorf("run %s: %w", argv[0], syscall.Exec(argv[0], argv, os.Environ()))
}

// makeEtc fills dir with what koord-runtime-proxy reads of /etc. An empty hook server
// socket means none.
func makeEtc(dir, hookServer string) error {
	hooks := filepath.Join(dir, filepath.Base(filepath.Dir(koordHookDir)), filepath.Base(koordHookDir))
	if err := os.MkdirAll(hooks, 0o755); err != nil {
		return err
	}
	if hookServer == "" {
		return nil
	}
	return os.WriteFile(filepath.Join(hooks, "noop.json"), hookServerJSON(hookServer), 0o644)
}

// hookServerJSON registers a hook server, in the form that koordlet uses.
func hookServerJSON(socket string) []byte {
	return fmt.Appendf(nil, `{"remote-endpoint": %q, "failure-policy": "Fail", "runtime-hooks": ["PreCreateContainer"]}`, socket)
}
