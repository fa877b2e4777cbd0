package intercept_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

const synchronizing = 1<<abi.Synchronize | 1<<abi.PreRunPodSandbox | 1<<abi.PostRunPodSandbox | 1<<abi.PreStartContainer

// learning is a node whose one plugin is synchronized. It has a pod that is
// older than the plugin's place in the chain if old says so.
func learning(t *testing.T, f function, old bool, opts ...option) (*node, *intercept.Synchronized, plugin.Member) {
	t.Helper()
	before := newNode(t, nil, opts...)
	if old {
		before.runPod()
	}
	known := intercept.NewSynchronized()
	m := on(0, f)
	m.Hooks = synchronizing
	n := newNode(t, nil, append(opts, withStore(before), func(o *intercept.Options) {
		o.NewChain = func(m ...plugin.Member) *plugin.Chain { return plugin.NewChain(o.Observer, 0, m...) }
		o.Synchronized = []*intercept.Synchronized{known}
		o.Chain = o.NewChain(known.Member(*o, m))
	})...)
	n.store = before.store
	return n, known, m
}

// notes are what a plugin was told, by hook and pod.
type notes struct {
	mu  sync.Mutex
	all []string
}

func (l *notes) take(_ context.Context, ev plugin.Event, _ *plugin.Adjustment) error {
	id, _ := ev.Text(abi.Pod, abi.PodID)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, strings.TrimSpace(ev.Hook().String()+" "+id))
	return nil
}

// sweep tells the member of all pods.
func (n *node) sweep(known *intercept.Synchronized, m plugin.Member) error {
	_, err := known.Sweep(n.t.Context(), n.options, m, nil)
	return err
}

func (n *node) startC1() error {
	_, err := n.call(n.t.Context(), "StartContainer", &runtimeapi.StartContainerRequest{ContainerId: "c1"}, &runtimeapi.StartContainerResponse{})
	return err
}

func TestSynchronizedBeforeTheFirstEvent(t *testing.T) {
	var told notes
	n, known, m := learning(t, told.take, true)
	n.must(n.startC1())
	n.must(n.startC1())
	n.must(n.sweep(known, m))
	if want := []string{"Synchronize pod1", "PreStartContainer pod1", "PreStartContainer pod1"}; !slices.Equal(told.all, want) {
		t.Errorf("told %q", told.all)
	}
}

// A sweep finds a pod that is being made, because the store was filled from the
// runtime meanwhile: it is not older than the plugin.
func TestNoSweepOfAPodThatIsBeingMade(t *testing.T) {
	var told notes
	n, known, m := learning(t, told.take, false)
	n.backend.pods = map[string]*runtimeapi.PodSandboxStatusResponse{"pod1": {Status: &runtimeapi.PodSandboxStatus{Id: "pod1", Metadata: podConfig().Metadata}}}
	n.updating = func() {
		if _, err := n.store.ReadPod(t.Context(), &n.backend, "pod1"); err != nil {
			t.Error(err)
		}
		n.must(n.sweep(known, m))
	}
	_, err := n.call(t.Context(), "RunPodSandbox", &runtimeapi.RunPodSandboxRequest{Config: podConfig()}, &runtimeapi.RunPodSandboxResponse{PodSandboxId: "pod1"})
	n.must(err)
	n.must(n.queue.Drain(t.Context()))
	n.must(n.sweep(known, m))
	if want := []string{"PreRunPodSandbox", "PostRunPodSandbox pod1"}; !slices.Equal(told.all, want) {
		t.Errorf("told %q", told.all)
	}
}

// A pod whose making failed is not known by that.
func TestPodThatWasNotMade(t *testing.T) {
	var told notes
	n, known, m := learning(t, told.take, false)
	n.fails = errors.New("no")
	_, err := n.call(t.Context(), "RunPodSandbox", &runtimeapi.RunPodSandboxRequest{Config: podConfig()}, nil)
	if !errors.Is(err, n.fails) {
		t.Fatal(err)
	}
	n.with(func(*intercept.Options) {}).runPod() // the same name, behind the plugin's back
	n.must(n.sweep(known, m))
	if want := []string{"PreRunPodSandbox", "Synchronize pod1"}; !slices.Equal(told.all, want) {
		t.Errorf("told %q", told.all)
	}
}

