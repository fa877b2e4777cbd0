package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"
	"github.com/wasmproxy/wasmproxy/fleet/internal/testcluster"
)

// ready sets whether a node is ready, as Kubernetes does when it hears nothing of kubelet.
func (f *fleet) ready(n *node, is string, since time.Time) {
	f.t.Helper()
	f.s.Must(http.MethodPatch, "/api/v1/nodes/"+n.name+"/status", fmt.Sprintf(
		`{"status": {"conditions": [{"type": "Ready", "status": %q, "lastTransitionTime": %q}]}}`, is, since.UTC().Format(time.RFC3339)), nil)
}

// neverReturns has a node go away for good in the middle of a rollout, and nobody remove its Node until the plugin is to be removed.
func (p *parts) neverReturns() {
	p.t.Helper()
	x := &trial{victim: victim{name: "never"}, moment: moment{name: "returns"}}
	update(p, x)
	var lost int
	testcluster.Eventually(p.t, "there is a canary", func() error {
		u := p.get(pluginID).Status.Update
		if u == nil || u.Revision != x.revision.name || len(u.Canaries) == 0 {
			return fmt.Errorf("the update is %+v", u)
		}
		lost = slices.IndexFunc(p.nodes, func(n *node) bool { return n.name != u.Canaries[0] })
		return nil
	})
	gone := p.nodes[lost]
	p.gone.Store(gone)
	p.agents[lost].kill()
	gone.proxy.kill()
	p.ready(gone, "Unknown", time.Now())
	p.nodes = slices.DeleteFunc(slices.Clone(p.nodes), func(n *node) bool { return n == gone })

	p.complete(x.revision)
	s := p.get(pluginID).Status
	const away = "; nodes that are away, since they are not ready or bypass plugins, do not count: 1 of 3"
	if m := meta.FindStatusCondition(s.Conditions, v1alpha1.Ready).Message; s.Nodes.Away != 1 || !strings.HasSuffix(m, away) {
		p.t.Errorf("with a node that is away the status is %+v", s)
	}
	remove(p, x)
	testcluster.Eventually(p.t, "the plugin is removed from all nodes but one", func() error {
		s := p.get(pluginID).Status
		m := meta.FindStatusCondition(s.Conditions, v1alpha1.Ready).Message
		if stays := "until these have removed the plugin, or their Nodes are deleted: " + gone.name; !strings.HasSuffix(m, stays) {
			return fmt.Errorf("the status is %+v", s)
		}
		return p.watch.haveFiles(p.nodes, v1alpha1.NoRevision)
	})
	p.collectGarbage()
	p.s.Must(http.MethodDelete, "/api/v1/nodes/"+gone.name, "", nil)
	for _, path := range []string{"/pluginnodes/" + gone.name, "/nodeplugins/" + pluginID} {
		testcluster.Eventually(p.t, path+" goes with the Node", func() error {
			a, err := p.s.Call(http.MethodGet, group+path, adminToken, nil)
			if err == nil && a.Code != http.StatusNotFound {
				err = errors.New(string(a.Body))
			}
			return err
		})
	}
	p.watch.check(p.nodes)
}

// collectGarbage starts the controller of Kubernetes that removes objects whose owners are gone.
func (p *parts) collectGarbage() {
	p.t.Helper()
	kubeconfig := filepath.Join(p.t.TempDir(), "kubeconfig")
	p.s.Kubeconfig(kubeconfig, adminToken)
	newPart(p.t, "kube-controller-manager", func(ctx context.Context) *exec.Cmd {
		return exec.CommandContext(ctx, filepath.Join(p.s.Bin, "kube-controller-manager"), "--kubeconfig="+kubeconfig,
			"--controllers=garbage-collector-controller", "--leader-elect=false", "--secure-port=0")
	}).start()
}
