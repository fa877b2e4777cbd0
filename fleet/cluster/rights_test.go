package cluster

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/fleet/internal/testcluster"
)

const (
	adminToken  = testcluster.AdminToken
	editorToken = testcluster.EditorToken

	group     = "/apis/fleet.wasmproxy.io/v1alpha1"
	revisions = "/apis/apps/v1/namespaces/wasmproxy/controllerrevisions"
	policies  = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
)

// someDigest is that of no artifact.
var someDigest = strings.Repeat("0", 64)

// testRefusals has the API server refuse what a user got wrong.
func testRefusals(t *testing.T, s *testcluster.Server) {
	for _, test := range []struct{ name, plugin, spec, want string }{
		{"a tag alone", "50-qos", `"artifact": "r.example/qos:v1"`, "must name a digest"},
		{"a name without a number", "qos", `"artifact": "r.example/qos@sha256:%s"`, "the plugin's id on nodes"},
		{"a setting that is spelled wrong", "50-qos", `"artifact": "r.example/qos@sha256:%s", "settings": {"failure-polcy": "Fail"}`, `unknown field \"spec.settings.failure-polcy\"`},
		{"a policy that there is not", "50-qos", `"artifact": "r.example/qos@sha256:%s", "settings": {"failure-policy": "Panic"}`, "Unsupported value"},
		{"a key of match that there is not", "50-qos", `"artifact": "r.example/qos@sha256:%s", "settings": {"match": {"namespace": ["a"]}}`, `unknown field \"spec.settings.match.namespace\"`},
		{"steps that fall", "50-qos", `"artifact": "r.example/qos@sha256:%s", "rollout": {"steps": [50, 10, 100]}`, "percents must rise"},
		{"steps that end early", "50-qos", `"artifact": "r.example/qos@sha256:%s", "rollout": {"steps": [1, 50]}`, "percents must rise"},
		{"a percent that is none", "50-qos", `"artifact": "r.example/qos@sha256:%s", "rollout": {"maxFailing": "2 nodes"}`, "must be a number of nodes, or a percent"},
	} {
		spec := test.spec
		if strings.Contains(spec, "%s") {
			spec = fmt.Sprintf(spec, someDigest)
		}
		body := `{"apiVersion": "fleet.wasmproxy.io/v1alpha1", "kind": "NodePlugin", "metadata": {"name": "` + test.plugin + `"}, "spec": {` + spec + `}}`
		a, err := s.Call(http.MethodPost, group+"/nodeplugins?fieldValidation=Strict", adminToken, []byte(body)) // as kubectl asks
		if err != nil || a.Code < 400 || !strings.Contains(string(a.Body), test.want) {
			t.Errorf("%s: %v: %d %s", test.name, err, a.Code, a.Body)
		}
	}
}

