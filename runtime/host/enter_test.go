package host_test

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/wasmproxy/wasmproxy/runtime/host"
)

// entering is the variable by which a test has this program enter the namespaces of a process.
const entering = "WASMPROXY_TEST_ENTER"

func TestMain(m *testing.M) {
	if pid := os.Getenv(entering); pid != "" {
		n, err := strconv.Atoi(pid)
		if err == nil {
			err = host.Enter(n)
		}
		content, _ := os.ReadFile("/run/where")
		_, program := os.Stat(host.Self)
		networks, _ := os.Readlink("/proc/self/ns/net")
		fmt.Printf("%s %v %v %s %q", content, err, program, networks, os.Args[1:])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// needRoot ends a test that another user cannot run: in CI it fails.
func needRoot(t *testing.T, to string) {
	t.Helper()
	if os.Geteuid() == 0 {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("root is needed to " + to)
	}
	t.Skip("root is needed to " + to)
}

// TestEnter: the program goes on with the files and the network of another process, and with its
// own arguments.
func TestEnter(t *testing.T) {
	needRoot(t, "make and enter namespaces")
	for name, c := range map[string]struct{ script, want string }{
		"systemd's": {"mount -t tmpfs none /run && mkdir -p /run/systemd/system && echo -n host >/run/where", "host <nil> <nil> %s [\"a b\"]"},
		"another's": {"mount -t tmpfs none /run", "is not the host's systemd, or it may not be entered: stat /proc/%s/root/run/systemd/system: no such file or directory; the pod needs hostPID: true"},
	} {
		t.Run(name, func(t *testing.T) {
			other := exec.CommandContext(t.Context(), "sh", "-c", c.script+" && echo ready && exec cat")
			other.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
			in, err := other.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := other.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := other.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { in.Close(); other.Wait() })
			if _, err := out.Read(make([]byte, 6)); err != nil {
				t.Fatal(err)
			}
			pid := strconv.Itoa(other.Process.Pid)
			of := pid
			if strings.HasPrefix(c.want, "host ") {
				if of, err = os.Readlink("/proc/" + pid + "/ns/net"); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(t.Context(), os.Args[0], "a b")
			cmd.Env = append(os.Environ(), entering+"="+pid)
			got, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(got), fmt.Sprintf(c.want, of)) {
				t.Errorf("error %v, it prints %q, want %q", err, got, fmt.Sprintf(c.want, of))
			}
		})
	}
}

// TestEnterContainer: process 1 of a container without the host's processes is not the host's.
func TestEnterContainer(t *testing.T) {
	needRoot(t, "make a pid namespace")
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "mount -t proc none /proc && exec \"$0\"", os.Args[0])
	cmd.Env = append(os.Environ(), entering+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	if got, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(got), "it is this program itself") {
		t.Errorf("error %v, it prints %q", err, got)
	}
}
