package daemon_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/wasmproxy/wasmproxy/runtime/admin"
	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/daemon"
)

// refusesOnly runs a pod in namespace test, which a plugin refuses with words in the error, and one in kube-system,
// which runs with its container.
func (n *node) refusesOnly(name string, words ...string) {
	n.t.Helper()
	if err := n.runLabelled("test", name, ""); status.Code(err) == codes.OK || !containsAll(err.Error(), words) {
		n.t.Errorf("in another namespace: %v, want %q", err, words)
	}
	if err := n.runLabelled("kube-system", name, ""); err != nil {
		n.t.Errorf("in the exempt namespace: %v", err)
	}
}

// No guest of any kind keeps a pod of an exempt namespace from running, also with an open breaker. Log, audit log, metric
// and status tell of each call.
func TestExemptNamespace(t *testing.T) {
	const fail, ignore = `"failure-policy": "Fail"`, `"failure-policy": "Ignore"`
	for _, guest := range []struct{ name, policy, says string }{
		{"fail", fail, "tier is missing"},
		{"trap", fail, "unreachable"},
		{"loop", fail, "PreRunPodSandbox"}, // fuel or time
		{"reject", ignore, "not on this node"},
	} {
		t.Run(guest.name, func(t *testing.T) {
			n := newNode(t)
			n.config.Exempt = config.List{"kube-system"}
			n.config.AdminSocket, n.config.AuditLog = filepath.Join(n.dir, "admin.sock"), filepath.Join(n.dir, "audit.json")
			n.put("10-quota.wasm", "quota")
			n.put("20-bad.wasm", guest.name)
			n.put("20-bad.json", `{`+guest.policy+`}`)
			n.start(daemon.Run)
			n.awaitActive("10-quota", "20-bad")
			n.awaitSocket()
			const pods = 4 // its breaker opens meanwhile, if it fails
			for i := range pods {
				n.refusesOnly(podName(i), "plugin 20-bad: PreRunPodSandbox")
				n.await("call refused", "namespace=test", "pod="+podName(i), guest.says)
				for _, hook := range []string{"PreRunPodSandbox", "PreCreateContainer"} {
					n.await("level=WARN", "the namespace is exempt", "plugin=20-bad", "hook="+hook, "namespace=kube-system", "pod="+podName(i))
				}
			}
			n.awaitMetric(fmt.Sprintf(`wasmproxy_calls_exempted_total{plugin="20-bad"} %d`, 2*pods))
			n.awaitMetric(`wasmproxy_calls_exempted_total{plugin="10-quota"} 0`)
			n.awaitMetric(fmt.Sprintf(`wasmproxy_calls_refused_total{hook="PreRunPodSandbox",plugin="20-bad"} %d`, pods))
			all, err := admin.Client{Socket: n.config.AdminSocket}.Plugins(t.Context())
			n.must(err)
			if p := all.Plugins[1]; p.ID != "20-bad" || p.Exempted != 2*pods || all.Plugins[0].Exempted != 0 {
				t.Errorf("status has %+v", all.Plugins)
			}
			n.end() // which writes the audit log
			text, err := os.ReadFile(n.config.AuditLog)
			n.must(err)
			if got := strings.Count(string(text), `"event":"exempted"`); got != 2*pods {
				t.Errorf("%d lines of the audit log have exempted, want %d:\n%s", got, 2*pods, text)
			}
			for _, c := range n.runtime.RuntimeService.Containers {
				if c.Annotations["example.com/quota"] != "200000" {
					t.Error("the changes of another plugin are lost")
				}
			}
		})
	}
}

// The same holds while a plugin is not loaded, and for a hook server that is away, or that refuses.
func TestExemptNamespaceOfWhatDoesNotRun(t *testing.T) {
	n := newNode(t)
	n.config.Exempt = config.List{"kube-system"}
	n.put("10-quota.wasm", "quota")
	n.lose("20-lost")
	n.register("away.json", `{"remote-endpoint": "/nobody/listens.sock", "failure-policy": "Fail", "runtime-hooks": ["PreRunPodSandbox", "PreCreateContainer", "PreStartContainer"]}`)
	n.start(daemon.Run)
	n.await("plugins active", "10-quota", "away", "refusing=[20-lost]")
	n.refusesOnly("both", "plugin 20-lost: PreRunPodSandbox", "plugin is not loaded")
	for _, plugin := range []string{"20-lost", "away"} {
		n.await("the namespace is exempt", "plugin="+plugin, "hook=PreRunPodSandbox", "namespace=kube-system")
	}
	n.remove("20-lost.json")
	n.remove("20-lost.wasm")
	n.awaitActive("10-quota", "away")
	n.refusesOnly("away", "plugin away: PreRunPodSandbox")
	for _, hook := range []string{"PreRunPodSandbox", "PreCreateContainer", "PreStartContainer"} {
		n.await("the namespace is exempt", "plugin=away", "hook="+hook, "namespace=kube-system")
	}
}

// In mode docker callers choose the namespace of a container by its labels, so policy holds in all.
func TestNoNamespaceIsExemptInDocker(t *testing.T) {
	n := newNode(t)
	n.config.Mode, n.config.Backend, n.config.Exempt = config.ModeDocker, filepath.Join(n.dir, "docker.sock"), config.List{"kube-system"}
	socket, err := net.Listen("unix", n.config.Backend)
	n.must(err)
	docker := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := "{}"
		if strings.HasSuffix(r.URL.Path, "/containers/json") {
			answer = "[]"
		}
		_, _ = io.WriteString(w, answer)
	})}
	go docker.Serve(socket)
	defer docker.Close()
	n.put("20-bad.wasm", "fail")
	n.put("20-bad.json", `{"failure-policy": "Fail"}`)
	n.start(daemon.Run)
	n.awaitActive("20-bad")
	client := http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", n.config.Listen)
	}}}
	resp, err := client.Post("http://docker/v1.41/containers/create?name=k8s_POD_agent_kube-system_u1_0", "application/json", strings.NewReader(
		`{"Image": "pause", "Labels": {"io.kubernetes.docker.type": "podsandbox", "io.kubernetes.pod.name": "agent", "io.kubernetes.pod.namespace": "kube-system", "io.kubernetes.pod.uid": "u1"}}`))
	n.must(err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	n.must(err)
	if resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(text), "plugin 20-bad: PreRunPodSandbox") {
		t.Errorf("answered %d %s", resp.StatusCode, text)
	}
	n.await("call refused", "namespace=kube-system", "plugin=20-bad")
}