// testRights tries the token of the agent of one node on all that is not its own.
func testRights(t *testing.T, s *testcluster.Server) {
	const own = `{"apiVersion": "fleet.wasmproxy.io/v1alpha1", "kind": "PluginNode", "metadata": {"name": "%s"%s}}`
	pluginNode := func(name, more string) string { return fmt.Sprintf(own, name, more) }
	owner := func(kind, name string) string {
		return `, "ownerReferences": [{"apiVersion": "v1", "kind": "` + kind + `", "name": "` + name + `", "uid": "u"}]`
	}
	const plugin = `{"apiVersion": "fleet.wasmproxy.io/v1alpha1", "kind": "NodePlugin", "metadata": {"name": "50-x"}, "spec": {"artifact": "r/p@sha256:`
	const others = `{"key": "a", "effect": "NoSchedule"}`
	const revision = `{"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": "r1"}, "revision": 1, "data": {}}`
	makeNode(t, s, "lone", `, "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "wasmproxy.io/plugins", "effect": "NoSchedule"}]}`)
	s.Must(http.MethodPost, revisions, revision, nil)
	agent, loose, controller := s.Token("wasmproxy-agent", "agent-lone"), s.Token("wasmproxy-agent", ""), s.Token("wasmproxy-controller", "")
	testcluster.Eventually(t, "the policy is active", func() error { // which takes the API server a moment
		a, err := s.Call(http.MethodPost, group+"/pluginnodes?dryRun=All", adminToken, []byte(pluginNode("lone", "")))
		if err == nil && a.Code < 400 {
			err = fmt.Errorf("a token of no pod has written a PluginNode")
		}
		return err
	})
	testcluster.Eventually(t, "the policy of taints is active", func() error {
		a, err := s.Call(http.MethodPatch, "/api/v1/nodes/lone?dryRun=All", controller, []byte(`{"spec": {"unschedulable": true}}`))
		if err == nil && a.Code < 400 {
			err = fmt.Errorf("the controller may cordon a node")
		}
		return err
	})
	for _, test := range []struct {
		name, token, method, path, body string
		want                            int
		says                            string
	}{
		{"its own PluginNode", agent, "POST", group + "/pluginnodes", pluginNode("lone", owner("Node", "lone")), 201, ""},
		{"the plugins", agent, "GET", group + "/nodeplugins", "", 200, ""},
		{"a revision", agent, "GET", revisions + "/r1", "", 200, ""},
		{"its node", agent, "GET", "/api/v1/nodes/lone", "", 200, ""},

		{"a PluginNode of another node", agent, "POST", group + "/pluginnodes", pluginNode("other", ""), 422, "of its own node"},
		{"a PluginNode with a finalizer", agent, "PUT", group + "/pluginnodes/lone", pluginNode("lone", `, "finalizers": ["a.example/b"]`), 422, "no finalizers"},
		{"a PluginNode of another owner", agent, "PUT", group + "/pluginnodes/lone", pluginNode("lone", owner("Node", "other")), 422, "the only owner"},
		{"a PluginNode of another kind's owner", agent, "PUT", group + "/pluginnodes/lone", pluginNode("lone", owner("Pod", "lone")), 422, "the only owner"},
		{"a patch of its PluginNode", agent, "PATCH", group + "/pluginnodes/lone", "{}", 403, "cannot patch"},
		{"deleting its PluginNode", agent, "DELETE", group + "/pluginnodes/lone", "", 403, "cannot delete"},
		{"all PluginNodes", agent, "GET", group + "/pluginnodes", "", 403, "cannot list"},
		{"a NodePlugin", agent, "POST", group + "/nodeplugins", plugin + someDigest + `"}}`, 403, "cannot create"},
		{"a NodePlugin's spec", agent, "PATCH", group + "/nodeplugins/50-x", "{}", 403, "cannot patch"},
		{"a NodePlugin's status", agent, "PATCH", group + "/nodeplugins/50-x/status", "{}", 403, "cannot patch"},
		{"deleting a NodePlugin", agent, "DELETE", group + "/nodeplugins/50-x", "", 403, "cannot delete"},
		{"a new revision", agent, "POST", revisions, revision, 403, "cannot create"},
		{"another content of a revision", agent, "PATCH", revisions + "/r1", `{"data": {"a": 1}}`, 403, "cannot patch"},
		{"deleting a revision", agent, "DELETE", revisions + "/r1", "", 403, "cannot delete"},
		{"all revisions", agent, "GET", revisions, "", 403, "cannot list"},
		{"revisions of another namespace", agent, "GET", "/apis/apps/v1/namespaces/kube-system/controllerrevisions/r1", "", 403, "cannot get"},
		{"all nodes", agent, "GET", "/api/v1/nodes", "", 403, "cannot list"},
		{"its node's labels", agent, "PATCH", "/api/v1/nodes/lone", "{}", 403, "cannot patch"},
		{"its node's status", agent, "PATCH", "/api/v1/nodes/lone/status", "{}", 403, "cannot patch"},
		{"secrets", agent, "GET", "/api/v1/namespaces/wasmproxy/secrets", "", 403, "cannot list"},
		{"a secret", agent, "GET", "/api/v1/namespaces/wasmproxy/secrets/pull", "", 403, "cannot get"},
		{"config maps", agent, "GET", "/api/v1/configmaps", "", 403, "cannot list"},
		{"pods", agent, "GET", "/api/v1/pods", "", 403, "cannot list"},
		{"a pod", agent, "POST", "/api/v1/namespaces/wasmproxy/pods", `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}}`, 403, "cannot create"},
		{"a token", agent, "POST", "/api/v1/namespaces/wasmproxy/serviceaccounts/wasmproxy-controller/token", `{}`, 403, "cannot create"},
		{"the controller's Lease", agent, "GET", "/apis/coordination.k8s.io/v1/namespaces/wasmproxy/leases/wasmproxy-fleet-controller", "", 403, "cannot get"},
		{"the policy", agent, "DELETE", policies + "/wasmproxy-agent-own-node", "", 403, "cannot delete"},
		{"the kind", agent, "DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/nodeplugins.fleet.wasmproxy.io", "", 403, "cannot delete"},
		{"a role of more rights", agent, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", `{}`, 403, "cannot create"},

		{"a taint of others by the controller", controller, "PATCH", "/api/v1/nodes/lone", `{"spec": {"taints": []}}`, 422, "may only remove wasmproxy.io/plugins"},
		{"a taint more by the controller", controller, "PATCH", "/api/v1/nodes/lone", `{"spec": {"taints": [` + others + `, {"key": "b", "effect": "NoSchedule"}]}}`, 422, "may only remove wasmproxy.io/plugins"},
		{"a cordon by the controller", controller, "PATCH", "/api/v1/nodes/lone", `{"spec": {"unschedulable": true, "taints": [` + others + `]}}`, 422, "may only change the taints"},
		{"a label of a node by the controller", controller, "PATCH", "/api/v1/nodes/lone", `{"metadata": {"labels": {"a": "b"}}, "spec": {"taints": [` + others + `]}}`, 422, "may change nothing"},
		{"a node's status by the controller", controller, "PATCH", "/api/v1/nodes/lone/status", `{}`, 403, "cannot patch"},
		{"a node by the controller", controller, "DELETE", "/api/v1/nodes/lone", "", 403, "cannot delete"},
		{"the taint of new nodes by the controller", controller, "PATCH", "/api/v1/nodes/lone", `{"spec": {"taints": [` + others + `]}}`, 200, ""},

		{"a PluginNode by a token of no pod", loose, "PUT", group + "/pluginnodes/lone", pluginNode("lone", ""), 422, "the token names no node"},
		{"a PluginNode by the administrator", adminToken, "PUT", group + "/pluginnodes/lone", pluginNode("lone", ""), 422, "the token names no node"},
		{"another content of a revision by the administrator", adminToken, "PATCH", revisions + "/r1", `{"data": {"a": 1}}`, 422, "immutable"},
	} {
		body := []byte(test.body)
		if test.method == "PUT" {
			body = current(t, s, test.path, test.body)
		}
		a, err := s.Call(test.method, test.path, test.token, body)
		if err != nil || a.Code != test.want || !strings.Contains(string(a.Body), test.says) {
			t.Errorf("%s: %v: %d, not %d with %q: %s", test.name, err, a.Code, test.want, test.says, a.Body)
		}
	}
	s.Must(http.MethodDelete, group+"/pluginnodes/lone", "", nil)
}

// current gives an object the resource version that it has.
func current(t *testing.T, s *testcluster.Server, path, body string) []byte {
	t.Helper()
	var has struct {
		Metadata struct{ ResourceVersion string }
	}
	s.Must(http.MethodGet, path, "", &has)
	return []byte(strings.Replace(body, `"metadata": {`, `"metadata": {"resourceVersion": "`+has.Metadata.ResourceVersion+`", `, 1))
}

// testPriority has the API server say of a request of an agent, and of one of the controller, to which flow it belongs.
func testPriority(t *testing.T, s *testcluster.Server) {
	var schema struct{ Metadata struct{ UID string } }
	s.Must(http.MethodGet, "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/wasmproxy-agents", "", &schema)
	flow := func(token string) string {
		a, err := s.Call(http.MethodGet, group+"/nodeplugins", token, nil)
		if err != nil || a.Code != http.StatusOK {
			t.Fatalf("listing NodePlugins: %v: %d", err, a.Code)
		}
		return a.Header.Get("X-Kubernetes-Pf-Flowschema-Uid")
	}
	testcluster.Eventually(t, "agents have a flow of their own", func() error {
		if has := flow(s.Token("wasmproxy-agent", "")); has == "" || has != schema.Metadata.UID {
			return fmt.Errorf("a request of an agent is in the flow %q, not %q", has, schema.Metadata.UID)
		}
		return nil
	})
	if has := flow(s.Token("wasmproxy-controller", "")); has == schema.Metadata.UID {
		t.Error("the controller is in the flow of agents")
	}
}
