package faults_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/tap"
)

// trial is a fault at a step of the life of a pod of its own.
type trial struct {
	fault  fault
	step   step
	life   life
	hold   *tap.Hold
	began  time.Time     // of the fault
	struck chan struct{} // closed when the fault is made
	took   time.Duration // until the pod was at the end of its stage
	passed chan struct{} // closed when the pod may be stopped, or has failed
	err    error         // valid when the round has ended
}

func (x *trial) name() string { return x.fault.name + "/" + x.step.name }

// seeded is how many trials FAULTS has unless it names others, and how many faults they are of.
const (
	seeded       = 12
	seededFaults = 4
)

// defaultSeed chooses kills of kubelet, the runtime and the proxy, and half of a plugin file.
const defaultSeed = "343"

// selected returns the trials that the environment variable FAULTS names: patterns such as
// kill-proxy/* or */resized with commas between them. Without it they are twelve, each of another
// step, by FAULTS_SEED.
func selected(t *testing.T) [][]*trial {
	t.Helper()
	var rounds [][]*trial
	var chosen func(f, s int) bool
	if patterns := os.Getenv("FAULTS"); patterns != "" {
		chosen = func(f, s int) bool {
			return slices.ContainsFunc(strings.Split(patterns, ","), func(p string) bool {
				ok, err := path.Match(p, faults[f].name+"/"+steps[s].name)
				if err != nil {
					t.Fatalf("FAULTS: %q: %v", p, err)
				}
				return ok
			})
		}
	} else {
		seed, err := strconv.ParseUint(cmp.Or(os.Getenv("FAULTS_SEED"), defaultSeed), 10, 64)
		if err != nil {
			t.Fatalf("FAULTS_SEED: %v", err)
		}
		random := rand.New(rand.NewPCG(seed, 0))
		order, place := random.Perm(len(faults))[:seededFaults], random.Perm(len(steps))
		chosen = func(f, s int) bool { return slices.Index(order, f) == place[s]*seededFaults/len(steps) }
		t.Logf("twelve trials by FAULTS_SEED=%d", seed)
	}
	for f := range faults {
		var round []*trial
		for s := range steps {
			if chosen(f, s) {
				round = append(round, &trial{fault: faults[f], step: steps[s], struck: make(chan struct{}), passed: make(chan struct{})})
			}
		}
		if round != nil {
			rounds = append(rounds, round)
		}
	}
	if rounds == nil {
		t.Fatalf("FAULTS=%s names no trial", os.Getenv("FAULTS"))
	}
	return rounds
}

// TestFaults makes each fault while calls of pods are held, each pod at another step of its life.
// Then each pod must go on to its end: run with one container, be resized, stop, and leave nothing.
func TestFaults(t *testing.T) {
	rounds := selected(t)
	c := startCluster(t)
	for _, round := range rounds {
		c.run(t, round)
		for _, x := range round {
			t.Run(x.name(), func(t *testing.T) {
				if x.err != nil {
					t.Error(x.err)
				}
			})
		}
	}
	report(t, rounds)
}

// run is one round: pods reach their steps, the fault is made, and they go on.
func (c *cluster) run(t *testing.T, round []*trial) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if before := round[0].fault.before; before != nil {
		before(t, c)
	}
	mayStop := make(chan struct{})
	open := make(chan struct{})
	close(open)
	var lives sync.WaitGroup
	for i, x := range round {
		x.life = life{cluster: c, pod: strings.ReplaceAll(fmt.Sprintf("%s-%d-%s", x.fault.name, i, x.step.name), "+", "-"), mayStop: mayStop}
		if x.step.stage >= stop {
			x.life.mayStop = open
		}
		x.hold = c.tap(x.step.side).Hold(x.step.phase, x.step.method, x.life.pod)
		lives.Go(func() { x.err = x.run(ctx) })
	}
	c.strike(t, round)
	for _, x := range round {
		<-x.passed
	}
	if err := poll(ctx, time.Minute, "store and runtime agree", func() error { return c.checkStore(ctx) }); err != nil {
		t.Errorf("%s: %v", round[0].fault.name, err)
	}
	close(mayStop)
	lives.Wait()
	c.checkEnd(t, round)
	if after := round[0].fault.after; after != nil {
		after(t, c)
	}
}

// strike waits until the calls are held, makes the fault, lets them go on, and mends it.
func (c *cluster) strike(t *testing.T, round []*trial) {
	deadline := time.After(stageTimeout)
	for _, x := range round {
		select {
		case <-x.hold.Reached():
		case <-x.passed:
			t.Errorf("%s: the pod did not come to the step", x.name())
		case <-deadline:
			t.Fatalf("%s: the call was not made within %v", x.name(), stageTimeout)
		}
	}
	for _, x := range round {
		x.began = time.Now()
	}
	round[0].fault.strike(t, c)
	for _, x := range round {
		close(x.struck)
		x.hold.Release()
	}
	round[0].fault.mend(t, c)
}

// run takes the pod through its life.
func (x *trial) run(ctx context.Context) error {
	passed := sync.OnceFunc(func() { close(x.passed) })
	defer passed()
	for i, s := range stages {
		if stage(i) == stop && x.step.stage < stop {
			passed()
		}
		if err := s.run(x.life, ctx); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		if stage(i) == x.step.stage {
			if err := x.withFault(ctx); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			passed()
		}
	}
	return nil
}

// withFault waits until the pod is at the end of the trial's stage with the fault made. It may have been there before: kubelet reports
// no resize that it has not begun, while the runtime has done one whose answer is held.
func (x *trial) withFault(ctx context.Context) error {
	select {
	case <-x.struck:
	case <-ctx.Done():
		return ctx.Err()
	}
	err := stages[x.step.stage].await(x.life, ctx)
	x.took = time.Since(x.began)
	return err
}

// checkEnd compares hooks and calls, and looks for what is left of the round.
func (c *cluster) checkEnd(t *testing.T, round []*trial) {
	t.Helper()
	err := poll(t.Context(), stageTimeout, "hooks have ended", func() error {
		counts := c.hookCounts(t)
		var errs []error
		for _, x := range round {
			if err := c.checkHooks(counts, x.life.pod, x.fault.kills("proxy")); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", x.name(), err))
			}
		}
		return errors.Join(errs...)
	})
	if err != nil {
		t.Error(err)
	}
	if err := poll(t.Context(), stageTimeout, "nothing is left", c.checkLeft); err != nil {
		t.Errorf("%s: %v", round[0].fault.name, err)
	}
	if now := socketsOfProxy(t); !slices.Equal(now, c.sockets) {
		t.Errorf("%s: /run/wasmproxy has %q, want %q", round[0].fault.name, now, c.sockets)
	}
}
