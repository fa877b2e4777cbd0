package host

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wasmproxy/wasmproxy/deploy/systemd"
)

// TestDisableFailedService: a service that systemd had to kill, or that has ended with an error, is failed, and systemd cleans
// no failed unit. It has forgotten a unit that has ended well, and says so. Either is taken from the host.
func TestDisableFailedService(t *testing.T) {
	const inside = "WASMPROXY_TEST_INSIDE"
	if os.Getenv(inside) == "" { // in a mount namespace, whose /etc is the test's
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), inside+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		}
		if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--- PASS")) {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	h, _ := newHost(t, nil)
	for _, dir := range []string{"/etc", "/var"} {
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, ""); err != nil {
			t.Fatal(err)
		}
	}
	h.Root = "/"
	h.make(t, unitDir+"/"+systemd.ServiceName, "")
	calls := fakeSystemctl(t, "case $1 in reset-failed) touch $0.reset; exit 1;; clean) test -e $0.reset;; esac\n")
	err := h.systemctl().disable(t.Context())
	if got, _ := os.ReadFile(calls); err != nil || !strings.Contains(string(got), "clean --what=cache") {
		t.Errorf("got %v; systemctl was called with\n%s", err, got)
	}
}
