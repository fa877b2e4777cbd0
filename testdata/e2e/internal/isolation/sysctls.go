package isolation

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// CommandWithSysctls is exec.CommandContext for a program that writes kernel
// parameters which are the whole machine's. It runs in a mount namespace of its
// own in which the named parameters (`vm/overcommit_memory=1`) are plain files
// with these values; only /proc differs there, all other mounts stay shared.
func CommandWithSysctls(ctx context.Context, w Workspace, parameters []string, program string, args ...string) *exec.Cmd {
	if OnOwnMachine() { // they are its own to write
		return exec.CommandContext(ctx, program, args...)
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Args = append([]string{program, strings.Join(parameters, ",")}, append([]string{program}, args...)...)
	cmd.Env = append(os.Environ(), stageVariable+"="+stageSysctls)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	return cmd
}

// execWithSysctls becomes the program of CommandWithSysctls: args are the parameters, then the command line.
func execWithSysctls(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("stage %s: want parameters and a program, have %q", stageSysctls, args)
	}
	if err := unix.Mount("", "/proc", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making /proc private: %w", err)
	}
	for parameter := range strings.SplitSeq(args[0], ",") {
		if err := standIn(Current(), parameter); err != nil {
			return fmt.Errorf("standing in for the kernel parameter %s: %w", parameter, err)
		}
	}
	if err := os.Unsetenv(stageVariable); err != nil {
		return err
	}
	return fmt.Errorf("starting %s: %w", args[1], syscall.Exec(args[1], args[1:], os.Environ()))
}

func standIn(w Workspace, parameter string) error {
	name, value, _ := strings.Cut(parameter, "=")
	file := w.Path("sysctl", strings.ReplaceAll(name, "/", "."))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(value+"\n"), 0o644); err != nil {
		return err
	}
	return unix.Mount(file, filepath.Join("/proc/sys", name), "", unix.MS_BIND, "")
}
