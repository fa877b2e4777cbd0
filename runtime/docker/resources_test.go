package docker_test

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// inHost makes a node answer inspections of a container that has this HostConfig.
func (e *engine) inHost(id, labels, host string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.inspect[id] = `{"Id":"` + id + `","Name":"/web","State":{"Status":"running"},"Config":{"Labels":{` + labels + `}},"HostConfig":{` + host + `}}`
}

// setting is a plugin that sets one number of the container's resources.
func setting(hook abi.Hook, f abi.Field, to int64) plugin.Member {
	return on(hook, func(_ plugin.Event, adj *plugin.Adjustment) error {
		return adj.SetInt64(abi.Container, abi.Resources+f, to)
	})
}

// TestUpdateMemoryAndSwap: Docker refuses a limit of memory above that of memory and swap together. An
// update in which a plugin sets memory takes it along where it must, and nowhere else.
func TestUpdateMemoryAndSwap(t *testing.T) {
	n := newNode(t, false, setting(abi.PreUpdateContainerResources, abi.MemoryLimit, 300))
	pod := n.create(podName, podBody)
	id := n.create(mainName, mainBody(pod))
	labels := `"io.kubernetes.docker.type":"container","io.kubernetes.sandbox.id":"` + pod + `"`
	for _, test := range []struct{ host, body, want string }{
		{`"Memory":200,"MemorySwap":200`, `{"CpusetCpus":"1"}`, `{"CpusetCpus":"1","Memory":300,"MemorySwap":300}`},
		{`"Memory":100,"MemorySwap":200`, `{"CpusetCpus":"1"}`, `{"CpusetCpus":"1","Memory":300,"MemorySwap":300}`},
		{`"Memory":200,"MemorySwap":400`, `{"CpusetCpus":"1"}`, `{"CpusetCpus":"1","Memory":300}`},
		{`"Memory":200,"MemorySwap":-1`, `{"CpusetCpus":"1"}`, `{"CpusetCpus":"1","Memory":300,"MemorySwap":-1}`},
		{``, `{"CpusetCpus":"1"}`, `{"CpusetCpus":"1","Memory":300,"MemorySwap":300}`},
		{`"Memory":200,"MemorySwap":200`, `{"MemorySwap":500}`, `{"MemorySwap":500,"Memory":300}`},
		{`"Memory":200,"MemorySwap":200`, `{"Memory":300}`, `{"Memory":300}`},
	} {
		n.engine.inHost(id, labels, test.host)
		n.do("POST", "/containers/"+id+"/update", test.body)
		if got := n.engine.last(t, "POST /containers/"+id+"/update").body; got != test.want {
			t.Errorf("of a container with %s, %s becomes %s, want %s", test.host, test.body, got, test.want)
		}
	}
}

// TestCreateMemoryAndSwap is the same at the creation, where Docker fills in swap that is not named.
func TestCreateMemoryAndSwap(t *testing.T) {
	n := newNode(t, true, setting(abi.PreCreateContainer, abi.MemoryLimit, 300))
	for host, want := range map[string]string{
		`"Memory":100,"MemorySwap":200`: `"Memory":300,"MemorySwap":300`,
		`"Memory":100,"MemorySwap":100`: `"Memory":300,"MemorySwap":300`,
		`"Memory":100,"MemorySwap":400`: `"Memory":300,"MemorySwap":400`,
		`"Memory":100,"MemorySwap":-1`:  `"Memory":300,"MemorySwap":-1`,
		`"Memory":100`:                  `"Memory":300`,
	} {
		n.create("", `{"HostConfig":{`+host+`}}`)
		if got := n.engine.last(t, "POST /v1.41/containers/create").body; got != `{"HostConfig":{`+want+`}}` {
			t.Errorf("%s becomes %s, want %s", host, got, want)
		}
	}
}

