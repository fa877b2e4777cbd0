package cluster

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"
	"github.com/wasmproxy/wasmproxy/fleet/internal/testcluster"
	"github.com/wasmproxy/wasmproxy/fleet/oci"
	"github.com/wasmproxy/wasmproxy/fleet/trust/trusttest"
	"github.com/wasmproxy/wasmproxy/runtime/regular"
)

// untrusted has the nodes get a trust file while they run an artifact that is not signed, and an update that somebody else has signed.
func (f *fleet) untrusted(id string) {
	f.t.Helper()
	f.enabled(id, true)
	key, before := trusttest.NewKey(f.t), f.files(id)
	for _, n := range f.nodes {
		write(f.t, filepath.Join(n.dir, "plugins.pub"), key.Public(f.t))
		write(f.t, n.trust(), []byte("repositories:\n- {name: "+f.registry+"/*, key: plugins.pub}\n"))
	}
	f.eachNode("says that what it has is not signed", func(n *v1alpha1.PluginNode) bool {
		next := n.Plugins[0].Next
		return n.Trust == v1alpha1.TrustEnforced && next != nil && next.State == v1alpha1.NextRefused && strings.Contains(next.Message, "no signature")
	})
	if now := f.files(id); now != before {
		f.t.Errorf("with a trust file the nodes had\n%s\nand have\n%s", before, now)
	}
	f.s.Must(http.MethodPatch, group+"/nodeplugins/"+id, `{"spec": {"disabled": true}}`, nil)
	f.enabled(id, false)
	f.sign("quota", key)
	f.s.Must(http.MethodPatch, group+"/nodeplugins/"+id, `{"spec": {"disabled": false}}`, nil)
	f.enabled(id, true)

	f.push("forged", "noop")
	f.sign("forged", trusttest.NewKey(f.t))
	f.set(id, "forged", 1)
	f.rolledBack(id, "forged", "quota", 0)
	if e := f.get(id).Status.Examples; len(e) == 0 || e[0].Reason != "Refused" || !strings.Contains(e[0].Message, "its signature does not count") {
		f.t.Errorf("the examples of an artifact that somebody else has signed are %+v", e)
	}
	for _, n := range f.nodes {
		if err := os.Remove(n.trust()); err != nil {
			f.t.Fatal(err)
		}
	}
	f.eachNode("says that it has no trust file", func(n *v1alpha1.PluginNode) bool { return n.Trust == v1alpha1.TrustNone })
}

func write(t *testing.T, file string, content []byte) {
	t.Helper()
	if err := regular.Replace(file, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// eachNode waits until something is true of each PluginNode.
func (f *fleet) eachNode(what string, is func(*v1alpha1.PluginNode) bool) {
	f.t.Helper()
	testcluster.Eventually(f.t, "each node "+what, func() error {
		for _, node := range f.nodes {
			n := new(v1alpha1.PluginNode)
			f.s.Must(http.MethodGet, group+"/pluginnodes/"+node.name, "", n)
			if !is(n) {
				return fmt.Errorf("%s says %+v", node.name, n)
			}
		}
		return nil
	})
}

// enabled waits until a plugin is on or off on all nodes.
func (f *fleet) enabled(id string, want bool) {
	f.t.Helper()
	testcluster.Eventually(f.t, fmt.Sprintf("the plugin is enabled: %v", want), func() error {
		for _, n := range f.nodes {
			if digest, enabled := n.has(f.t, id); digest != f.digests["quota"] || enabled != want {
				return fmt.Errorf("on %s it has the digest %q, and enabled is %v", n.name, digest, enabled)
			}
		}
		return nil
	})
}

func (f *fleet) sign(module string, key trusttest.Key) {
	f.t.Helper()
	_, artifact, err := oci.Repository(f.artifacts[module])
	if err != nil {
		f.t.Fatal(err)
	}
	trusttest.Attach(f.t, f.artifacts[module], key.Sign(f.t, trusttest.Statement(artifact, oci.PredicateType)))
}
