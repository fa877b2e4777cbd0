package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// requestTimeout is kubelet's for a call.
const requestTimeout = 2 * time.Minute

// maxIdle is the longest time between two calls for a pod, so that pods do not march in step.
const maxIdle = 200 * time.Millisecond

// A pace gives out the times of calls, so many a second. Who is late does not catch up.
type pace struct {
	gap  time.Duration
	mu   sync.Mutex
	next time.Time
}

func (p *pace) wait(ctx context.Context) {
	p.mu.Lock()
	if now := time.Now(); p.next.Before(now) {
		p.next = now
	}
	at := p.next
	p.next = at.Add(p.gap)
	p.mu.Unlock()
	select {
	case <-time.After(time.Until(at)):
	case <-ctx.Done():
	}
}

// traffic is what kubelets with many pods ask of a node: each slot has one pod after the other.
type traffic struct {
	client cri.RuntimeServiceClient
	pace   *pace

	calling  sync.RWMutex // held for reading while a call is in flight
	away     atomic.Bool  // the runtime: calls may fail with Unavailable
	calls    atomic.Int64
	retried  atomic.Int64 // that failed while the runtime was away
	streams  atomic.Int64 // of events, that ended
	mu       sync.Mutex
	failures []string // that no fault explains
}

// fail keeps the first failures.
func (t *traffic) fail(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.failures) < 20 {
		t.failures = append(t.failures, fmt.Sprintf(format, args...))
	}
}

// call makes a call at its time, again and again while the runtime is away. A call that began or ended in
// such a time may fail with Unavailable, and with nothing else. Any other failure is kept.
func (t *traffic) call(name string, f func(context.Context) error) {
	for {
		t.pace.wait(context.Background())
		t.calling.RLock()
		away := t.away.Load()
		ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
		err := f(ctx)
		cancel()
		t.calling.RUnlock()
		t.calls.Add(1)
		if err == nil {
			time.Sleep(rand.N(maxIdle))
			return
		}
		if status.Code(err) != codes.Unavailable || !away && !t.away.Load() {
			t.fail("%s: %v", name, err)
			return
		}
		t.retried.Add(1)
		time.Sleep(50 * time.Millisecond)
	}
}

// run lives the lives of pods in so many slots until the context ends, and ends with all pods removed.
func (t *traffic) run(ctx context.Context, slots int) {
	var all sync.WaitGroup
	for slot := range slots {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				t.pod(slot, n)
			}
		})
	}
	all.Go(func() { t.events(ctx) })
	all.Go(func() { t.relist(ctx) })
	all.Wait()
}

// events keeps a stream of events open, as kubelet does. It ends with an error when the runtime goes.
func (t *traffic) events(ctx context.Context) {
	open, end := context.WithCancel(context.Background()) // without a deadline, which the proxy could see first
	defer end()
	context.AfterFunc(ctx, end)
	for ctx.Err() == nil {
		stream, err := t.client.GetContainerEvents(open, &cri.GetEventsRequest{})
		if err == nil {
			_, err = stream.Recv()
		}
		if code := status.Code(err); ctx.Err() == nil && code != codes.Unavailable {
			t.fail("the stream of events ended with %v", err)
		}
		t.streams.Add(1)
		time.Sleep(100 * time.Millisecond)
	}
}

// relist lists pods and containers once a second, as kubelet does.
func (t *traffic) relist(ctx context.Context) {
	for ; ctx.Err() == nil; time.Sleep(time.Second) {
		simple(t, "ListPodSandbox", t.client.ListPodSandbox, &cri.ListPodSandboxRequest{})
		simple(t, "ListContainers", t.client.ListContainers, &cri.ListContainersRequest{})
	}
}

// faults are the words of fickle.wat: every fortieth pod or so has a plugin trap, run out of fuel, exit or fail.
var faults = []string{"trap", "loop", "exit", "fail"}

// pod is the life of a pod with one container: eight hooked calls.
func (t *traffic) pod(slot, n int) {
	pod, container := config(slot, n)
	in, id := "", ""
	t.call("RunPodSandbox", func(ctx context.Context) error {
		resp, err := t.client.RunPodSandbox(ctx, &cri.RunPodSandboxRequest{Config: pod})
		in = resp.GetPodSandboxId()
		return err
	})
	t.call("CreateContainer", func(ctx context.Context) error {
		resp, err := t.client.CreateContainer(ctx, &cri.CreateContainerRequest{PodSandboxId: in, Config: container, SandboxConfig: pod})
		id = resp.GetContainerId()
		return err
	})
	resize := &cri.LinuxContainerResources{CpuPeriod: 100_000, CpuQuota: 60_000, CpuShares: 512}
	simple(t, "StartContainer", t.client.StartContainer, &cri.StartContainerRequest{ContainerId: id})
	simple(t, "UpdateContainerResources", t.client.UpdateContainerResources, &cri.UpdateContainerResourcesRequest{ContainerId: id, Linux: resize})
	simple(t, "StopContainer", t.client.StopContainer, &cri.StopContainerRequest{ContainerId: id})
	simple(t, "RemoveContainer", t.client.RemoveContainer, &cri.RemoveContainerRequest{ContainerId: id})
	simple(t, "StopPodSandbox", t.client.StopPodSandbox, &cri.StopPodSandboxRequest{PodSandboxId: in})
	simple(t, "RemovePodSandbox", t.client.RemovePodSandbox, &cri.RemovePodSandboxRequest{PodSandboxId: in})
}

// simple is a call whose answer says nothing.
func simple[Req, Resp any](t *traffic, name string, method func(context.Context, Req, ...grpc.CallOption) (Resp, error), req Req) {
	t.call(name, func(ctx context.Context) error {
		_, err := method(ctx, req)
		return err
	})
}

// config is that of the n-th pod of a slot, whose names no other pod has.
func config(slot, n int) (*cri.PodSandboxConfig, *cri.ContainerConfig) {
	name := fmt.Sprintf("web-%d-%d", slot, n)
	pod := &cri.PodSandboxConfig{
		Metadata:    &cri.PodSandboxMetadata{Name: name, Uid: name, Namespace: "production"},
		Labels:      map[string]string{"app": "web", "io.kubernetes.pod.name": name, "io.kubernetes.pod.namespace": "production", "io.kubernetes.pod.uid": name},
		Annotations: map[string]string{"qos.wasmproxy.io/cpu-burst": "20000", "qos.wasmproxy.io/memory-high": "100663296"},
		Linux:       &cri.LinuxPodSandboxConfig{CgroupParent: "/kubepods/burstable/pod" + name},
	}
	container := &cri.ContainerConfig{
		Metadata:    &cri.ContainerMetadata{Name: "app"},
		Image:       &cri.ImageSpec{Image: "registry.example/team/web:v1.2.3"},
		Labels:      map[string]string{"io.kubernetes.container.name": "app"},
		Annotations: map[string]string{"io.kubernetes.container.restartCount": "0"},
		Linux:       &cri.LinuxContainerConfig{Resources: &cri.LinuxContainerResources{CpuPeriod: 100_000, CpuQuota: 50_000, CpuShares: 256, MemoryLimitInBytes: 128 << 20}},
	}
	for i := range 20 {
		container.Envs = append(container.Envs, &cri.KeyValue{Key: fmt.Sprintf("SERVICE_%d_HOST", i), Value: []byte("10.96.0.1")})
	}
	if (7*slot+n)%40 == 0 {
		container.Annotations["example.com/do"] = faults[slot%len(faults)]
	}
	return pod, container
}