// TestUpdateNanoCpus: Docker refuses a quota for a container that has NanoCpus, and NanoCpus for one that
// has a quota.
func TestUpdateNanoCpus(t *testing.T) {
	n := newNode(t, true, on(abi.PreUpdateContainerResources, func(ev plugin.Event, adj *plugin.Adjustment) error {
		if cpus, _ := ev.Text(abi.Container, abi.Resources+abi.CpusetCpus); cpus == "1" {
			return adj.SetInt64(abi.Container, abi.Resources+abi.CPUQuota, 50000)
		}
		return nil
	}))
	for i, test := range []struct{ host, body, want string }{
		{`"NanoCpus":1500000000`, `{"CpusetCpus":"1"}`, `{"CpusetCpus":"1","NanoCpus":500000000}`},
		{`"CpuQuota":80000`, `{"CpusetCpus":"1"}`, `{"CpusetCpus":"1","CpuQuota":50000}`},
		{`"CpuQuota":80000`, `{"NanoCpus":2000000000}`, `{"NanoCpus":0,"CpuPeriod":100000,"CpuQuota":200000}`},
		{`"CpuQuota":80000`, `{"NanoCpus":2000000000,"CpusetCpus":"1"}`, `{"NanoCpus":0,"CpusetCpus":"1","CpuPeriod":100000,"CpuQuota":50000}`},
		{`"NanoCpus":1500000000`, `{"NanoCpus":2000000000}`, `{"NanoCpus":2000000000}`},
		{``, `{"NanoCpus":2000000000}`, `{"NanoCpus":2000000000}`},
	} {
		id := strings.Repeat(strconv.Itoa(i), 64)
		n.engine.inHost(id, "", test.host)
		n.do("POST", "/containers/"+id+"/update", test.body)
		if got := n.engine.last(t, "POST /containers/"+id+"/update").body; got != test.want {
			t.Errorf("of a container with %s, %s becomes %s, want %s", test.host, test.body, got, test.want)
		}
	}
}

// TestMemoryWithoutLimit: Docker refuses the limit -1, by which a plugin takes a container's limit away.
func TestMemoryWithoutLimit(t *testing.T) {
	lift := setting(abi.PreCreateContainer, abi.MemoryLimit, -1)
	lift.Hooks = abi.HookSetOf(abi.PreCreateContainer, abi.PreUpdateContainerResources)
	n := newNode(t, true, lift)
	for host, want := range map[string]string{
		`"Memory":100,"MemorySwap":200`: `"Memory":0,"MemorySwap":0`,
		`"Memory":100,"MemorySwap":-1`:  `"Memory":0,"MemorySwap":0`,
		`"Memory":100`:                  `"Memory":0`,
		`"CpuShares":2`:                 `"CpuShares":2`,
	} {
		n.create("", `{"HostConfig":{`+host+`}}`)
		if got := n.engine.last(t, "POST /v1.41/containers/create").body; got != `{"HostConfig":{`+want+`}}` {
			t.Errorf("at the creation %s becomes %s, want %s", host, got, want)
		}
	}
	for i, test := range []struct{ host, body, want string }{
		{`"Memory":200,"MemorySwap":200`, `{"CpuShares":2}`, `{"CpuShares":2,"Memory":9223372036854771712,"MemorySwap":9223372036854771712}`},
		{`"Memory":200,"MemorySwap":-1`, `{"CpuShares":2}`, `{"CpuShares":2,"Memory":9223372036854771712,"MemorySwap":-1}`},
		{`"Memory":200,"MemorySwap":200`, `{"Memory":100,"MemorySwap":100}`, `{"Memory":9223372036854771712,"MemorySwap":9223372036854771712}`},
		{`"Memory":9223372036854771712`, `{"CpuShares":2}`, `{"CpuShares":2,"Memory":9223372036854771712,"MemorySwap":9223372036854771712}`},
		{``, `{"CpuShares":2}`, `{"CpuShares":2}`},
		{``, `{"Memory":100}`, `{"Memory":0}`},
	} {
		id := strings.Repeat(strconv.Itoa(i), 64)
		n.engine.inHost(id, "", test.host)
		n.do("POST", "/containers/"+id+"/update", test.body)
		if got := n.engine.last(t, "POST /containers/"+id+"/update").body; got != test.want {
			t.Errorf("of a container with %s, %s becomes %s, want %s", test.host, test.body, got, test.want)
		}
	}
}

