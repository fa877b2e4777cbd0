package koord_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// dockershim asks a Docker Engine as kubelet's dockershim does.
type dockershim struct {
	*node
	client http.Client
}

// onDocker makes a node one with a Docker Engine and proxies in Docker mode.
func (n *node) onDocker() *dockershim {
	n.engine = newEngine(n.path("runtime.sock"))
	n.Cleanup(n.engine.stop)
	d := &dockershim{node: n}
	d.client.Timeout = deadline
	d.client.Transport = &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", n.path("proxy.sock"))
	}}
	n.answers = func(context.Context) error {
		_, err := d.ask(http.MethodGet, "/_ping", "")
		return err
	}
	return d
}

// ask returns the body of the answer. An answer of an error is one.
func (d *dockershim) ask(method, path, body string) ([]byte, error) {
	req, err := http.NewRequest(method, "http://docker"+path, strings.NewReader(body))
	d.must(err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := d.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 400 {
		err = fmt.Errorf("%s: %s", resp.Status, bytes.TrimSpace(answer))
	}
	return answer, err
}

// create makes a container and returns its id.
func (d *dockershim) create(name, body string) (string, error) {
	answer, err := d.ask(http.MethodPost, "/containers/create?name="+url.QueryEscape(name), body)
	var created struct{ ID string }
	if err == nil {
		err = json.Unmarshal(answer, &created)
	}
	return created.ID, err
}

func (d *dockershim) do(id, operation string) error {
	_, err := d.ask(http.MethodPost, "/containers/"+id+"/"+operation, "")
	return err
}

func (d *dockershim) update(id, body string) error {
	_, err := d.ask(http.MethodPost, "/containers/"+id+"/update", body)
	return err
}

// The names and bodies that dockershim gives a pod's sandbox and its container, with a field of a
// later version in each.
const (
	sandboxName   = "k8s_POD_web_default_uid-1_0"
	containerName = "k8s_main_web_default_uid-1_0"

	sandboxBody = `{"Hostname":"web","Env":null,"Image":"registry.k8s.io/pause:3.6","Labels":{"io.kubernetes.docker.type":"podsandbox",` +
		`"io.kubernetes.pod.name":"web","io.kubernetes.pod.namespace":"default","io.kubernetes.pod.uid":"uid-1","io.kubernetes.container.name":"POD",` +
		`"app":"web","annotation.kubernetes.io/config.source":"file","annotation.team":"blue"},` +
		`"HostConfig":{"NetworkMode":"none","CpuShares":2,"OomScoreAdj":-998,"CgroupParent":"/kubepods/burstable/poduid-1","Future":{"big":12345678901234567890}}}`
)

// containerBody is the body for a container of a pod.
func containerBody(sandbox string) string {
	return `{"Env":["GREETING=hello","PORT=80","EMPTY="],"Entrypoint":["sleep"],"Cmd":["1000"],"Image":"busybox@sha256:1","Labels":{"io.kubernetes.docker.type":"container",` +
		`"io.kubernetes.pod.name":"web","io.kubernetes.pod.namespace":"default","io.kubernetes.pod.uid":"uid-1","io.kubernetes.container.name":"main",` +
		`"io.kubernetes.container.logpath":"/var/log/pods/default_web_uid-1/main/0.log","io.kubernetes.sandbox.id":"` + sandbox + `","annotation.io.kubernetes.container.hash":"30daac60"},` +
		`"HostConfig":{"Binds":["/var/lib/kubelet/x:/etc/hosts"],"NetworkMode":"container:` + sandbox + `","CpuPeriod":100000,"CpuQuota":50000,"CpuShares":512,"Memory":134217728,` +
		`"MemorySwap":134217728,"OomScoreAdj":900,"CpusetCpus":"0-1","CpusetMems":"0","CgroupParent":"/kubepods/burstable/poduid-1","Future":{"big":12345678901234567890}}}`
}

// running starts a pod with a container, as dockershim does.
func (d *dockershim) running() (sandbox, container string) {
	d.Helper()
	sandbox, err := d.create(sandboxName, sandboxBody)
	d.must(err)
	d.must(d.do(sandbox, "start"))
	container, err = d.create(containerName, containerBody(sandbox))
	d.must(err)
	d.must(d.do(container, "start"))
	return sandbox, container
}
