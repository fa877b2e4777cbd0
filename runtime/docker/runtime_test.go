package docker_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/docker"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// TestKnownAgain: after a restart of the proxy the store has what Docker tells of a pod and its
// container, with resources and environment.
func TestKnownAgain(t *testing.T) {
	n := newNode(t, false)
	pod, id := strings.Repeat("a", 64), strings.Repeat("b", 64)
	labels := `{"io.kubernetes.docker.type":"container","io.kubernetes.sandbox.id":"` + pod + `","annotation.x":"y"}`
	n.engine.inspect["containers"] = `[{"Id":"` + pod + `","Names":["/` + podName + `"],"State":"running","Labels":{` + podLabels + `}},
		{"Id":"` + id + `","Names":["/` + mainName + `"],"State":"running","Labels":` + labels + `}]`
	n.engine.inspect[pod] = `{"Id":"` + pod + `","Name":"/` + podName + `","State":{"Status":"running","Pid":0},"Config":{"Labels":{` + podLabels + `}},"HostConfig":{"CgroupParent":"/kubepods/pod1","Runtime":"runc"}}`
	n.engine.inspect[id] = `{"Id":"` + id + `","Name":"/` + mainName + `","State":{"Status":"running"},"Config":{"Env":["A=1","B=ö"],"Image":"busybox","Labels":` + labels + `},
		"HostConfig":{"CpuQuota":50000,"CpuPeriod":100000,"Memory":1048576,"OomScoreAdj":900,"CgroupParent":"/kubepods/pod1"}}`
	if err := n.store.Sync(t.Context(), n.client); err != nil {
		t.Fatal(err)
	}
	p, ok := n.store.Pod(pod)
	if m := p.Config.GetMetadata(); !ok || m.GetName() != "web" || m.GetNamespace() != "shop" || m.GetAttempt() != 2 || p.RuntimeHandler != "docker" ||
		p.Config.GetAnnotations()["example.com/boost"] != "2x" || p.Config.GetLinux().GetCgroupParent() != "/kubepods/pod1" || p.State != runtimeapi.PodSandboxState_SANDBOX_READY {
		t.Errorf("the pod is %+v, %v", p, ok)
	}
	c, ok := n.store.Container(id)
	r := c.Config.GetLinux().GetResources()
	if !ok || c.PodID != pod || c.Unreported != 0 || r.GetCpuQuota() != 50000 || r.GetMemoryLimitInBytes() != 1048576 || r.GetOomScoreAdj() != 900 {
		t.Errorf("the container is %+v, %v", c, ok)
	}
	if e := c.Config.GetEnvs(); len(e) != 2 || string(e[0].GetValue()) != "1" || string(e[1].GetValue()) != "ö" || c.Config.GetMetadata().GetAttempt() != 3 {
		t.Errorf("the environment is %v", e)
	}
	_, err := n.client.ContainerStatus(t.Context(), &runtimeapi.ContainerStatusRequest{ContainerId: "none"})
	if status.Code(err) != codes.NotFound {
		t.Errorf("a container that there is not: %v", err)
	}
}

// TestListedContainer: a container that Docker lists, and does not describe, has its annotations, as a pod has.
func TestListedContainer(t *testing.T) {
	n, id := newNode(t, false), strings.Repeat("b", 64)
	n.engine.inspect["containers"] = `[{"Id":"` + id + `","Names":["/` + mainName + `"],"State":"running",
		"Labels":{"io.kubernetes.docker.type":"container","io.kubernetes.sandbox.id":"a","annotation.x":"y"}}]`
	list, err := n.client.ListContainers(t.Context(), &runtimeapi.ListContainersRequest{})
	if err != nil || len(list.GetContainers()) != 1 {
		t.Fatal(list, err)
	}
	c := list.GetContainers()[0]
	if _, label := c.GetLabels()["annotation.x"]; label || c.GetAnnotations()["x"] != "y" {
		t.Errorf("labels %v, annotations %v", c.GetLabels(), c.GetAnnotations())
	}
}

// TestPausedPod: a pod whose container runs is ready, also if the proxy learns of it while the container is paused. No event would tell
// later that it goes on.
func TestPausedPod(t *testing.T) {
	n, id := newNode(t, true), strings.Repeat("a", 64)
	n.engine.inspect["containers"] = `[{"Id":"` + id + `","Names":["/web"],"State":"paused"}]`
	n.engine.inspect[id] = `{"Id":"` + id + `","Name":"/web","State":{"Status":"paused"}}`
	if err := n.store.Sync(t.Context(), n.client); err != nil {
		t.Fatal(err)
	}
	pod, _ := n.store.Pod(id)
	c, _ := n.store.Container(id)
	if pod.State != runtimeapi.PodSandboxState_SANDBOX_READY || c.State != runtimeapi.ContainerState_CONTAINER_RUNNING {
		t.Errorf("the pod is %v, and its container %v", pod.State, c.State)
	}
}

