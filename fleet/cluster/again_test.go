package cluster

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/wasmproxy/wasmproxy/fleet/internal/testcluster"
)

// madeAgain has a user delete a NodePlugin at once and make it again, and somebody delete the revision that nodes have. Either way there is
// one in the end, of which the garbage collector finds that its owner is there.
func (f *fleet) madeAgain(id, module, object string) {
	f.t.Helper()
	revision := revisions + "/" + f.get(id).Status.Stable.Revision
	f.s.Must(http.MethodPatch, group+"/nodeplugins/"+id, `{"metadata": {"annotations": {"fleet.wasmproxy.io/force-delete": "true"}}}`, nil)
	f.s.Must(http.MethodDelete, group+"/nodeplugins/"+id, "", nil)
	testcluster.Eventually(f.t, "the object goes", func() error {
		a, err := f.s.Call(http.MethodGet, group+"/nodeplugins/"+id, adminToken, nil)
		if err == nil && a.Code != http.StatusNotFound {
			err = fmt.Errorf("it is there: %s", a.Body)
		}
		return err
	})
	f.s.Must(http.MethodPost, group+"/nodeplugins", object, nil)
	owned := func() error {
		uid := f.get(id).UID
		a, err := f.s.Call(http.MethodGet, revision, adminToken, nil)
		var r appsv1.ControllerRevision
		if err == nil {
			err = json.Unmarshal(a.Body, &r)
		}
		if err == nil && (len(r.OwnerReferences) != 1 || r.OwnerReferences[0].UID != uid) {
			err = fmt.Errorf("the NodePlugin has the UID %s, and the revision is %s", uid, a.Body)
		}
		return err
	}
	testcluster.Eventually(f.t, "the revision belongs to the object that was made again", owned)
	f.complete(id, module)
	f.s.Must(http.MethodDelete, revision, "", nil)
	testcluster.Eventually(f.t, "a revision that somebody has deleted is there", owned)
}

// anotherNode has one Node of five be made again under its name, without an agent yet, and waits until it does not count.
func (f *fleet) anotherNode(n *node, id, spec string) {
	f.t.Helper()
	testcluster.Eventually(f.t, "all nodes count", f.selects(id, 5))
	n.stopAgent()
	f.s.Must(http.MethodDelete, "/api/v1/nodes/"+n.name, "", nil)
	register(f.t, f.s, n.name, spec)
	testcluster.Eventually(f.t, "the report of the former node does not count", f.selects(id, 4))
	time.Sleep(time.Second) // three rounds of the controller
}

// leaves has one node of five lose the label of those that have an agent, and get it again.
func (f *fleet) leaves(n *node, id string) {
	f.t.Helper()
	testcluster.Eventually(f.t, "all nodes count", f.selects(id, 5))
	f.s.Must(http.MethodPatch, "/api/v1/nodes/"+n.name, `{"metadata": {"labels": {"wasmproxy.io/node": null}}}`, nil)
	testcluster.Eventually(f.t, "a node without the label does not count", f.selects(id, 4))
	f.s.Must(http.MethodPatch, "/api/v1/nodes/"+n.name, `{"metadata": {"labels": {"wasmproxy.io/node": "true"}}}`, nil)
}

// selects says if a plugin is for another number of nodes.
func (f *fleet) selects(id string, want int32) func() error {
	return func() error {
		if has := f.get(id).Status.Nodes.Selected; has != want {
			return fmt.Errorf("the plugin is for %d nodes, not %d", has, want)
		}
		return nil
	}
}
