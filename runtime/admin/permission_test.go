package admin

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// Another user cannot open a socket of mode 0600, and learns which user can.
func TestSocketOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("the test needs root")
	}
	dir, err := os.MkdirTemp("", "wp")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	c := Client{Socket: filepath.Join(dir, "admin.sock")}
	l, err := net.Listen("unix", c.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(c.Socket, 0o600); err != nil {
		t.Fatal(err)
	}
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine, and its user with it
		const nobody = 65534
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETFSUID, nobody, 0, 0); errno != 0 {
			failed <- errno
			return
		}
		_, err := new(net.Dialer).DialContext(t.Context(), "unix", c.Socket)
		failed <- err
	}()
	err = <-failed
	if err == nil {
		t.Fatal("another user could open the socket")
	}
	if got := c.unreachable(err).Error(); !strings.Contains(got, "no permission to open the admin socket "+c.Socket+": run the command as the proxy's user") {
		t.Error(got)
	}
}
