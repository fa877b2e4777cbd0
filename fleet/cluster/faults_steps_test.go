package cluster

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"
	"github.com/wasmproxy/wasmproxy/fleet/internal/testcluster"
)

// revision is one that no trial has had before, and tells the watch.
func (p *parts) revision(module, config string) revision {
	p.t.Helper()
	r := revision{module: module, config: fmt.Sprintf(`{"trial":%q}`, config)}
	var err error
	r.name, err = v1alpha1.RevisionName(pluginID, v1alpha1.RevisionSpec{
		Artifact: p.artifacts[module], Settings: &v1alpha1.Settings{Config: json.RawMessage(r.config)},
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.watch.name(p.digests[module], r.config, r.name)
	return r
}

// want has a user give the plugin a revision, and change its rollout.
func (p *parts) want(r revision, rollout string) {
	p.t.Helper()
	p.s.Must(http.MethodPatch, group+"/nodeplugins/"+pluginID, fmt.Sprintf(
		`{"spec": {"artifact": %q, "settings": {"config": %s}, "rollout": %s}}`, p.artifacts[r.module], r.config, rollout), nil)
}

// install makes the plugin, and waits until all nodes have it.
func (p *parts) install(config string) {
	p.t.Helper()
	r := p.revision("noop", config)
	p.s.Must(http.MethodPost, group+"/nodeplugins", fmt.Sprintf(
		`{"apiVersion": "fleet.wasmproxy.io/v1alpha1", "kind": "NodePlugin", "metadata": {"name": %q}, "spec": {"artifact": %q,
		"settings": {"config": %s}, "rollout": {"steps": [34, 100], "bakeSeconds": 1}}}`, pluginID, p.artifacts[r.module], r.config), nil)
	p.complete(r)
}

// complete waits until all nodes have a revision that is stable, and their proxies run it.
func (p *parts) complete(r revision) {
	p.t.Helper()
	testcluster.Within(p.t, 90*time.Second, r.name+" is on all nodes", func() error {
		o := p.get(pluginID)
		if s := o.Status; s.ObservedGeneration != o.Generation || s.Stable.Revision != r.name || !meta.IsStatusConditionTrue(s.Conditions, v1alpha1.Ready) {
			return fmt.Errorf("the status is %+v", s)
		}
		return p.allHave(o, r)
	})
	p.stable = r
}

// allHave waits for the nodes after the controller has decided.
func (p *parts) allHave(o *v1alpha1.NodePlugin, r revision) error {
	if healthy := int(o.Status.Nodes.Healthy); healthy != len(p.nodes) {
		return fmt.Errorf("%d nodes are healthy", healthy)
	}
	return p.watch.have(p.nodes, r.name)
}

// wentBack waits until all nodes have the stable revision again, and takes the bad one out of spec.
func (p *parts) wentBack(x *trial) {
	p.t.Helper()
	testcluster.Eventually(p.t, x.revision.name+" is rolled back", func() error {
		o := p.get(pluginID)
		if s := o.Status; s.RolledBack != x.revision.name || !meta.IsStatusConditionTrue(s.Conditions, v1alpha1.Stalled) {
			return fmt.Errorf("the status is %+v", s)
		}
		return p.allHave(o, p.stable)
	})
	p.want(p.stable, quick)
	p.isBack(x)
}

func (p *parts) isBack(*trial) { p.complete(p.stable) }

const quick, long = `{"onFailure": "RollBack", "bakeSeconds": 1}`, `{"onFailure": "RollBack", "bakeSeconds": 60}`

// update has another good version come to the nodes.
func update(p *parts, x *trial) {
	x.revision = p.revision(map[string]string{"noop": "quota", "quota": "noop"}[p.stable.module], x.title())
	p.want(x.revision, quick)
}

func (p *parts) updated(x *trial) { p.complete(x.revision) }

func downloading(p *parts, x *trial) {
	p.gate.hold()
	update(p, x)
}

func (p *parts) allDownload(*trial) error {
	if n := p.gate.waiting(); n < len(p.nodes) {
		return fmt.Errorf("%d nodes download", n)
	}
	return nil
}

// bad has a version come to the nodes that none of them should keep.
func bad(module, rollout string) func(*parts, *trial) {
	return func(p *parts, x *trial) {
		p.gate.setLying(x.moment.name == "lying")
		x.revision = p.revision(module, x.title())
		p.want(x.revision, rollout)
	}
}

// staysHalted holds that the rollout does not go on by itself: the controller has looked at it again, for a change that is no other
// revision. Then there is a good version.
func (p *parts) staysHalted(x *trial) {
	p.t.Helper()
	p.want(x.revision, `{"bakeSeconds": 61}`)
	testcluster.Eventually(p.t, "the controller has looked at what is halted", func() error {
		o := p.get(pluginID)
		if u := o.Status.Update; o.Status.ObservedGeneration != o.Generation || u == nil || halted(o.Status, x) != nil {
			return fmt.Errorf("the status is %+v", o.Status)
		}
		return nil
	})
	x.revision = p.revision(p.stable.module, x.title()+" mended")
	p.want(x.revision, quick)
	p.complete(x.revision)
}

// takeBack has a user take an update back when the canary has it.
func takeBack(p *parts, x *trial) {
	update(p, x)
	testcluster.Eventually(p.t, "the canary has the update", func() error { return p.oneHas(x) })
	p.want(p.stable, quick)
}

func disable(p *parts, _ *trial) {
	p.s.Must(http.MethodPatch, group+"/nodeplugins/"+pluginID, `{"spec": {"disabled": true}}`, nil)
}

// off is how many nodes have the plugin switched off.
func (p *parts) off() (n int) {
	for _, node := range p.nodes {
		if digest, enabled := node.has(p.t, pluginID); digest != "" && !enabled {
			n++
		}
	}
	return n
}

func (p *parts) oneIsOff(*trial) error {
	if p.off() == 0 {
		return errors.New("it is on everywhere")
	}
	return nil
}

func (p *parts) enabledAgain(x *trial) {
	p.t.Helper()
	testcluster.Eventually(p.t, "the plugin is off on all nodes", func() error {
		if n := p.off(); n != len(p.nodes) {
			return fmt.Errorf("it is off on %d", n)
		}
		return nil
	})
	p.s.Must(http.MethodPatch, group+"/nodeplugins/"+pluginID, `{"spec": {"disabled": false}}`, nil)
	testcluster.Eventually(p.t, "the plugin is on on all nodes", func() error {
		if n := p.off(); n != 0 {
			return fmt.Errorf("it is off on %d", n)
		}
		return nil
	})
	p.isBack(x)
}

func remove(p *parts, _ *trial) {
	p.s.Must(http.MethodDelete, group+"/nodeplugins/"+pluginID, "", nil)
}

func (p *parts) oneHasNone(*trial) error { return p.one(v1alpha1.NoRevision) }

func (p *parts) madeAgain(x *trial) {
	p.t.Helper()
	testcluster.Eventually(p.t, "the plugin is removed", func() error {
		a, err := p.s.Call(http.MethodGet, group+"/nodeplugins/"+pluginID, adminToken, nil)
		if err == nil && a.Code != http.StatusNotFound {
			err = fmt.Errorf("the object is there: %s", a.Body)
		}
		return errors.Join(err, p.watch.haveFiles(p.nodes, v1alpha1.NoRevision))
	})
	p.install(x.title() + " made again")
}

// is is the moment when the status says something.
func is(says func(v1alpha1.NodePluginStatus, *trial) error) func(*parts, *trial) error {
	return func(p *parts, x *trial) error {
		o := p.get(pluginID)
		if o.Status.ObservedGeneration != o.Generation {
			return errors.New("the controller has not seen it")
		}
		return says(o.Status, x)
	}
}

// at is a step of the update.
func at(step string) func(v1alpha1.NodePluginStatus, *trial) error {
	return func(s v1alpha1.NodePluginStatus, x *trial) error {
		if u := s.Update; u == nil || u.Revision != x.revision.name || u.Step != step {
			return fmt.Errorf("the status is %+v", s)
		}
		return nil
	}
}

func halted(s v1alpha1.NodePluginStatus, x *trial) error {
	if u := s.Update; u == nil || u.Revision != x.revision.name || u.Halted == "" {
		return fmt.Errorf("the status is %+v", s)
	}
	return nil
}

func rolledBack(s v1alpha1.NodePluginStatus, x *trial) error {
	if s.RolledBack != x.revision.name {
		return fmt.Errorf("the status is %+v", s)
	}
	return nil
}

func noUpdate(s v1alpha1.NodePluginStatus, _ *trial) error {
	if s.Update != nil {
		return fmt.Errorf("the status is %+v", s)
	}
	return nil
}

// oneHas is the moment when the first node has renamed the update into its place.
func (p *parts) oneHas(x *trial) error { return p.one(x.revision.name) }

// one reports whether one node at least has a revision.
func (p *parts) one(revision string) error {
	for _, n := range p.nodes {
		if p.watch.readFiles(n) == revision {
			return nil
		}
	}
	return errors.New("no node has it")
}

// phases is the moment when nodes report all of these phases of the update.
func phases(all ...v1alpha1.Phase) func(*parts, *trial) error {
	return func(p *parts, x *trial) error {
		missing := slices.Clone(all)
		for _, r := range p.reports() {
			if r.Revision == x.revision.name {
				missing = slices.DeleteFunc(missing, func(phase v1alpha1.Phase) bool { return phase == r.Phase })
			}
		}
		if len(missing) > 0 {
			return fmt.Errorf("no node reports %s", missing)
		}
		return nil
	}
}

// oneRefuses is the moment when the first node says that it refuses the update.
func (p *parts) oneRefuses(x *trial) error {
	for _, r := range p.reports() {
		if r.Next != nil && r.Next.Revision == x.revision.name && r.Next.State == v1alpha1.NextRefused {
			return nil
		}
	}
	return errors.New("no node refuses it")
}

// reports are what the nodes say of the plugin.
func (p *parts) reports() (all []v1alpha1.PluginReport) {
	p.t.Helper()
	var list v1alpha1.PluginNodeList
	p.s.Must(http.MethodGet, group+"/pluginnodes", "", &list)
	for _, n := range list.Items {
		for _, r := range n.Plugins {
			if r.Name == pluginID {
				all = append(all, r)
			}
		}
	}
	return all
}

// checkModules holds that each node has modules that are signed, as they were signed, and nothing of a fetch that was killed.
func (p *parts) checkModules() {
	p.t.Helper()
	for _, n := range p.nodes {
		modules, _ := filepath.Glob(filepath.Join(n.plugins(), ".modules", "*"))
		for _, file := range modules {
			content, err := os.ReadFile(file)
			digest := fmt.Sprintf("%x", sha256.Sum256(content))
			signed := p.digests["noop"] == digest || p.digests["quota"] == digest || p.digests["fail"] == digest
			if err != nil || digest+".wasm" != filepath.Base(file) || !signed {
				p.t.Errorf("%s has %s with the digest %s (%v)", n.name, file, digest, err)
			}
		}
		all, _ := filepath.Glob(filepath.Join(n.plugins(), ".fleet", "*"))
		for _, file := range all {
			if name := filepath.Base(file); strings.HasPrefix(name, "next-") || strings.HasPrefix(name, "try-") {
				p.t.Errorf("%s has %s, of a fetch that was killed", n.name, file)
			}
		}
	}
}
