package bench_test

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/isolation"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

var (
	lives  = flag.Duration("lives", 80*time.Second, "how long pods are run one after the other")
	steady = flag.Duration("steady", time.Minute, "how long kubelet's steady calls are made")
	pods   = flag.Int("pods", 100, "pods during the steady calls")
)

// The parties: what is between kubelet and containerd.
const (
	direct  = "direct"
	without = "wasmproxy"
	with    = "wasmproxy+5wasm"
)

var parties = []string{direct, without, with}

// bed has all that is measured.
type bed struct {
	clients map[string]node.CRI
	proxies map[string]*node.BenchProxy
	serial  int
}

func TestNode(t *testing.T) {
	runtime := node.StartRuntime(t)
	b := &bed{clients: map[string]node.CRI{direct: node.DialCRI(t, runtime.Endpoint)}, proxies: map[string]*node.BenchProxy{}}
	b.clients[direct].PullBusybox(t)
	var plugins []node.Plugin
	for i, name := range bundled {
		plugins = append(plugins, node.Plugin{File: fmt.Sprintf("%d0-%s.wasm", i+1, name), Program: name + ".wasm"})
	}
	b.add(t, without)
	b.add(t, with, plugins...)
	r := &result{load: loadOfMachine(t), own: map[string]time.Duration{}, cpu: map[string]time.Duration{}, pods: *pods}
	b.lives(t, r)
	b.steadily(t, r)
	for name, p := range b.proxies {
		served := p.Stop(t)
		for hook, failed := range served.HookFailures {
			if failed > 0 {
				t.Errorf("%s: %d failures at %s", name, failed, hook)
			}
		}
		if called := served.Hooks["PreCreateContainer"]; (called > 0) != (name == with) {
			t.Errorf("%s: plugins were called %d times at PreCreateContainer", name, called)
		}
	}
	r.report(t)
}

func (b *bed) add(t *testing.T, name string, plugins ...node.Plugin) {
	t.Helper()
	b.proxies[name] = node.StartBenchProxy(t, strings.ReplaceAll(name, "+", "-"), plugins...)
	b.clients[name] = node.DialCRI(t, b.proxies[name].Endpoint)
}

// workload is the next pod. The plugin qos writes a cgroup file of its container.
func (b *bed) workload() node.Workload {
	b.serial++
	return node.Workload{
		Name: fmt.Sprintf("bench-%d", b.serial), Annotations: map[string]string{"qos.wasmproxy.io/cpu-burst": "10000"},
		Resources: &cri.LinuxContainerResources{CpuPeriod: 100_000, CpuQuota: 50_000, CpuShares: 512, MemoryLimitInBytes: 64 << 20},
	}
}

// lives runs pods to their end through each party in turn; nobody is always first. The first round does not count.
func (b *bed) lives(t *testing.T, r *result) {
	t.Helper()
	r.lives = map[string][]time.Duration{}
	for round, begin := 0, time.Now(); time.Since(begin) < *lives || round < 10; round++ {
		for i := range parties {
			party := parties[(round+i)%len(parties)]
			d, err := b.life(t.Context(), b.clients[party])
			if err != nil {
				t.Fatalf("a pod through %s: %v", party, err)
			}
			if round > 0 {
				r.lives[party] = append(r.lives[party], d)
			}
		}
	}
	for name, p := range b.proxies {
		r.own[name] = p.Own(t) / time.Duration(len(r.lives[name])+1)
	}
}

// life runs one pod to its end: RunPodSandbox, CreateContainer, StartContainer, StopContainer,
// RemoveContainer, StopPodSandbox, RemovePodSandbox.
func (b *bed) life(ctx context.Context, through node.CRI) (time.Duration, error) {
	w := b.workload()
	begin := time.Now()
	r, err := through.Run(ctx, w)
	if err == nil {
		err = through.Remove(ctx, r)
	}
	took := time.Since(begin)
	if err != nil {
		return 0, err
	}
	return took, isolation.RemoveCgroup("kubepods/burstable/pod" + w.Name) // as kubelet does
}