// TestManyCpus: Docker refuses NanoCpus above the CPUs of the node, of which the test's has two, and it takes
// 0 for no change.
func TestManyCpus(t *testing.T) {
	for quota, want := range map[int64]struct{ create, update string }{
		300000:     {`"NanoCpus":0,"CpuPeriod":100000,"CpuQuota":300000`, `"NanoCpus":2000000000`},
		1 << 40:    {`"NanoCpus":0,"CpuPeriod":100000,"CpuQuota":1099511627776`, `"NanoCpus":2000000000`},
		-1:         {`"NanoCpus":0,"CpuPeriod":100000,"CpuQuota":-1`, `"NanoCpus":2000000000`},
		200000 - 1: {`"NanoCpus":0,"CpuPeriod":100000,"CpuQuota":199999`, `"NanoCpus":1999990000`},
	} {
		set := setting(abi.PreCreateContainer, abi.CPUQuota, quota)
		set.Hooks = abi.HookSetOf(abi.PreCreateContainer, abi.PreUpdateContainerResources)
		n := newNode(t, true, set)
		n.create("", `{"HostConfig":{"NanoCpus":1500000000}}`)
		if got := n.engine.last(t, "POST /v1.41/containers/create").body; got != `{"HostConfig":{`+want.create+`}}` {
			t.Errorf("at the creation a quota of %d becomes %s, want %s", quota, got, want.create)
		}
		id := strings.Repeat("d", 64)
		n.engine.inHost(id, "", `"NanoCpus":1500000000`)
		n.do("POST", "/containers/"+id+"/update", `{"CpuShares":2}`)
		if got := n.engine.last(t, "POST /containers/"+id+"/update").body; got != `{"CpuShares":2,`+want.update+`}` {
			t.Errorf("in an update a quota of %d becomes %s, want %s", quota, got, want.update)
		}
	}
}

// TestUpdateKeepsSwap: an update on a plugin's behalf leaves the swap of a container that Kubernetes did not
// make, and it can take the limit of memory from each.
func TestUpdateKeepsSwap(t *testing.T) {
	for _, test := range []struct {
		all        bool
		limit      int64
		host, want string
	}{
		{true, 150, `"Memory":100,"MemorySwap":-1`, `{"Memory":150,"MemorySwap":-1}`},
		{true, 150, `"Memory":100,"MemorySwap":200`, `{"Memory":150}`},
		{true, 150, `"Memory":100,"MemorySwap":100`, `{"Memory":150,"MemorySwap":150}`},
		{true, 150, `"Memory":70,"MemorySwap":140`, `{"Memory":150,"MemorySwap":150}`},
		{true, -1, `"Memory":100,"MemorySwap":-1`, `{"Memory":9223372036854771712,"MemorySwap":-1}`},
		{false, -1, `"Memory":100,"MemorySwap":100`, `{"Memory":9223372036854771712,"MemorySwap":9223372036854771712}`},
		{false, -1, ``, `{}`},
	} {
		n := newNode(t, test.all)
		id := strings.Repeat("c", 64)
		n.engine.answers(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			n.engine.mu.Lock()
			defer n.engine.mu.Unlock()
			n.engine.requests = append(n.engine.requests, request{line: r.Method, body: string(body)})
			if r.Method == http.MethodGet {
				io.WriteString(w, n.engine.inspect[id])
				return
			}
			io.WriteString(w, `{"Warnings":null}`)
		})
		n.engine.inHost(id, "", test.host)
		_, err := n.client.UpdateContainerResources(t.Context(), &runtimeapi.UpdateContainerResourcesRequest{
			ContainerId: id, Linux: &runtimeapi.LinuxContainerResources{MemoryLimitInBytes: test.limit},
		})
		if got := n.engine.last(t, "POST").body; err != nil || got != test.want {
			t.Errorf("of a container with %s: Docker gets %s, %v; want %s", test.host, got, err, test.want)
		}
	}
}
