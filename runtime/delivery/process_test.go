package delivery

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// Variables that make the test's program one that delivers, as a process of its own.
const (
	childDir  = "DELIVERY_TEST_DIRECTORY"
	childFrom = "DELIVERY_TEST_FROM"  // directories of plugins, which it delivers in turns
	childHang = "DELIVERY_TEST_HANGS" // set: it stays where plugins are checked
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := child(Directory(dir)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child delivers as the owner "process".
func child(d Directory) error {
	for _, from := range strings.Split(os.Getenv(childFrom), ":") {
		read, err := Read(from)
		if err != nil {
			return err
		}
		check := fine
		if os.Getenv(childHang) != "" {
			check = func(string, string) error { fmt.Println("checking"); time.Sleep(time.Hour); return nil }
		}
		if _, err := d.Deliver(context.Background(), Delivery{Owner: "process", Plugins: read}, check); err != nil {
			return err
		}
	}
	return nil
}

// command is one that delivers these directories.
func command(t *testing.T, d Directory, from ...string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), childDir+"="+string(d), childFrom+"="+strings.Join(from, ":"))
	cmd.Stderr = os.Stderr
	return cmd
}

// TestOwnersAtOnce: owners of several goroutines and of another process deliver at once. Each delivery counts, and no module of
// a plugin is missing or left over.
func TestOwnersAtOnce(t *testing.T) {
	d := Directory(t.TempDir())
	shared := "shared {}" // the code that all have, in the end or in between
	odd, even := plugins{"40-p": shared, "41-p": "p1 {}"}.files(t), plugins{"40-p": "p2 {}"}.files(t)
	cmd := command(t, d, odd, even, odd, even, odd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for _, owner := range []string{"a", "b"} {
		all := []Delivery{
			plugins{"10-" + owner: shared, "11-" + owner: "one {}"}.delivery(t, owner),
			plugins{"10-" + owner: "two {}"}.delivery(t, owner),
		}
		wait.Go(func() {
			for n := range 5 {
				if _, err := d.Deliver(t.Context(), all[n%2], fine); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	plugins{"10-a": shared, "11-a": "one {}", "10-b": shared, "11-b": "one {}", "40-p": shared, "41-p": "p1 {}"}.has(t, d)
}

// TestKilledProcess: while a process delivers, others wait and can edit files. When it is killed, it has changed nothing, and
// the next delivery takes its turn.
func TestKilledProcess(t *testing.T) {
	d := Directory(t.TempDir())
	deliver(t, d, plugins{"10-a": "a1 {}"}.delivery(t, "a"))
	cmd := command(t, d, plugins{"20-p": "p1 {}"}.files(t))
	cmd.Env = append(cmd.Env, childHang+"=1")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "checking\n" {
		t.Fatalf("the process says %q, error %v", line, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	next := plugins{"10-a": "a2 {}"}.delivery(t, "a")
	if _, err := d.Deliver(ctx, next, fine); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "another process holds the lock") {
		t.Errorf("a second delivery ends with %v", err)
	}
	if err := d.Edit(t.Context(), func() error { return nil }); err != nil {
		t.Errorf("an edit meanwhile: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	plugins{"10-a": "a1 {}"}.has(t, d)
	deliver(t, d, next) // which waits no longer than the kill takes
	plugins{"10-a": "a2 {}"}.has(t, d)
	_ = cmd.Wait()
	if _, err := os.Stat(d.path(ownDir, stageDir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what the killed process had staged is there: %v", err)
	}
}
