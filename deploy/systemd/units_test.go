package systemd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/wasmproxy/wasmproxy/deploy/systemd"
	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/service"
)

// analyze runs systemd-analyze, of Debian's package systemd, on a directory with the units.
func analyze(t *testing.T, args ...string) (string, error) {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"usr/lib/systemd/system/" + systemd.SocketName:  systemd.Socket(),
		"usr/lib/systemd/system/" + systemd.ServiceName: systemd.Service(),
		systemd.Program: "#!/bin/sh\n",
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o644)
		if name == systemd.Program {
			mode = 0o755
		}
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "systemd-analyze", append(args, "--root="+root)...)
	cmd.Env = append(os.Environ(), "SYSTEMD_COLORS=0")
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatalf("systemd-analyze did not run: %v; install Debian's package systemd", err)
	}
	return string(out), err
}

// TestUnitsAreValid: systemd knows every key and value, and finds every unit that is needed.
func TestUnitsAreValid(t *testing.T) {
	out, err := analyze(t, "verify", "--man=no", "--recursive-errors=no", systemd.ServiceName, systemd.SocketName)
	if err != nil || out != "" {
		t.Errorf("error %v:\n%s", err, out)
	}
}

// TestHardening: the exposure by systemd's own measure, in tenths, stays as low as it is.
func TestHardening(t *testing.T) {
	if out, err := analyze(t, "security", "--offline=yes", "--no-pager", "--threshold=26", systemd.ServiceName); err != nil {
		t.Errorf("error %v:\n%s", err, out)
	}
}

// value is that of a key that a unit has once.
func value(t *testing.T, unit, key string) string {
	t.Helper()
	_, after, ok := strings.Cut(unit, "\n"+key+"=")
	got, rest, _ := strings.Cut(after, "\n")
	if !ok || strings.Contains(rest, "\n"+key+"=") {
		t.Errorf("the unit does not have %s= once", key)
	}
	return got
}

// TestUnitsFitTheDefaults: what the units say twice, settings and code say once.
func TestUnitsFitTheDefaults(t *testing.T) {
	fs := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	config.Flags(fs)
	c, err := config.Load(fs)
	if err != nil {
		t.Fatal(err)
	}
	socket, unit := systemd.Socket(), systemd.Service()
	if got := value(t, socket, "ListenStream"); got != config.Path(c.Listen) {
		t.Errorf("the socket is %s, the setting %s", got, c.Listen)
	}
	if got := value(t, socket, "FileDescriptorName"); got != service.SocketName {
		t.Errorf("the socket's name is %s, the proxy takes %s", got, service.SocketName)
	}
	stop := strings.Replace(value(t, unit, "TimeoutStopSec"), "min", "m", 1)
	if got, err := time.ParseDuration(stop); err != nil || got < c.DrainTimeout+30*time.Second {
		t.Errorf("TimeoutStopSec is %v, drain-timeout %v", got, c.DrainTimeout)
	}
	if got := value(t, unit, "ExecStart"); !strings.HasPrefix(got, systemd.Program+" serve ") {
		t.Errorf("ExecStart is %s", got)
	}
	for key, dir := range map[string]string{"CacheDirectory": strings.TrimPrefix(c.CacheDir, "/var/cache/"), "RuntimeDirectory": strings.TrimPrefix(filepath.Dir(c.StateDir), "/run/")} {
		if got := value(t, unit, key); got != dir {
			t.Errorf("%s is %s, the setting's %s", key, got, dir)
		}
	}
	for _, dir := range []string{c.PluginDir, c.HookDir} {
		if writable := value(t, unit, "ReadWritePaths"); !strings.Contains(writable+" ", "-"+filepath.Dir(dir)+" ") {
			t.Errorf("ReadWritePaths %s lacks the directory above %s", writable, dir)
		}
	}
}
