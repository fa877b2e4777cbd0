package dockermode_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// parallelRuns returns how many runs there are at a time: 20, or the number in E2E_DOCKER_RUNS.
func parallelRuns(t *testing.T) int {
	t.Helper()
	runs, err := strconv.Atoi(cmp.Or(os.Getenv("E2E_DOCKER_RUNS"), "20"))
	if err != nil || runs < 2 {
		t.Fatalf("E2E_DOCKER_RUNS is %q, want a number of at least 2", os.Getenv("E2E_DOCKER_RUNS"))
	}
	return runs
}

// TestParallelRuns has many docker run at once, each with input, output and an exit code of its own. Half
// of the containers are pods of dockershim, which plugins are asked about.
func TestParallelRuns(t *testing.T) {
	engine := startDocker(t)
	proxy := node.StartProxy(t, node.Noop)
	count := parallelRuns(t)
	var runs sync.WaitGroup
	for i := range count {
		runs.Go(func() {
			if err := runOne(t, engine.ProxyEndpoint, i); err != nil {
				t.Errorf("run %d: %v", i, err)
			}
		})
	}
	runs.Wait()
	served := proxy.Stop(t)
	for _, hook := range []string{"PreRunPodSandbox", "PostRunPodSandbox"} {
		if served.Hooks[hook] != (count+1)/2 {
			t.Errorf("%s ran %d times, want %d", hook, served.Hooks[hook], (count+1)/2)
		}
	}
	if len(served.HookFailures) != 0 {
		t.Errorf("hooks failed: %v", served.HookFailures)
	}
}

// runOne runs a container and compares what it says and how it ends.
func runOne(t *testing.T, endpoint string, i int) error {
	args := []string{"run", "--rm", "-i", "--network", "none"}
	if i%2 == 0 {
		args = append(args, "--name", fmt.Sprintf("k8s_POD_run_default_uid-%d_0", i), "--label", "io.kubernetes.docker.type=podsandbox")
	}
	script := fmt.Sprintf("cat; echo error %d >&2; exit %d", i, i%100)
	cmd := node.Docker(t.Context(), endpoint, append(args, "busybox", "sh", "-c", script)...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(fmt.Sprintf("input %d\n", i)), &out, &errs
	err := cmd.Run()
	exit, _ := errors.AsType[*exec.ExitError](err)
	code := 0
	if exit != nil {
		code = exit.ExitCode()
	} else if err != nil {
		return err
	}
	if got, want := fmt.Sprintf("%d %s%s", code, out.String(), errs.String()), fmt.Sprintf("%d input %d\nerror %d\n", i%100, i, i); got != want {
		return fmt.Errorf("got %q, want %q", got, want)
	}
	return nil
}
