package isolation_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/isolation"
)

// The variables that make the test binary a run of its own: where its cache
// is, how it ends, and its name.
const (
	cacheVariable  = "ISOLATION_TEST_CACHE"
	endingVariable = "ISOLATION_TEST_ENDING"
	nameVariable   = "ISOLATION_TEST_NAME"
)

func TestMain(m *testing.M) {
	cache := os.Getenv(cacheVariable)
	if cache == "" {
		os.Exit(m.Run())
	}
	isolation.Main(m, isolation.Stages{
		Name:    os.Getenv(nameVariable),
		Cache:   cache,
		Outside: func(context.Context, isolation.Workspace) error { return nil },
		Inside:  leaveThings,
	})
}

// leaveThings leaves a process in a cgroup of its own, a mount and a file, and ends as it is told.
func leaveThings(context.Context, isolation.Workspace) error {
	orphan := exec.Command("sh", "-c", `
		mkdir -p /sys/fs/cgroup/cpu/left/below && echo $$ > /sys/fs/cgroup/cpu/left/below/cgroup.procs &&
		mkdir -p /var/lib/left && mount -t tmpfs left /var/lib/left && echo ready > $`+cacheVariable+`/ready && exec sleep 1000`)
	orphan.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := orphan.Start(); err != nil {
		return err
	}
	if err := awaitFile(filepath.Join(os.Getenv(cacheVariable), "ready"), time.Minute); err != nil {
		return err
	}
	switch os.Getenv(endingVariable) {
	case "fails":
		return errors.New("as it was told")
	case "hangs":
		select {}
	}
	return nil
}

// TestNothingStays ends runs in every way and looks for what they left.
func TestNothingStays(t *testing.T) {
	for _, test := range []struct {
		name, ending string
		signal       syscall.Signal // 0: none
		passes       bool
	}{
		{"passes", "passes", 0, true},
		{"fails", "fails", 0, false},
		{"interrupted", "hangs", syscall.SIGINT, false},
		{"terminated", "hangs", syscall.SIGTERM, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			cache := t.TempDir()
			before := mounts(t, cache)
			run := startRun(t, "left", cache, test.ending)
			if test.signal != 0 {
				run.Process.Signal(test.signal)
			}
			if err := run.Wait(); (err == nil) != test.passes {
				t.Errorf("the run ended with %v", err)
			}
			expectNothing(t, cache)
			if after := mounts(t, cache); after != before {
				t.Errorf("mounts before:\n%s\nafter:\n%s", before, after)
			}
		})
	}
}

// TestKilledRun kills a run, which then cannot clean up. Its processes end all
// the same, and the next run removes the rest.
func TestKilledRun(t *testing.T) {
	cache := t.TempDir()
	run := startRun(t, "left", cache, "hangs")
	run.Process.Kill()
	run.Wait() // it was killed
	if err := startRun(t, "left", cache, "passes").Wait(); err != nil {
		t.Errorf("the run after a killed one: %v", err)
	}
	expectNothing(t, cache)
}

// TestTwoRuns has a run go on while one of another name comes and goes.
func TestTwoRuns(t *testing.T) {
	long, short := t.TempDir(), t.TempDir()
	run := startRun(t, "long", long, "hangs")
	if err := startRun(t, "left", short, "passes").Wait(); err != nil {
		t.Errorf("the run beside another one: %v", err)
	}
	expectNothing(t, short)
	if groups, err := filepath.Glob("/sys/fs/cgroup/cpu/wpe2e-long/left/below"); err != nil || len(groups) != 1 {
		t.Errorf("the run that goes on has the cgroups %v (%v)", groups, err)
	}
	run.Process.Signal(syscall.SIGTERM)
	run.Wait() // it was ended
}

// process is a run that has started.
type process struct {
	*exec.Cmd
	ended chan error
}

func (p process) Wait() error { return <-p.ended }

// startRun starts a run and waits until it has made what could stay. Other runs on the machine may build for long before.
func startRun(t *testing.T, name, cache, ending string) process {
	t.Helper()
	ready := filepath.Join(cache, "ready")
	if err := os.RemoveAll(ready); err != nil {
		t.Fatal(err)
	}
	output, err := os.Create(filepath.Join(t.TempDir(), "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	run := process{exec.Command("/proc/self/exe", "-test.run=^$"), make(chan error, 1)}
	run.Env = append(os.Environ(), cacheVariable+"="+cache, endingVariable+"="+ending, nameVariable+"="+name)
	run.Stdout, run.Stderr = output, output
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	appeared := make(chan error, 1)
	go func() { appeared <- awaitFile(ready, 20*time.Minute) }()
	go func() { run.ended <- run.Cmd.Wait() }()
	select {
	case err = <-appeared:
	case end := <-run.ended:
		run.ended <- end
		err = awaitFile(ready, 0)
	}
	if err != nil {
		text, _ := os.ReadFile(output.Name())
		t.Fatalf("%v; the run said: %s", err, text)
	}
	return run
}

// expectNothing looks for cgroups, the workspace and processes of a run that has ended.
func expectNothing(t *testing.T, cache string) {
	t.Helper()
	if groups, err := filepath.Glob("/sys/fs/cgroup/*/wpe2e-left"); err != nil || len(groups) != 0 {
		t.Errorf("cgroups stay: %v (%v)", groups, err)
	}
	if _, err := os.Stat(filepath.Join(cache, "run-left")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the workspace stays: %v", err)
	}
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range environs {
		// What ends meanwhile cannot be read, and is no concern.
		if environ, err := os.ReadFile(file); err == nil && strings.Contains(string(environ), cacheVariable+"="+cache) {
			t.Errorf("a process stays: %s", file)
		}
	}
}

// mounts returns the machine's mounts, without those that other tests have in temporary directories.
func mounts(t *testing.T, cache string) string {
	t.Helper()
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.DeleteFunc(strings.SplitAfter(string(table), "\n"), func(line string) bool {
		return strings.Contains(line, " "+os.TempDir()+"/") && !strings.Contains(line, cache)
	})
	return strings.Join(lines, "")
}

// awaitFile waits until a file holds something.
func awaitFile(file string, patience time.Duration) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if data, err := os.ReadFile(file); err == nil && len(data) > 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s does not appear", file)
		}
	}
}