// TestDefaultRuntime: on a node with GPUs Docker's default runtime is another one than runc, and Docker tells it of each container
// that was made without one. After a restart of the proxy such a pod has the handler that it was made with. Docker is asked once for
// all pods of a list.
func TestDefaultRuntime(t *testing.T) {
	n, id := newNode(t, false), strings.Repeat("a", 64)
	made, asked := "", 0
	n.engine.answers(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/info" {
			asked++
			io.WriteString(w, `{"DefaultRuntime":"nvidia"}`)
			return
		}
		io.WriteString(w, `{"Id":"`+id+`","Name":"/`+podName+`","Config":{"Labels":{`+podLabels+`}},"HostConfig":{"Runtime":"`+made+`"}}`)
	})
	for runtime, want := range map[string]string{"nvidia": "docker", "runc": "docker", "kata": "kata"} {
		made = runtime
		pod, err := n.client.PodSandboxStatus(t.Context(), &runtimeapi.PodSandboxStatusRequest{PodSandboxId: id})
		if got := pod.GetStatus().GetRuntimeHandler(); err != nil || got != want {
			t.Errorf("a pod of %s has the handler %s, %v; want %s", runtime, got, err, want)
		}
	}
	if asked != 1 {
		t.Errorf("Docker was asked %d times", asked)
	}
}

// TestHandlers: a RuntimeClass leads pods to the node only by the handler that dockershim takes.
func TestHandlers(t *testing.T) {
	for all, want := range map[bool]string{false: "docker", true: "docker kata"} {
		n := newNode(t, all)
		n.engine.answers(func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, `{"Runtimes":{"io.containerd.runc.v2":{"path":"runc"},"kata":{"path":"kata"},"runc":{"path":"runc"}}}`)
		})
		answer, err := n.client.Status(t.Context(), &runtimeapi.StatusRequest{})
		var names []string
		for _, h := range answer.GetRuntimeHandlers() {
			names = append(names, h.GetName())
		}
		if got := strings.Join(names, " "); err != nil || got != want {
			t.Errorf("with all containers %v the handlers are %s, %v, want %s", all, got, err, want)
		}
	}
}

// TestUpdateResources is an update on a plugin's behalf. Memory and swap grow together.
func TestUpdateResources(t *testing.T) {
	n := newNode(t, true)
	n.engine.inspect["nano"] = `{"Id":"nano","HostConfig":{"NanoCpus":1000000000}}`
	n.engine.answers(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			body, _ := io.ReadAll(r.Body)
			n.engine.mu.Lock()
			n.engine.requests = append(n.engine.requests, request{line: r.URL.Path, body: string(body)})
			n.engine.mu.Unlock()
			io.WriteString(w, `{"Warnings":null}`)
			return
		}
		io.WriteString(w, n.engine.inspect[strings.Split(r.URL.Path, "/")[2]]+" ")
	})
	for id, want := range map[string]string{"plain": `{"CpuQuota":50000,"Memory":7,"MemorySwap":7}`, "nano": `{"NanoCpus":500000000,"Memory":7,"MemorySwap":7}`} {
		_, err := n.client.UpdateContainerResources(t.Context(), &runtimeapi.UpdateContainerResourcesRequest{
			ContainerId: id, Linux: &runtimeapi.LinuxContainerResources{CpuQuota: 50000, MemoryLimitInBytes: 7},
		})
		if got := n.engine.last(t, "/containers/"+id+"/update").body; err != nil || got != want {
			t.Errorf("%s: Docker gets %s, %v; want %s", id, got, err, want)
		}
	}
}

// TestLink: the link is ready while its request for events is open, tells of containers with hooks,
// and comes back after Docker was away.
func TestLink(t *testing.T) {
	n := newNode(t, false)
	lose := make(chan bool)
	n.engine.answers(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, `{"Action":"die","Actor":{"ID":"other","Attributes":{"name":"x"}}}`)
		fmt.Fprintln(w, `{"Action":"destroy","Actor":{"ID":"pod","Attributes":{"io.kubernetes.docker.type":"podsandbox"}}}`)
		w.(http.Flusher).Flush()
		select {
		case <-lose:
		case <-r.Context().Done():
		}
	})
	events := make(chan docker.Event, 10)
	l := docker.NewLink(n.client, func(e docker.Event) { events <- e })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := make(chan bool)
	go func() { l.Run(ctx); close(ended) }()
	for range 2 {
		for state := l.GetState(); state != connectivity.Ready; state = l.GetState() {
			if !l.WaitForStateChange(ctx, state) {
				t.Fatal("the link does not become ready")
			}
		}
		select {
		case e := <-events:
			if e != (docker.Event{ID: "pod", Action: docker.Destroyed, Pod: true}) {
				t.Errorf("the event is %+v", e)
			}
		case <-ctx.Done():
			t.Fatal("no event comes")
		}
		lose <- true
		if !l.WaitForStateChange(ctx, connectivity.Ready) {
			t.Fatal("the loss is not noticed")
		}
	}
	cancel()
	<-ended
}

// TestStandaloneResync: when the store reads Docker again, a standalone container stays, and its pod
// has its ID.
func TestStandaloneResync(t *testing.T) {
	n := newNode(t, true, on(abi.PreCreateContainer, func(plugin.Event, *plugin.Adjustment) error { return nil }))
	id := n.create("web", `{"Image":"busybox"}`)
	n.engine.inspect["containers"] = `[{"Id":"` + id + `","Names":["/web"],"State":"running"}]`
	n.engine.inspect[id] = `{"Id":"` + id + `","Name":"/web","State":{"Status":"running"},"Config":{"Image":"busybox"}}`
	if err := n.store.Sync(t.Context(), n.client); err != nil {
		t.Fatal(err)
	}
	if c, ok := n.store.Container(id); !ok || c.PodID != id {
		t.Errorf("the container is %+v, %v", c, ok)
	}
	if all := n.store.Containers(id); len(all) != 1 {
		t.Errorf("the pod has %d containers", len(all))
	}
}
