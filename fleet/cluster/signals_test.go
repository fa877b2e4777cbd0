package cluster

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"
	"github.com/wasmproxy/wasmproxy/fleet/internal/testcluster"
	"github.com/wasmproxy/wasmproxy/fleet/plan"
	"github.com/wasmproxy/wasmproxy/runtime/admin"
)

// signals are bad versions that nodes, or the controller, tell by other signs than lifeOfAPlugin has. The sign of cgroup files, which
// are not there, is tested with the proxy alone.
func (f *fleet) signals(id string) {
	f.t.Helper()
	f.set(id, "fickle", 60) // one call in ten fails, never several in a row
	f.rolledBack(id, "fickle", "quota", 1)
	f.example(id, "Failing", " calls failed; ")

	f.set(id, "noop", 60)
	canary := f.onProbation(id, "noop")
	f.ready(canary, "False", time.Now())
	f.example(id, "NotReady", "became NotReady before it had proved the update")
	f.ready(canary, "True", time.Now())
	f.rolledBack(id, "noop", "quota", 1)

	f.set(id, "counter", 60)
	f.crash(id, "counter", f.onProbation(id, "counter"))
	f.rolledBack(id, "counter", "quota", 1)
	f.example(id, "Failing", "without an orderly stop")

	f.silent(id)
	f.rolledBack(id, "noop", "quota", 0)
}

// silent has the agents end when they have fetched an update: its canary is ready, and says nothing. So that the test need not wait, the
// step is then said to have begun five minutes ago, and the nodes to be ready since then.
func (f *fleet) silent(id string) {
	f.t.Helper()
	f.fetched(id, "noop")
	for _, n := range f.nodes {
		n.stopAgent()
	}
	f.s.Must(http.MethodPatch, group+"/nodeplugins/"+id, `{"spec": {"rollout": {"paused": false}}}`, nil)
	testcluster.Eventually(f.t, "there is a canary", func() error {
		if u := f.get(id).Status.Update; u == nil || u.Step != "Canary" {
			return fmt.Errorf("the update is %+v", u)
		}
		return nil
	})
	since := time.Now().Add(-plan.Silence)
	for _, n := range f.nodes {
		f.ready(n, "True", since)
	}
	begun := since.UTC().Format(time.RFC3339)
	f.s.Must(http.MethodPatch, group+"/nodeplugins/"+id+"/status", `{"status": {"update": {"stepSince": "`+begun+`"}}}`, nil)
	f.example(id, "Silent", "has not said that it has")
	for _, n := range f.nodes {
		n.stopAgent = n.agent()
	}
}

// example waits until the status says by a node that there is a bad version, and why.
func (f *fleet) example(id, reason, message string) {
	f.t.Helper()
	testcluster.Eventually(f.t, "the status has an example of "+reason, func() error {
		if e := f.get(id).Status.Examples; len(e) != 1 || e[0].Reason != reason || !strings.Contains(e[0].Message, message) {
			return fmt.Errorf("the examples are %+v", e)
		}
		return nil
	})
}

// onProbation waits until the canary says that a module is on probation, and returns it.
func (f *fleet) onProbation(id, module string) (canary *node) {
	f.t.Helper()
	testcluster.Eventually(f.t, module+" is on probation", func() error {
		for _, n := range f.nodes {
			if digest, _ := n.has(f.t, id); digest != f.digests[module] {
				continue
			}
			if r := f.report(n, id); r.Phase == v1alpha1.Probation {
				canary = n
				return nil
			}
		}
		return errors.New("no node says so")
	})
	return canary
}

// crash kills the proxy of a node until that goes back from a module to the version before.
func (f *fleet) crash(id, module string, n *node) {
	f.t.Helper()
	for range 5 {
		n.proxy.kill()
		n.proxy.start()
		testcluster.Eventually(f.t, "the proxy answers", func() error {
			_, err := n.kubelet.Version(f.t.Context(), &runtimeapi.VersionRequest{})
			return err
		})
		all, err := admin.Client{Socket: n.status(), StatusOnly: true}.Plugins(f.t.Context())
		if err != nil {
			f.t.Fatal(err)
		}
		for _, p := range all.Plugins {
			if p.ID == id && p.Active != nil && p.Active.Digest != f.digests[module] {
				return
			}
		}
	}
	f.t.Fatalf("%s has not gone back after five kills of its proxy", n.name)
}
