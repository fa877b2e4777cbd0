package daemon_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/daemon"
)

// unlimited is set in the environment of a process in which nothing stops a guest.
const unlimited = "TEST_GUESTS_WITHOUT_TIME_LIMIT"

// looping is what such a process says when it has come to the point.
const looping = "a guest loops now"

// While one plugin loops and loops, calls that it does not hook are served as
// before: the 99th percentile of 1,000 of them grows by less than 50 ms.
func TestLoopingGuestDoesNotDelayOthers(t *testing.T) {
	run := daemon.RunWithoutBreaker // which would end the loops soon
	if os.Getenv(unlimited) != "" {
		run = daemon.RunWithoutTimeLimit
	}
	n := newNode(t)
	n.put("10-loop.wasm", "loop")
	n.put("10-loop.json", `{"timeout":"50ms"}`)
	n.start(run)
	n.await("plugins active", "10-loop")
	var grew []time.Duration // in each attempt: what the guest costs it costs each time
	for len(grew) < attempts {
		before, meanwhile, looped := n.beside(t)
		t.Logf("p99 of Version: %v, %v while %d pods met a looping plugin", before, meanwhile, looped)
		if looped == 0 {
			t.Fatal("no pod ran")
		}
		if meanwhile-before < maxSlowdown || !wallClock() {
			return
		}
		grew = append(grew, meanwhile-before)
	}
	t.Errorf("p99 of unrelated calls grew by %v", grew)
}

// beside returns the percentile before and while pods are run one after the other, and how
// many that were.
func (n *node) beside(t *testing.T) (before, meanwhile time.Duration, pods int) {
	t.Helper()
	before = n.percentile(t)
	fmt.Println(looping)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ctx.Err() == nil; i++ {
			if _, err := n.runPod(ctx, podName(i)); err == nil {
				pods++
			}
		}
	}()
	meanwhile = n.percentile(t)
	cancel()
	<-done
	return before, meanwhile, pods
}

// percentile is the 99th of 1,000 calls that no plugin hooks.
func (n *node) percentile(t *testing.T) time.Duration {
	t.Helper()
	took := make([]time.Duration, 1000)
	for i := range took {
		start := time.Now()
		if _, err := n.kubelet.Version(t.Context(), &runtimeapi.VersionRequest{}); err != nil {
			t.Fatal(err)
		}
		took[i] = time.Since(start)
		time.Sleep(100 * time.Microsecond)
	}
	slices.Sort(took)
	return took[990]
}

// The test above can fail: without the limit, a process that runs it does.
func TestTheLimiterIsWhatKeepsThemQuick(t *testing.T) {
	if os.Getenv(unlimited) != "" {
		t.Skip("this is the process without the limit")
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestLoopingGuestDoesNotDelayOthers$")
	cmd.Env = append(os.Environ(), unlimited+"=1")
	stdout, err := cmd.StdoutPipe()
	n := &node{t: t}
	n.must(err)
	n.must(cmd.Start())
	out, loops := "", false
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		out += lines.Text() + "\n"
		if !loops && lines.Text() == looping {
			loops = true
			time.AfterFunc(5*time.Second, cancel) // with the limit the rest takes one
		}
	}
	if err := cmd.Wait(); err == nil || !loops {
		t.Errorf("without a time limit: %v\n%s", err, out)
	}
}

// Plugins are replaced, broken, taken away and brought back while calls are in
// flight: no call fails, and every call is served by one state or another.
func TestReloadHammer(t *testing.T) {
	n := serving(t, map[string]string{"10-quota.wasm": "quota"})
	n.await("plugins active", "10-quota")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	failed := make(chan error, 1)
	var calls atomic.Int64
	for worker := range 4 {
		go func() {
			for i := 0; ctx.Err() == nil; i++ {
				if err := n.life(ctx, fmt.Sprintf("w%d-%d", worker, i)); err != nil && ctx.Err() == nil {
					select {
					case failed <- err:
					default:
					}
				}
				calls.Add(1)
			}
		}()
	}
	for round, end := 0, time.Now().Add(5*time.Second); time.Now().Before(end); round++ {
		switch round % 4 {
		case 0:
			n.put("10-quota.wasm", "noop")
		case 1:
			n.put("20-trap.wasm", "trap")
		case 2:
			n.put("10-quota.wasm", "wrong-signature")
		case 3:
			n.put("10-quota.wasm", "quota")
			n.remove("20-trap.wasm")
		}
		time.Sleep(150 * time.Millisecond)
	}
	cancel()
	select {
	case err := <-failed:
		t.Error(err)
	default:
	}
	t.Logf("%d pods lived through reloads", calls.Load())
}

// life is that of a pod with one container.
func (n *node) life(ctx context.Context, name string) error {
	pod, err := n.runPod(ctx, name)
	if err != nil {
		return fmt.Errorf("running %s: %w", name, err)
	}
	id, err := n.createContainer(ctx, pod, "app")
	if err != nil {
		return fmt.Errorf("creating in %s: %w", name, err)
	}
	if _, err = n.kubelet.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: id}); err != nil {
		return fmt.Errorf("starting in %s: %w", name, err)
	}
	if _, err = n.kubelet.RemoveContainer(ctx, &runtimeapi.RemoveContainerRequest{ContainerId: id}); err != nil {
		return fmt.Errorf("removing in %s: %w", name, err)
	}
	if _, err = n.kubelet.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: pod}); err != nil {
		return fmt.Errorf("removing %s: %w", name, err)
	}
	return nil
}
