package audit

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// inside names the test that runs in namespaces of its own.
const inside = "WASMPROXY_TEST_INSIDE"

// isolated reports whether the test runs in a mount namespace of its own, in which it may mount
// what it likes. If not, it has the test run in one, and fails if that does.
func isolated(t *testing.T) bool {
	t.Helper()
	if os.Getenv(inside) == t.Name() {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), inside+"="+t.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--- PASS")) {
		t.Errorf("in its own namespaces: %v\n%s", err, out)
	}
	return false
}

func mountTmpfs(t *testing.T, at, options string) {
	t.Helper()
	if err := unix.Mount("tmpfs", at, "tmpfs", 0, options); err != nil {
		t.Fatalf("mounting a tmpfs at %s: %v", at, err)
	}
}

// On a full disk lines are lost, counted and one event. Once there is room the log goes on, and
// each line in it is whole.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if !isolated(t) {
		return
	}
	mountTmpfs(t, dir, "size=256k")
	// The goroutine of lumberjack that removes old files may have the directory open even after Close.
	defer func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	var seen observe.Recorder
	name, filler := filepath.Join(dir, "audit.json"), filepath.Join(dir, "filler")
	l := New(Options{To: name, MaxBytes: 1 << 20, Backups: 1, Observer: &seen})
	total := 0
	observeMore := func(n int) {
		for range n {
			l.Observe(t.Context(), &observe.FieldChanged{Plugin: "10-a", Hook: abi.PreCreateContainer, Object: web, Field: "f", Value: "1"})
			total++
		}
		for end := time.Now().Add(time.Minute); len(l.queue) > 0 && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
	}
	observeMore(10)
	if err := os.WriteFile(filler, make([]byte, 1<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	observeMore(100)
	lost := l.Lost()
	if lost == 0 {
		t.Error("no line is lost")
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	observeMore(10)
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if n := len(written(t, name)); int64(n) != int64(total)-l.Lost() || l.Lost() > lost+1 {
		t.Errorf("%d of %d lines are written, %d lost, of which %d before there was room", n, total, l.Lost(), lost)
	}
	if all := observe.All[*observe.AuditLinesLost](seen.Take()); len(all) != 1 || !errors.Is(all[0].Err, unix.ENOSPC) {
		t.Errorf("the events are %v", all)
	}
}

// A line is a message in the journal, on the socket of systemd-journald.
func TestJournald(t *testing.T) {
	if !isolated(t) {
		return
	}
	mountTmpfs(t, "/run", "size=1m")
	if err := os.MkdirAll("/run/systemd/journal", 0o755); err != nil {
		t.Fatal(err)
	}
	journal, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: "/run/systemd/journal/socket", Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer journal.Close()
	l := New(Options{To: Journald, Observer: observe.Discard()})
	l.Observe(t.Context(), &observe.FieldChanged{Plugin: "10-a", Object: web, Field: "f", Value: "1"})
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	b := make([]byte, 64<<10)
	if err := journal.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	n, err := journal.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"SYSLOG_IDENTIFIER=wasmproxy-audit\n", "PRIORITY=6\n", `{"time":"`, `"plugin":"10-a"`} {
		if !strings.Contains(string(b[:n]), want) {
			t.Errorf("the message has no %s:\n%s", want, b[:n])
		}
	}
	if l.Lost() != 0 {
		t.Errorf("%d lines are lost", l.Lost())
	}
}
