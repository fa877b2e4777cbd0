package codecache_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wasmproxy/wasmproxy/runtime/wasm/codecache"
)

// The test binary is also the program that compiles: its settings say what kind
// of compiler it is.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == codecache.Command {
		if err := child(os.Args[2]); err != nil {
			fmt.Print(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func child(argument string) error {
	job, err := codecache.ParseJob(argument)
	if err != nil {
		return err
	}
	if err := codecache.Confine(job.Limits); err != nil {
		return err
	}
	module, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	switch job.Settings {
	case "hungry":
		for hoard := [][]byte{}; ; {
			hoard = append(hoard, bytes.Repeat([]byte{1}, 16<<20))
		}
	case "busy":
		//lint:ignore SA5002 The test is about a child that uses processor time without end.
		for {
		}
	case "asleep":
		time.Sleep(time.Hour)
	case "unhappy":
		return errors.New("the module is no good")
	case "full":
		return os.WriteFile("/dev/full", module, 0o600)
	case "crashing":
		panic("a fault of the compiler")
	case "idle":
		return nil
	case "verbose":
		module = bytes.Repeat(module, 1<<20)
	case "threadless":
		_ = unix.Setuid(65534) // root may have as many threads as it likes
		if err := unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: 1, Max: 1}); err != nil {
			return err
		}
		for {
			go func() {
				runtime.LockOSThread()
				select {}
			}()
			time.Sleep(time.Millisecond)
		}
	case "killed":
		return syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "mortal":
		if module, err = os.ReadFile("/proc/self/oom_score_adj"); err != nil {
			return err
		}
	case "curious":
		module = []byte(strings.Join(os.Environ(), " ") + fmt.Sprint(len(os.Args)))
	}
	return os.WriteFile(filepath.Join(job.Dir, "code"), append([]byte("compiled "), module...), 0o600)
}

func open(t *testing.T, o codecache.Options) *codecache.Cache {
	t.Helper()
	if o.Dir == "" {
		o.Dir = filepath.Join(t.TempDir(), "cache")
	}
	c, err := codecache.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// get returns the directory of an entry, and its code.
func get(t *testing.T, c *codecache.Cache, settings, module string) (dir, compiled string) {
	t.Helper()
	dir, err := c.Get(t.Context(), settings, []byte(module))
	if err != nil {
		t.Fatal(err)
	}
	return dir, code(t, dir)
}

func code(t *testing.T, dir string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "code"))
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

// TestChildDiesFirst: the kernel ends a compiler before pods, though it does not end the proxy that has started it.
func TestChildDiesFirst(t *testing.T) {
	own, err := os.ReadFile("/proc/self/oom_score_adj")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.WriteFile("/proc/self/oom_score_adj", own, 0); err != nil {
			t.Error(err)
		}
	})
	const score = "500" // lower needs a right
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte(score), 0); err != nil {
		t.Fatal(err)
	}
	if _, got := get(t, open(t, codecache.Options{}), "mortal", ""); strings.TrimSpace(got) != "compiled 1000" {
		t.Errorf("the compiler has %q", got)
	}
	if now, err := os.ReadFile("/proc/self/oom_score_adj"); err != nil || strings.TrimSpace(string(now)) != score {
		t.Errorf("this process has %q, %v", now, err)
	}
}

// TestChildIsKilled: that is no fault of the module, so that the error is one of the node.
func TestChildIsKilled(t *testing.T) {
	if _, err := open(t, codecache.Options{}).Get(t.Context(), "killed", nil); !errors.Is(err, syscall.ENOMEM) || !strings.Contains(err.Error(), "was killed: the node's memory may be used up") {
		t.Errorf("the error is %v", err)
	}
}

// TestChildWithoutThreads: that the node has as many as it may is no fault of the module either.
func TestChildWithoutThreads(t *testing.T) {
	if _, err := open(t, codecache.Options{}).Get(t.Context(), "threadless", nil); !errors.Is(err, syscall.EAGAIN) {
		t.Errorf("the error is %v", err)
	}
}

