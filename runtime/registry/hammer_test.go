package registry_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/registry"
)

// TestLinkOutside is read again now and then: no event tells of its target.
func TestLinkOutside(t *testing.T) {
	t.Parallel()
	dirs := newDirs(t)
	outside := t.TempDir()
	write(t, outside, "a.json", hookServer("/1.sock"))
	must(t, os.Symlink(filepath.Join(outside, "a.json"), filepath.Join(dirs.Hooks, "a.json")))
	w := watch(t, dirs)
	w.untilIDs(t, "a")
	write(t, outside, "a.json", hookServer("/2.sock"))
	w.until(t, "the new endpoint", func(list []registry.Description) bool { return list[0].Endpoint == "/2.sock" })
}

// TestHammer rewrites files in place and in two halves, a thousand times each,
// while they are watched. Every list must be of good files, and the last must
// be the last.
func TestHammer(t *testing.T) {
	t.Parallel()
	dirs := newDirs(t)
	write(t, dirs.Hooks, "koordlet.json", hookServer("/0.sock"))
	write(t, dirs.Plugins, "10-a.wasm", module)
	w := watch(t, dirs)
	w.untilIDs(t, "10-a koordlet")
	for i := range 1000 {
		for _, half := range []bool{true, false} {
			server, code := hookServer(fmt.Sprintf("/%d.sock", i)), module+strings.Repeat("\x00", i)
			if half {
				server, code = server[:i%len(server)], code[:i%4]
			}
			write(t, dirs.Hooks, "koordlet.json", server)
			write(t, dirs.Plugins, "10-a.wasm", code)
			time.Sleep(time.Millisecond)
		}
	}
	lists := 0
	w.until(t, "the last", func(list []registry.Description) bool {
		lists++
		if ids(list) != "10-a koordlet" {
			t.Errorf("list %q", ids(list))
		}
		return list[1].Endpoint == "/999.sock" && list[0].Digest == digestOf(module+strings.Repeat("\x00", 999))
	})
	t.Logf("%d lists", lists)
	if w.log.String() != "" {
		t.Errorf("log:\n%s", w.log)
	}
}

// TestWithoutInotify runs the test of an ordinary life again where the kernel
// gives no inotify: in a user namespace of its own whose limit is zero.
func TestWithoutInotify(t *testing.T) {
	t.Parallel()
	const limit = "/proc/sys/user/max_inotify_instances"
	if os.Getenv("REGISTRY_TEST_NO_INOTIFY") != "" {
		must(t, os.WriteFile(limit, []byte("0"), 0))
		dirs := newDirs(t)
		w := watch(t, dirs)
		write(t, dirs.Plugins, "10-a.wasm", module)
		_, took := w.untilIDs(t, "10-a")
		within(t, "a new file", took, 2*soon)
		if n := strings.Count(w.log.String(), "inotify is not available"); n != 1 {
			t.Errorf("%d warnings, want 1:\n%s", n, w.log)
		}
		must(t, os.WriteFile(limit, []byte("10"), 0))
		time.Sleep(2 * soon) // inotify is taken into use at the next look
		must(t, os.Remove(filepath.Join(dirs.Plugins, "10-a.wasm")))
		_, took = w.untilIDs(t, "")
		within(t, "a removal", took, soon)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestWithoutInotify$", "-test.v")
	cmd.Env = append(os.Environ(), "REGISTRY_TEST_NO_INOTIFY=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("in a user namespace: %v\n%s", err, out)
	}
	if !strings.Contains(string(out), "--- PASS: TestWithoutInotify") {
		t.Errorf("the test did not run:\n%s", out)
	}
}