// Who fails in Synchronize fails at the event, and is told anew at the next.
func TestSynchronizeFailsAtTheEvent(t *testing.T) {
	fault := errors.New("not now")
	tries := 0
	var told notes
	n, _, _ := learning(t, func(ctx context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
		if ev.Hook() == abi.Synchronize {
			if tries++; tries == 1 {
				return fault
			}
		}
		return told.take(ctx, ev, adj)
	}, true)
	n.must(n.startC1()) // under Ignore
	if log := n.log.String(); !strings.Contains(log, "the pod is not synchronized: not now") || len(told.all) > 0 {
		t.Errorf("told %q; the log:\n%s", told.all, log)
	}
	n.must(n.startC1())
	if want := []string{"Synchronize pod1", "PreStartContainer pod1"}; !slices.Equal(told.all, want) {
		t.Errorf("told %q", told.all)
	}
}

// Events of a pod wait until the plugin has been told of it, and no longer than
// their own time.
func TestEventsWaitForSynchronize(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	var events atomic.Int32
	n, known, m := learning(t, func(_ context.Context, ev plugin.Event, _ *plugin.Adjustment) error {
		if ev.Hook() == abi.Synchronize {
			close(entered)
			<-leave
			return nil
		}
		events.Add(1)
		return nil
	}, true, func(o *intercept.Options) { o.CallTime = 30 * time.Second })
	swept := make(chan error, 1)
	go func() { swept <- n.sweep(known, m) }()
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond) // of which hooks have 100 ms
	defer cancel()
	_, err := n.call(ctx, "StartContainer", &runtimeapi.StartContainerRequest{ContainerId: "c1"}, &runtimeapi.StartContainerResponse{})
	if n.must(err); events.Load() != 0 {
		t.Error("the plugin got an event of a pod that it is being told of")
	}
	started := make(chan error, 1)
	go func() { started <- n.startC1() }()
	close(leave)
	n.must(<-swept)
	if n.must(<-started); events.Load() != 1 {
		t.Errorf("%d events", events.Load())
	}
}

// What a plugin wants in Synchronize of the pod and its containers is carried out.
func TestSynchronizeWrites(t *testing.T) {
	fs, dir, _ := scratchGroup(t)
	n, known, m := learning(t, nil, true, withCgroups(fs))
	n.options.NewChain = func(m ...plugin.Member) *plugin.Chain { return plugin.NewChain(n.options.Observer, fs.Version(), m...) }
	m.Plugin = function(func(_ context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
		in, _, errno := ev.Containers(abi.Pod, nil)
		if errno != abi.OK || len(in) != 1 {
			return errno
		}
		return errors.Join(adj.WriteFile(abi.Pod, "memory.high", "8192000"), adj.SetInt64(in[0], abi.Resources+abi.CPUShares, 9))
	})
	n.must(n.sweep(known, m))
	n.must(n.queue.Drain(t.Context()))
	if got := content(t, dir, "memory.high"); got != "8192000" || len(n.backend.updates) != 1 || n.backend.updates[0].GetLinux().GetCpuShares() != 9 {
		t.Errorf("memory.high is %s, updates %v", got, n.backend.updates)
	}
}

