package cluster

import (
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"
	"github.com/wasmproxy/wasmproxy/fleet/internal/testcluster"
)

// workload is what the test reads of the installed Deployment or DaemonSet.
type workload struct {
	Spec struct {
		Template struct {
			Spec struct {
				NodeSelector map[string]string
				Containers   []struct {
					Image         string
					Command, Args []string
					VolumeMounts  []struct{ Name, MountPath string }
				}
			}
		}
	}
}

const (
	daemonSet  = "/apis/apps/v1/namespaces/wasmproxy/daemonsets/wasmproxy-agent"
	deployment = "/apis/apps/v1/namespaces/wasmproxy/deployments/wasmproxy-controller"
)

// image holds that both workloads are installed with the page's image.
func (p *page) image(s *testcluster.Server) {
	p.t.Helper()
	for _, path := range []string{daemonSet, deployment} {
		var w workload
		s.Must(http.MethodGet, path, "", &w)
		if has := w.Spec.Template.Spec.Containers[0].Image; has != "registry.example/wasmproxy:1" {
			p.t.Errorf("%s has the image %s", path, has)
		}
	}
}

// begin starts the nodes without agents, and the controller as its Deployment says.
func (p *page) begin() {
	p.t.Helper()
	for _, name := range []string{"worker-1", "worker-9"} {
		p.nodes = append(p.nodes, startProxy(p.t, p.s, name, "", filepath.Join(p.bin, "wasmproxy"), "elsewhere.invalid"))
		p.s.Must(http.MethodPatch, "/api/v1/nodes/"+name, `{"metadata": {"labels": {"wasmproxy.io/node": null}}}`, nil) // a command of the page gives it
	}
	p.start(deployment, nil, "--kubeconfig", p.kubeconfig(p.s, p.s.Token("wasmproxy-controller", "")), "--interval", "300ms", "--identity", "page")
}

// agents starts an agent as the DaemonSet says, on each node that has its label.
func (p *page) agents() {
	p.t.Helper()
	for _, n := range p.nodes {
		var has struct {
			Metadata struct{ Labels map[string]string }
		}
		p.s.Must(http.MethodGet, "/api/v1/nodes/"+n.name, "", &has)
		var w workload
		p.s.Must(http.MethodGet, daemonSet, "", &w)
		for key, value := range w.Spec.Template.Spec.NodeSelector {
			if key != "kubernetes.io/os" && has.Metadata.Labels[key] != value { // that one is kubelet's
				p.t.Fatalf("%s has the labels %v, and the DaemonSet selects %s=%s", n.name, has.Metadata.Labels, key, value)
			}
		}
		p.start(daemonSet, n, "--kubeconfig", p.kubeconfig(p.s, p.s.Token("wasmproxy-agent", "agent-"+n.name)),
			"--plugin-dir", n.plugins(), "--status-socket", filepath.Join(n.dir, "status", "s"), "--wasmproxy", filepath.Join(p.bin, "wasmproxy"),
			"--verifier", filepath.Join(p.bin, "wasmproxy-fleet-verify"), "--fetch-jitter", "10ms", "--poll", "200ms", "--report-every", "200ms")
	}
	p.eventually("both agents have reported", func() error {
		var all struct{ Items []v1alpha1.PluginNode }
		p.s.Must(http.MethodGet, group+"/pluginnodes", "", &all)
		if len(all.Items) != len(p.nodes) {
			return fmt.Errorf("there are %+v", all.Items)
		}
		return nil
	})
}

// start runs the container of a workload on a node, as kubelet does, with more arguments for what is elsewhere here.
func (p *page) start(path string, n *node, more ...string) {
	p.t.Helper()
	var w workload
	p.s.Must(http.MethodGet, path, "", &w)
	c := w.Spec.Template.Spec.Containers[0]
	args := c.Args
	if n != nil {
		replace := []string{"$(NODE)", n.name}
		for _, m := range c.VolumeMounts {
			replace = append(replace, m.MountPath, map[string]string{
				"node": n.plugins(), "settings": n.dir, "status": filepath.Join(n.dir, "status"), "mirrors": filepath.Join(n.dir, "mirrors"),
			}[m.Name])
		}
		for i := range args {
			args[i] = strings.NewReplacer(replace...).Replace(args[i])
		}
	}
	args = append(append(args, more...), "--metrics-listen", "127.0.0.1:0") // the pods have an address each
	cmd := exec.Command(filepath.Join(p.bin, filepath.Base(c.Command[0])), args...)
	cmd.Env = p.env
	testcluster.Process(p.t, cmd)
}

// uninstalled holds that the release has gone, and that the kinds and the namespace have not.
func (p *page) uninstalled() {
	p.t.Helper()
	for path, want := range map[string]int{
		daemonSet: http.StatusNotFound, deployment: http.StatusNotFound, policies + "/wasmproxy-agent-own-node": http.StatusNotFound,
		group + "/nodeplugins": http.StatusOK, group + "/pluginnodes": http.StatusOK, "/api/v1/namespaces/wasmproxy": http.StatusOK,
	} {
		if a, err := p.s.Call(http.MethodGet, path, adminToken, nil); err != nil || a.Code != want {
			p.t.Errorf("after the release was uninstalled, %s: %v, %d", path, err, a.Code)
		}
	}
}
