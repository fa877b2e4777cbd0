package cgroup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// systemdBinary is where Debian has the manager.
const systemdBinary = "/usr/lib/systemd/systemd"

// inSystemd says that the test's process runs beside a systemd that the test may reload: the one
// that underSystemd has started, or that of a machine made for tests.
const inSystemd = "WASMPROXY_TEST_IN_SYSTEMD"

// underSystemd returns true beside such a systemd. Elsewhere it runs the test again beside a
// systemd of its own, in namespaces and in cgroups below the machine's, and returns false.
// The cgroup mount is that of the machine: v1 or v2.
func underSystemd(t testing.TB) bool {
	t.Helper()
	if os.Getenv(inSystemd) != "" {
		return true
	}
	if os.Getuid() != 0 {
		lack(t, false, errors.New("root is needed to start systemd"))
	}
	if _, err := os.Stat(systemdBinary); err != nil {
		lack(t, false, fmt.Errorf("Debian's package systemd is needed: %w", err))
	}
	pid := startSystemd(t)
	test, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "nsenter", "--target", strconv.Itoa(pid), "--mount", "--pid", "--cgroup", "--uts", "--ipc", "--net",
		test, "-test.run", "^"+t.Name()+"$", "-test.v", "-test.timeout", "3m")
	passed := "--- PASS: " + t.Name()
	if _, is := t.(*testing.B); is {
		cmd.Args = append(cmd.Args[:len(cmd.Args)-5], "-test.run", "^$", "-test.bench", "^"+t.Name()+"$", "-test.benchtime", "1x")
		passed = "\nPASS\n"
	}
	cmd.Env = append(os.Environ(), inSystemd+"=1")
	out, err := cmd.CombinedOutput()
	t.Logf("beside systemd:\n%s", out)
	if err != nil || !bytes.Contains(out, []byte(passed)) {
		t.Errorf("beside systemd: %v", err)
	}
	return false
}

// systemdScript makes the mounts that systemd wants of a container, and becomes systemd.
const systemdScript = `set -e
mount --make-rprivate /
mount -t proc proc /proc
mount -o bind,ro /proc/sys /proc/sys
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/system /run/lock
mount -t tmpfs tmpfs /etc/systemd/system
if [ "$(stat -f -c %T /sys/fs/cgroup)" = cgroup2fs ]; then
  mount -t cgroup2 cgroup2 /sys/fs/cgroup
else # systemd would take the machine's hierarchies from the top
  hierarchies=$(cd /sys/fs/cgroup && for h in *; do [ ! -e $h/cgroup.procs ] || echo $h; done)
  mount -t tmpfs tmpfs /sys/fs/cgroup
  for h in $hierarchies; do
    mkdir /sys/fs/cgroup/$h
    case $h in
      unified) mount -t cgroup2 cgroup2 /sys/fs/cgroup/$h ;;
      systemd) mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/$h ;;
      *) mount -t cgroup -o $h cgroup /sys/fs/cgroup/$h ;;
    esac
  done
fi
cd /run/systemd/system
printf '[Unit]\nDefaultDependencies=no\nWants=dbus.service\n' > test.target
printf '[Unit]\nDefaultDependencies=no\n[Socket]\nListenStream=/run/dbus/system_bus_socket\n' > dbus.socket
printf '[Unit]\nDefaultDependencies=no\nRequires=dbus.socket\n[Service]\nType=notify\nExecStart=dbus-daemon --system --address=systemd: --nofork --nopidfile\n' > dbus.service
exec env -i PATH="$PATH" container=test ` + systemdBinary + ` --system --unit=test.target --show-status=no --log-target=console --log-level=notice
`

// startSystemd returns the pid of a systemd in its own namespaces, whose processes are in
// cgroups that the test removes.
func startSystemd(t testing.TB) int {
	t.Helper()
	name := fmt.Sprintf("wasmproxy-systemd-%d", rand.Uint64()) // another run has this pid, too, if it is in another pid namespace
	var dirs []string
	mounts := must(filepath.Glob(mount + "/*/cgroup.procs"))(t)
	if _, err := os.Stat(mount + "/cgroup.procs"); err == nil {
		mounts = []string{mount + "/cgroup.procs"}
	}
	for _, m := range mounts {
		dirs = append(dirs, filepath.Join(filepath.Dir(m), name))
	}
	enter := ""
	for _, dir := range dirs {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if filepath.Base(filepath.Dir(dir)) == "cpuset" { // a new group has neither, and takes no process
			for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
				all := must(os.ReadFile(filepath.Join(filepath.Dir(dir), file)))(t)
				if err := os.WriteFile(filepath.Join(dir, file), all, 0); err != nil {
					t.Fatal(err)
				}
			}
		}
		enter += "echo $$ > " + dir + "/cgroup.procs\n"
	}
	t.Cleanup(func() { removeGroups(t, dirs) })
	log := must(os.Create(filepath.Join(t.TempDir(), "systemd.log")))(t)
	// The end of the standard input, which is that of this process at the latest, ends all.
	cmd := exec.Command("sh", "-ec", enter+`unshare --mount --pid --cgroup --uts --ipc --net --fork --kill-child sh -c "$0" <&- >&2 &
echo $!
cat
kill -KILL $! || true`, systemdScript)
	cmd.Stderr = log
	stdin, stdout := must(cmd.StdinPipe())(t), must(cmd.StdoutPipe())(t)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		cmd.Wait()
		if t.Failed() {
			b, _ := os.ReadFile(log.Name())
			t.Logf("systemd's log:\n%s", b)
		}
	})
	parent := 0
	if _, err := fmt.Fscan(stdout, &parent); err != nil {
		t.Fatal(err)
	}
	for range 1200 {
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", parent))
		if pid, err := strconv.Atoi(strings.TrimSpace(string(children))); err == nil {
			if _, err := os.Stat(fmt.Sprintf("/proc/%d/root/run/systemd/private", pid)); err == nil {
				return pid
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("systemd did not start in two minutes")
	return 0
}

// removeGroups removes groups with those below, once their processes have gone.
func removeGroups(t testing.TB, dirs []string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, dir := range dirs {
		for {
			exec.Command("find", dir, "-depth", "-type", "d", "-exec", "rmdir", "{}", "+").Run()
			if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
				break
			}
			if ctx.Err() != nil {
				t.Errorf("%s cannot be removed", dir)
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
}
