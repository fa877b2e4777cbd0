package cluster

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/fleet/internal/testcluster"
)

// testRootPlugins has somebody write plugins who is not in the group that may give them the rights of root.
func testRootPlugins(t *testing.T, s *testcluster.Server) {
	plugin := func(digest, settings string) string {
		return `{"apiVersion": "fleet.wasmproxy.io/v1alpha1", "kind": "NodePlugin", "metadata": {"name": "50-strong"},
			"spec": {"artifact": "r.example/p@sha256:` + digest + `", "nodeSelector": {"matchLabels": {"pool": "none"}}, "settings": ` + settings + `}}`
	}
	const fail, all, one = `{"failure-policy": "Fail"}`, group + "/nodeplugins", group + "/nodeplugins/50-strong"
	s.Apply("fleet-root/policy.yaml")
	testcluster.Eventually(t, "the policy of strong plugins is active", func() error {
		a, err := s.Call(http.MethodPost, all+"?dryRun=All", editorToken, []byte(plugin(someDigest, fail)))
		if err == nil && a.Code < 400 {
			err = fmt.Errorf("anybody may set the policy Fail")
		}
		return err
	})
	const refused = "only the group wasmproxy-plugin-admins may write a NodePlugin with failure-policy Fail, or with a grant of mounts, devices"
	other := strings.Repeat("1", 64)
	for _, test := range []struct {
		name, token, method, path, body, says string
	}{
		{"a plugin", editorToken, "POST", all + "?dryRun=All", plugin(someDigest, `{"grant": ["update.others", {"env": ["A"]}]}`), ""},
		{"a grant", editorToken, "POST", all, plugin(someDigest, `{"grant": ["env", "args"]}`), refused},
		{"a grant that is bound", editorToken, "POST", all, plugin(someDigest, `{"grant": [{"mounts": ["/opt"]}]}`), refused},
		{"the policy Fail", editorToken, "POST", all, plugin(someDigest, fail), refused},
		{"the same by the group", adminToken, "POST", all, plugin(someDigest, fail), ""},
		{"other code of such a plugin", editorToken, "PATCH", one, `{"spec": {"artifact": "r.example/p@sha256:` + other + `"}}`, refused},
		{"other nodes of such a plugin", editorToken, "PATCH", one, `{"spec": {"nodeSelector": null}}`, refused},
		{"another setting of such a plugin", editorToken, "PATCH", one, `{"spec": {"settings": {"timeout": "1s"}}}`, refused},
		{"a pause of its rollout", editorToken, "PATCH", one, `{"spec": {"rollout": {"paused": true}}}`, ""},
		{"its finalizer", editorToken, "PATCH", one, `{"metadata": {"finalizers": ["fleet.wasmproxy.io/nodes"]}}`, ""},
		{"other code by the group", adminToken, "PATCH", one, `{"spec": {"artifact": "r.example/p@sha256:` + other + `"}}`, ""},
		{"its end", editorToken, "DELETE", one, "", ""},
		{"its finalizer, in the end", editorToken, "PATCH", one, `{"metadata": {"finalizers": null}}`, ""},
	} {
		a, err := s.Call(test.method, test.path, test.token, []byte(test.body))
		if err != nil || (a.Code >= 400) != (test.says != "") || !strings.Contains(string(a.Body), test.says) {
			t.Errorf("%s: %v: %d, not with %q: %s", test.name, err, a.Code, test.says, a.Body)
		}
	}
}