// A sweep ends with the first failure, and says what it was.
func TestSweepFails(t *testing.T) {
	n, known, m := learning(t, func(context.Context, plugin.Event, *plugin.Adjustment) error {
		return status.Error(codes.Internal, "broken")
	}, true)
	if err := n.sweep(known, m); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := known.Sweep(ctx, n.options, m, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// An event that waits for what another one's caller gave up is none of that caller's.
func TestEventsOutliveWhoSynchronizes(t *testing.T) {
	entered := make(chan struct{})
	var events, tries atomic.Int32
	n, _, _ := learning(t, func(ctx context.Context, ev plugin.Event, _ *plugin.Adjustment) error {
		switch {
		case ev.Hook() != abi.Synchronize:
			events.Add(1)
		case tries.Add(1) == 1:
			close(entered)
			<-ctx.Done()
			time.Sleep(50 * time.Millisecond) // the other one waits by now
			return context.Cause(ctx)
		}
		return nil
	}, true, func(o *intercept.Options) { o.CallTime = 30 * time.Second })
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	frame, err := cri.NewFrame(&runtimeapi.StartContainerRequest{ContainerId: "c1"})
	n.must(err)
	go func() {
		_, err := n.route(n.full("StartContainer"))(ctx, &cri.Call{Request: frame}, nil) // nothing is forwarded
		gone <- err
	}()
	<-entered
	started := make(chan error, 1)
	go func() { started <- n.startC1() }()
	time.Sleep(50 * time.Millisecond)
	cancel()
	if err := <-gone; status.Code(err) != codes.Canceled {
		t.Errorf("error %v for who went away", err)
	}
	if n.must(<-started); events.Load() != 1 || tries.Load() != 2 {
		t.Errorf("%d events, told %d times; the log:\n%s", events.Load(), tries.Load(), n.log.String())
	}
}

// An event that waits for another one's Synchronize has its own time, also if that of the other one's caller is short.
func TestEventsOutliveTheTimeOfWhoSynchronizes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events, tries atomic.Int32
		n, _, _ := learning(t, func(ctx context.Context, ev plugin.Event, _ *plugin.Adjustment) error {
			switch {
			case ev.Hook() != abi.Synchronize:
				events.Add(1)
			case tries.Add(1) == 1:
				<-ctx.Done()
				return context.Cause(ctx)
			}
			return nil
		}, true, func(o *intercept.Options) { o.CallTime = 30 * time.Second })
		short, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		frame, err := cri.NewFrame(&runtimeapi.StartContainerRequest{ContainerId: "c1"})
		if err != nil {
			t.Fatal(err)
		}
		go n.route(n.full("StartContainer"))(short, &cri.Call{Request: frame}, func(context.Context, *cri.Frame) (*cri.Frame, error) {
			return cri.NewFrame(&runtimeapi.StartContainerResponse{})
		})
		time.Sleep(time.Millisecond) // it synchronizes by now
		n.must(n.startC1())
		if synctest.Wait(); events.Load() != 1 || tries.Load() != 2 {
			t.Errorf("%d events, told %d times; the log:\n%s", events.Load(), tries.Load(), n.log.String())
		}
	})
}

// What a plugin takes to be told of a pod is none of the time that the plugins of
// the event have.
func TestSynchronizeIsNotInTheTimeOfTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var used error
		told := 0
		n, known, m := learning(t, nil, true, withCallTime(time.Second))
		m.Plugin = budgeted(func(b *plugin.Budget, ev plugin.Event) {
			told++
			time.Sleep(600 * time.Millisecond)
			if ev.Hook() != abi.Synchronize {
				used = b.Err()
			}
		})
		newChain := n.options.NewChain
		n = n.with(func(o *intercept.Options) {
			o.NewChain = newChain
			o.Chain = newChain(known.Member(*o, m))
		})
		if n.must(n.startC1()); used != nil || told != 2 {
			t.Errorf("told %d times, after 600 ms of its event: %v", told, used)
		}
	})
}

// A sweep that has taken long enough leaves the rest for later, and says how much.
func TestSweepInPart(t *testing.T) {
	var told notes
	n, known, m := learning(t, told.take, true)
	n.must(n.with(func(*intercept.Options) {}).second())
	left, err := known.Sweep(t.Context(), n.options, m, func() bool { return true })
	if n.must(err); left != 1 || len(told.all) != 1 {
		t.Errorf("%d pods are left, told %q", left, told.all)
	}
	n.must(n.sweep(known, m))
	if want := []string{"Synchronize pod1", "Synchronize pod2"}; !slices.Equal(told.all, want) {
		t.Errorf("told %q", told.all)
	}
}

// A pod that has gone is remembered for a minute, over its last events, and no longer.
func TestSynchronizedForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told notes
		n, known, m := learning(t, told.take, true)
		unseen := n.with(func(*intercept.Options) {}) // by the plugin
		n.must(n.sweep(known, m))
		for _, gone := range []time.Duration{time.Minute, time.Minute + time.Second} {
			time.Sleep(time.Hour) // the time before does not count
			_, err := unseen.call(t.Context(), "RemovePodSandbox", &runtimeapi.RemovePodSandboxRequest{PodSandboxId: "pod1"}, nil)
			n.must(errors.Join(err, n.sweep(known, m)))
			time.Sleep(gone)
			n.must(n.sweep(known, m))
			unseen.runPod()
			n.must(n.sweep(known, m))
		}
		if want := []string{"Synchronize pod1", "Synchronize pod1"}; !slices.Equal(told.all, want) {
			t.Errorf("told %q", told.all)
		}
	})
}
