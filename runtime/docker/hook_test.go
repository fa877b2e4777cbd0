package docker_test

import (
	"net/http"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/docker"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// TestUnchangedBody: what no plugin changes passes byte for byte.
func TestUnchangedBody(t *testing.T) {
	n := newNode(t, false, on(abi.PreCreateContainer, func(plugin.Event, *plugin.Adjustment) error { return nil }))
	pod := n.create(podName, podBody)
	if got := n.engine.last(t, "POST /v1.41/containers/create").body; got != podBody {
		t.Errorf("the pod's body is\n%s", got)
	}
	n.create(mainName, mainBody(pod))
	if got := n.engine.last(t, "POST /v1.41/containers/create").body; got != mainBody(pod) {
		t.Errorf("the container's body is\n%s", got)
	}
}

// TestCreateContainer: a plugin sees the pod and the container as CRI has them, and changes what it
// changes of the body alone.
func TestCreateContainer(t *testing.T) {
	seen := map[string]string{}
	n := newNode(t, false, on(abi.PreCreateContainer, func(ev plugin.Event, adj *plugin.Adjustment) error {
		for name, f := range map[string]abi.Field{"uid": abi.PodUID, "name": abi.PodName, "namespace": abi.PodNamespace, "handler": abi.PodRuntimeHandler, "parent": abi.PodCgroupParent} {
			seen[name], _ = ev.Text(abi.Pod, f)
		}
		seen["boost"], _ = ev.Lookup(abi.Pod, abi.PodAnnotations, "example.com/boost")
		seen["container"], _ = ev.Text(abi.Container, abi.ContainerName)
		seen["x"], _ = ev.Lookup(abi.Container, abi.ContainerAnnotations, "x")
		seen["env"], _ = ev.Lookup(abi.Container, abi.ContainerEnv, "C")
		if err := adj.SetInt64(abi.Container, abi.Resources+abi.CPUQuota, 80000); err != nil {
			return err
		}
		if err := adj.SetInt64(abi.Container, abi.Resources+abi.MemoryLimit, 2097152); err != nil {
			return err
		}
		return adj.SetEntry(abi.Container, abi.ContainerEnv, "D", "new")
	}))
	pod := n.create(podName, podBody)
	id := n.create(mainName, mainBody(pod))
	for name, want := range map[string]string{
		"uid": "6c1d9f0e-0000-4000-8000-000000000001", "name": "web", "namespace": "shop", "handler": "docker", "parent": "/kubepods.slice/kubepods-pod6c1d9f0e.slice",
		"boost": "2x", "container": "main", "x": "y", "env": "<&>",
	} {
		if seen[name] != want {
			t.Errorf("%s is %q, want %q", name, seen[name], want)
		}
	}
	want := strings.NewReplacer(`"CpuQuota":50000 `, `"CpuQuota":80000`, `1048576`, `2097152`, `["A=1","B","C=<&>"]`, `["B","A=1","C=<&>","D=new"]`).Replace(mainBody(pod))
	if got := n.engine.last(t, "POST /v1.41/containers/create").body; got != want {
		t.Errorf("the body is\n%s\nwant\n%s", got, want)
	}
	if c, ok := n.store.Container(id); !ok || c.PodID != pod || c.Config.GetLinux().GetResources().GetCpuQuota() != 80000 {
		t.Errorf("the store has %v, %v", c, ok)
	}
}

// TestLife takes a container through all requests that have hooks.
func TestLife(t *testing.T) {
	var hooks []string
	var called, all abi.HookSet
	note := func(ev plugin.Event, _ *plugin.Adjustment) error {
		called |= abi.HookSetOf(ev.Hook())
		id, _ := ev.Text(abi.Container, abi.ContainerID)
		hooks = append(hooks, ev.Hook().String()+" "+id[max(0, len(id)-1):])
		return nil
	}
	var members []plugin.Member
	for _, h := range abi.Hooks {
		if h.Phase == abi.After || h.Phase == abi.Standalone {
			continue
		}
		all |= abi.HookSetOf(h.Hook)
		m := on(h.Hook, note)
		m.ID = h.Name
		members = append(members, m)
	}
	n := newNode(t, false, members...)
	pod := n.create(podName, podBody)
	n.do("POST", "/v1.41/containers/"+pod+"/start", "")
	id := n.create(mainName, mainBody(pod))
	for _, line := range []string{
		"POST /v1.41/containers/" + id + "/start", "POST /containers/" + id + "/update", "POST /v1.41/containers/" + id + "/kill?signal=HUP",
		"POST /v1.41/containers/" + id + "/stop?t=3", "DELETE /v1.41/containers/" + id + "?force=1", "POST /v1.41/containers/" + pod + "/stop", "DELETE /v1.41/containers/" + pod,
	} {
		method, path, _ := strings.Cut(line, " ")
		if code, answer := n.do(method, path, `{"CpuShares":7}`); code != 204 {
			t.Errorf("%s answers %d %s", line, code, answer)
		}
		n.engine.last(t, line)
	}
	want := "PreRunPodSandbox |PreCreateContainer |PreStartContainer 2|PreUpdateContainerResources 2|PreStopContainer 2|PreRemoveContainer 2|PreStopPodSandbox |PreRemovePodSandbox "
	if got := strings.Join(hooks, "|"); got != want {
		t.Errorf("the hooks are %s", got)
	}
	var has abi.HookSet
	for _, m := range docker.Methods() {
		has |= m.Hooks() & all
	}
	if has != called {
		t.Errorf("there are said to be %v, and %v were called", has.Names(), called.Names())
	}
	if pods, containers := n.store.Len(); pods+containers != 0 {
		t.Errorf("the store still has %d pods and %d containers", pods, containers)
	}
}

// TestRemoveLink: a request that removes a link to a container does not remove the container.
func TestRemoveLink(t *testing.T) {
	var hooks []string
	n := newNode(t, true, on(abi.PreRemoveContainer, func(ev plugin.Event, _ *plugin.Adjustment) error {
		name, _ := ev.Text(abi.Container, abi.ContainerName)
		hooks = append(hooks, name)
		return nil
	}))
	for query, removes := range map[string]bool{"link=1": false, "v=1&link=True": false, "link= yes": false, "link=": true, "link=0": true, "link=No": true, "link=false": true, "link=none": true} {
		hooks = nil
		id := n.create("db", `{"Image":"b"}`)
		n.engine.inspect["db"] = `{"Id":"` + id + `","Name":"/db"}` // Docker knows it as web/db, too
		n.engine.inspect[id] = n.engine.inspect["db"]
		line := "DELETE /containers/web/db?" + strings.ReplaceAll(query, " ", "%20")
		if code, answer := n.do("DELETE", strings.TrimPrefix(line, "DELETE "), ""); code != 204 {
			t.Errorf("%s answers %d %s", line, code, answer)
		}
		n.engine.last(t, line)
		if _, known := n.store.Container(id); known == removes || removes != (len(hooks) == 1) {
			t.Errorf("after %s the store has the container: %v; the hooks are of %q", line, known, hooks)
		}
	}
}

// TestRefusal is Docker's error, and Docker gets no request.
func TestRefusal(t *testing.T) {
	n := newNode(t, false, on(abi.PreRunPodSandbox, func(plugin.Event, *plugin.Adjustment) error {
		return &plugin.Rejection{Code: 7, Reason: "not here"}
	}))
	code, answer := n.do("POST", "/v1.41/containers/create?name="+podName, podBody)
	if code != 403 || !strings.HasPrefix(answer, `{"message":"`) || !strings.Contains(answer, "not here") {
		t.Errorf("answers %d %s", code, answer)
	}
	if n.engine.made != 0 {
		t.Error("Docker has made it")
	}
}

// TestOthersPass: no hook runs for a container that Kubernetes did not make, whatever its name.
func TestOthersPass(t *testing.T) {
	n := newNode(t, false,
		on(abi.PreCreateContainer, func(plugin.Event, *plugin.Adjustment) error { t.Error("a hook ran"); return nil }),
		on(abi.PreStartContainer, func(plugin.Event, *plugin.Adjustment) error { t.Error("a hook ran"); return nil }))
	body := `{"Image":"busybox"}`
	id := n.create("k8s_web", body)
	n.engine.inspect[id] = `{"Id":"` + id + `","Name":"/k8s_web","Config":{"Labels":null}}`
	if code, answer := n.do("POST", "/containers/"+id+"/start", ""); code != 204 {
		t.Errorf("start answers %d %s", code, answer)
	}
	if code, answer := n.do("POST", "/containers/none/start", ""); code != 204 { // as Docker answers
		t.Errorf("start answers %d %s", code, answer)
	}
}

// TestStandalone: with all containers, one that Kubernetes did not make is a pod and a container.
func TestStandalone(t *testing.T) {
	var hooks []string
	note := func(ev plugin.Event, adj *plugin.Adjustment) error {
		name, _ := ev.Text(abi.Pod, abi.PodName)
		value, _ := ev.Lookup(abi.Pod, abi.PodAnnotations, "a")
		hooks = append(hooks, ev.Hook().String()+" "+name+" "+value)
		if ev.Hook() == abi.PreRunPodSandbox {
			return adj.SetEntry(abi.Pod, abi.PodAnnotations, "a", "changed")
		}
		return nil
	}
	var members []plugin.Member
	for _, h := range []abi.Hook{abi.PreRunPodSandbox, abi.PreCreateContainer, abi.PreStopPodSandbox, abi.PreStopContainer, abi.PreRemovePodSandbox, abi.PreRemoveContainer} {
		m := on(h, note)
		m.ID = h.String()
		members = append(members, m)
	}
	n := newNode(t, true, members...)
	id := n.create("web", `{"Image":"busybox","Labels":{"wasmproxy.io/annotation.a":"b"}}`)
	if got := n.engine.last(t, "POST /v1.41/containers/create").body; got != `{"Image":"busybox","Labels":{"wasmproxy.io/annotation.a":"changed"}}` {
		t.Errorf("the body is %s", got)
	}
	n.do("POST", "/containers/"+id+"/start", "")
	n.do("POST", "/containers/"+id+"/kill", "")
	if all := n.store.Pods(); len(all) != 1 || all[0].State != runtimeapi.PodSandboxState_SANDBOX_NOTREADY {
		t.Errorf("the stopped pod is %+v", all)
	}
	n.do("POST", "/containers/"+id+"/start", "")
	if all := n.store.Pods(); len(all) != 1 || all[0].State != runtimeapi.PodSandboxState_SANDBOX_READY {
		t.Errorf("the pod that started again is %+v", all)
	}
	n.do("DELETE", "/containers/"+id, "")
	want := "PreRunPodSandbox web b|PreCreateContainer web changed|PreStopPodSandbox web changed|PreStopContainer web changed|PreRemovePodSandbox web changed|PreRemoveContainer web changed"
	if got := strings.Join(hooks, "|"); got != want {
		t.Errorf("the hooks are %s", got)
	}
	if pods, containers := n.store.Len(); pods+containers != 0 {
		t.Errorf("the store still has %d pods and %d containers", pods, containers)
	}
}

// TestStandaloneOfNoSandbox: a container that says that it is one of a pod, and not of which, is a standalone one from its
// creation to its end.
func TestStandaloneOfNoSandbox(t *testing.T) {
	removed := false
	n := newNode(t, true, on(abi.PreRemovePodSandbox, func(plugin.Event, *plugin.Adjustment) error {
		removed = true
		return nil
	}))
	id := n.create("web", `{"Image":"busybox","Labels":{"io.kubernetes.docker.type":"container"}}`)
	n.do("DELETE", "/containers/"+id, "")
	if pods, containers := n.store.Len(); !removed || pods+containers != 0 {
		t.Errorf("the hook has run: %v; the store still has %d pods and %d containers", removed, pods, containers)
	}
}

// TestStandaloneLedger: what a plugin wants of a standalone container as it is made is noted under
// the pod's own name, which is the same after a restart of the proxy.
func TestStandaloneLedger(t *testing.T) {
	n := newNode(t, true, on(abi.PreCreateContainer, func(_ plugin.Event, adj *plugin.Adjustment) error {
		return adj.SetInt64(abi.Container, abi.Resources+abi.CPUQuota, 80000)
	}))
	id := n.create("web", `{"Image":"busybox","HostConfig":{"NanoCpus":1500000000}}`)
	if got := n.engine.last(t, "POST /v1.41/containers/create").body; got != `{"Image":"busybox","HostConfig":{"NanoCpus":0,"CpuPeriod":100000,"CpuQuota":80000}}` {
		t.Errorf("the body is %s", got)
	}
	if !n.ledger.Record(enforce.ID{Pod: "/docker/web/0", Container: id}).Has() {
		t.Errorf("the ledger has %v", n.ledger.Objects())
	}
	n.engine.answers(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusConflict) })
	if code, _ := n.do("POST", "/containers/create?name=web", `{"Image":"busybox"}`); code != 409 {
		t.Errorf("Docker's conflict is %d", code)
	}
	if pods, containers := n.store.Len(); pods != 1 || containers != 1 {
		t.Errorf("the store has %d pods and %d containers after a request that failed", pods, containers)
	}
}

// TestChangesNotSent: what Docker has no field for is left out, with an event.
func TestChangesNotSent(t *testing.T) {
	n := newNode(t, false, on(abi.PreUpdateContainerResources, func(_ plugin.Event, adj *plugin.Adjustment) error {
		return adj.SetEntry(abi.Container, abi.Resources+abi.HugepageLimits, "2MB", "0")
	}))
	pod := n.create(podName, podBody)
	id := n.create(mainName, mainBody(pod))
	if code, answer := n.do("POST", "/containers/"+id+"/update", `{"CpuShares":7}`); code != 204 {
		t.Errorf("answers %d %s", code, answer)
	}
	if got := n.engine.last(t, "POST /containers/"+id+"/update").body; got != `{"CpuShares":7}` {
		t.Errorf("the body is %s", got)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, e := range n.events {
		if left, ok := e.(*observe.ChangesNotSent); ok && left.ContainerID == id && len(left.Fields) == 1 && left.Fields[0] == "resources.hugepage_limits" {
			return
		}
	}
	t.Errorf("no event says what is left out")
}