// A compiler that does not end well is an error that says which limit it ran
// into, or what it said, and leaves nothing behind.
func TestChildThatFails(t *testing.T) {
	limits := codecache.Limits{CPU: 10 * time.Minute, Wall: 10 * time.Minute, Output: 1 << 20} // more than a slow machine needs
	short, small, little := limits, limits, limits
	small.Memory = 128 << 20
	short.Wall = 200 * time.Millisecond
	little.CPU = time.Second
	for _, tt := range []struct {
		settings string
		limits   codecache.Limits
		want     string
	}{
		{"hungry", small, tooMuchMemory},
		{"busy", little, "took more than the 1s of processor time that it may"},
		{"asleep", short, "took longer than the 200ms that it may"},
		{"unhappy", limits, "the module is no good"},
		{"crashing", limits, "a fault of the compiler"},
		{"idle", limits, "the compiler has left nothing"},
		{"verbose", limits, "file too large"},
	} {
		t.Run(tt.settings, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "cache")
			c := open(t, codecache.Options{Dir: dir, Limits: tt.limits})
			_, err := c.Get(t.Context(), tt.settings, []byte("module"))
			if err == nil || !regexp.MustCompile(tt.want).MatchString(err.Error()) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("left %v, %v", left, err)
			}
			if _, compiled := get(t, open(t, codecache.Options{Dir: dir}), "", "module"); compiled != "compiled module" {
				t.Errorf("the next module became %q", compiled)
			}
		})
	}
}

// A disk without space is the node's fault: who waits for the module may try again. It is the
// kernel's error, which a module that is no good does not have.
func TestFullDisk(t *testing.T) {
	c := open(t, codecache.Options{})
	if _, err := c.Get(t.Context(), "full", []byte("module")); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "/dev/full") {
		t.Errorf("got %v, want ENOSPC of /dev/full", err)
	}
	if _, err := c.Get(t.Context(), "unhappy", []byte("module")); err == nil || errors.As(err, new(syscall.Errno)) {
		t.Errorf("of a bad module: got %v, want an error that is not the kernel's", err)
	}
}

// A child ends with the one that waits for it.
func TestChildOfACallerThatLeaves(t *testing.T) {
	c := open(t, codecache.Options{})
	ctx, cancel := contextWithCancel(t)
	time.AfterFunc(100*time.Millisecond, cancel)
	if _, err := c.Get(ctx, "asleep", []byte("module")); !errors.Is(err, ctx.Err()) {
		t.Errorf("got %v, want %v", err, ctx.Err())
	}
}

// A child gets nothing of our environment, and no argument but the job.
func TestChildIsToldNothing(t *testing.T) {
	t.Setenv("SECRET", "42")
	if _, got := get(t, open(t, codecache.Options{}), "curious", "module"); got != "compiled 3" {
		t.Errorf("the child has environment and arguments %q", got)
	}
}

func TestProgramThatIsNotThere(t *testing.T) {
	_, err := open(t, codecache.Options{Program: "/none"}).Get(t.Context(), "", nil)
	if err == nil || !strings.Contains(err.Error(), "starting the process that compiles") {
		t.Errorf("got %v", err)
	}
}

// waiting is set in the environment of a process that waits for its child for ever.
const waiting = "TEST_WAIT_FOR_A_CHILD"

// A child does not outlive the process that started it, however that ends.
func TestChildOfAKilledProcess(t *testing.T) {
	if dir := os.Getenv(waiting); dir != "" {
		_, err := open(t, codecache.Options{Dir: dir}).Get(t.Context(), "asleep", nil)
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "cache")
	parent := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChildOfAKilledProcess$")
	parent.Env = append(os.Environ(), waiting+"="+dir)
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	children := func() (running []string) {
		statuses, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, path := range statuses {
			if b, err := os.ReadFile(path); err == nil && bytes.Contains(b, []byte(codecache.Command+"\x00{\"Dir\":\""+dir)) {
				running = append(running, path)
			}
		}
		return running
	}
	within := func(what string, f func() bool) {
		for end := time.Now().Add(time.Minute); !f(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal(what)
			}
		}
	}
	within("no child runs", func() bool { return len(children()) == 1 })
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	within("the child is still there", func() bool { return len(children()) == 0 })
}

// TestLowPriorityStays compiles for a proxy whose priority is lower than a child's, and which may not raise it: in a container
// without CAP_SYS_NICE.
func TestLowPriorityStays(t *testing.T) {
	job, err := json.Marshal(codecache.Job{Dir: t.TempDir(), Settings: "idle", Limits: codecache.DefaultLimits})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this
		const niceness = 15
		err := errors.Join(unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_SYS_NICE, 0, 0, 0), unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), niceness))
		if err == nil {
			var said []byte
			if said, err = exec.Command(os.Args[0], codecache.Command, string(job)).CombinedOutput(); err != nil {
				err = fmt.Errorf("%w: %s", err, said)
			}
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