// steadily makes kubelet's steady calls to both proxies while there are pods, and measures their CPU time.
func (b *bed) steadily(t *testing.T, r *result) {
	t.Helper()
	remove := b.fill(t)
	time.Sleep(5 * time.Second) // what starting them left to do
	ctx, cancel := context.WithTimeout(t.Context(), *steady)
	defer cancel()
	before, begin := map[string]time.Duration{}, time.Now()
	var all sync.WaitGroup
	for name, p := range b.proxies {
		before[name] = p.CPU(t)
		for _, c := range steadyCalls {
			all.Go(func() { c.repeat(ctx, t, b.clients[name]) })
		}
	}
	all.Wait()
	for name, p := range b.proxies {
		r.cpu[name] = time.Duration(float64(p.CPU(t)-before[name]) * float64(time.Minute) / float64(time.Since(begin)))
	}
	remove()
}

// fill runs pods through the proxy that has plugins, and returns what removes them.
func (b *bed) fill(t *testing.T) (remove func()) {
	t.Helper()
	workloads, running := make([]node.Workload, *pods), make([]node.Running, *pods)
	for i := range workloads {
		workloads[i] = b.workload()
	}
	each := func(f func(i int) error) {
		var all sync.WaitGroup
		places := make(chan struct{}, 8)
		for i := range workloads {
			all.Go(func() {
				places <- struct{}{}
				defer func() { <-places }()
				if err := f(i); err != nil {
					t.Errorf("pod %s: %v", workloads[i].Name, err)
				}
			})
		}
		all.Wait()
	}
	each(func(i int) (err error) {
		running[i], err = b.clients[with].Run(t.Context(), workloads[i])
		return err
	})
	return func() {
		each(func(i int) error { return b.clients[with].Remove(t.Context(), running[i]) })
	}
}

// A steadyCall is one that kubelet makes again and again, whatever happens.
type steadyCall struct {
	every time.Duration
	make  func(context.Context, node.CRI) error
}

// steadyCalls are those of kubelet 1.36: PLEG's relist (genericPlegRelistPeriod), housekeeping (housekeepingPeriod), the state of
// the node (updateRuntimeUp), the statistics of the eviction manager (evictionMonitoringPeriod), those that
// metrics-server asks kubelet for, and the list of images (the node's status).
var steadyCalls = []steadyCall{
	{time.Second, listPods}, {time.Second, listContainers},
	{2 * time.Second, listPods}, {2 * time.Second, listContainers},
	{5 * time.Second, status},
	{10 * time.Second, statistics}, {15 * time.Second, statistics},
	{30 * time.Second, images}, {time.Minute, version},
}

func (c steadyCall) repeat(ctx context.Context, t *testing.T, client node.CRI) {
	for tick := time.NewTicker(c.every); ; {
		if err := c.make(t.Context(), client); err != nil {
			t.Errorf("a steady call: %v", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func listPods(ctx context.Context, c node.CRI) error {
	_, err := c.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{})
	return err
}

func listContainers(ctx context.Context, c node.CRI) error {
	_, err := c.ListContainers(ctx, &cri.ListContainersRequest{})
	return err
}

func status(ctx context.Context, c node.CRI) error {
	_, err := c.Status(ctx, &cri.StatusRequest{})
	return err
}

func version(ctx context.Context, c node.CRI) error {
	_, err := c.Version(ctx, &cri.VersionRequest{})
	return err
}

func images(ctx context.Context, c node.CRI) error {
	_, err := c.ListImages(ctx, &cri.ListImagesRequest{})
	return err
}

// statistics are those of kubelet's provider that asks the runtime.
func statistics(ctx context.Context, c node.CRI) error {
	if err := listContainers(ctx, c); err != nil {
		return err
	}
	if err := listPods(ctx, c); err != nil {
		return err
	}
	if _, err := c.ListPodSandboxStats(ctx, &cri.ListPodSandboxStatsRequest{}); err != nil {
		return err
	}
	if _, err := c.ListContainerStats(ctx, &cri.ListContainerStatsRequest{}); err != nil {
		return err
	}
	_, err := c.ImageFsInfo(ctx, &cri.ImageFsInfoRequest{})
	return err
}
