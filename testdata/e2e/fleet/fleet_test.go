package fleet_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/cgroupfs"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

const (
	steady = 3 // pods that run from before the first plugin until after the last one
	wave   = 2 // pods that start while something is true of the plugin
	meant  = 5 // pods for which a bad version is meant: so many faults in a row open its circuit breaker
)

// TestFleet takes a plugin through its life on a node whose pods run on, and on which others start at each stage.
func TestFleet(t *testing.T) {
	c := startCluster(t)
	c.deploy("steady", steady, nil)
	before := c.pods("steady", steady)
	waves := []string{"steady"}
	start := func(name string) {
		t.Helper()
		c.deploy(name, wave, nil)
		c.pods(name, wave)
		waves = append(waves, name)
	}

	c.want(first, `{"match": {"namespaces": ["default"]}}`, 1)
	start("during-install")
	c.plugin("is installed", complete)
	start("installed")
	c.want(second, `{"match": {"namespaces": ["default"]}}`, 1)
	start("during-update")
	c.plugin("is updated", complete)
	start("updated")
	c.expectQuota("updated", "200000")

	c.badVersion()
	c.badFile()
	start("gone-back")
	c.expectQuota("gone-back", "200000")
	c.bypass(start)
	c.remove()
	start("removed")
	c.expectQuota("removed", "-1")

	after := c.pods("steady", steady)
	for i := range before {
		if before[i].UID != after[i].UID {
			t.Errorf("the pod %s was replaced", before[i].Name)
		}
	}
	for _, name := range append(waves, "others", "meant", "odd") {
		c.expectNoRestart(name)
	}
	c.expectRefused()
}

// badVersion is one that fails, and refuses with that the pods that its match is for. The node goes back by itself, and they start.
func (c *cluster) badVersion() {
	c.t.Helper()
	c.want(bad, `{"failure-policy": "Fail", "match": {"namespaces": ["default"], "labels": {"app": "meant"}}}`, 600)
	c.awaitProbation("fail")
	c.deploy("others", wave, nil)
	c.pods("others", wave)
	c.deploy("meant", meant, nil)
	c.goesBack("its circuit breaker opened")
	c.pods("meant", meant)
	c.expectRefused()
	c.want(second, `{"failure-policy": null, "match": {"namespaces": ["default"], "labels": null}}`, 1)
	c.plugin("is as it was before", complete)
}

// badFile is a version that wants something of a cgroup file that the kernel does not take. Pods start, and the node goes back.
func (c *cluster) badFile() {
	c.t.Helper()
	c.want(setter, `{"grant": ["pod.limits"]}`, 600)
	c.awaitProbation("setter")
	c.deploy("odd", wave, map[string]string{"set.wasmproxy.io/main.file.cpuset.mems": "1000"})
	c.pods("odd", wave)
	c.goesBack("of its writes to cgroup files failed, and none did before")
	c.want(second, `{"grant": null}`, 1)
	c.plugin("is as it was before", complete)
}

// awaitProbation waits until the node has a module on probation, by the name in its manifest.
func (c *cluster) awaitProbation(name string) {
	c.t.Helper()
	node.Eventually(c.t, time.Minute, name+" is on probation", func() error {
		var all struct {
			Plugins []struct {
				Probation time.Time
				Active    *struct{ Name string }
			}
		}
		if err := c.proxy.Ask(c.t.Context(), &all, "status"); err != nil {
			return err
		}
		for _, p := range all.Plugins {
			if p.Active != nil && p.Active.Name == name && !p.Probation.IsZero() {
				return nil
			}
		}
		return fmt.Errorf("the plugins are %+v", all)
	})
}

// goesBack waits until a version is rolled back since the node has gone back by itself.
func (c *cluster) goesBack(why string) {
	c.t.Helper()
	c.plugin("is rolled back", func(p nodePlugin) bool {
		if p.Status.RolledBack == "" || p.Status.Nodes.Healthy != 1 || len(p.Status.Examples) != 1 {
			return false
		}
		return p.Status.Examples[0].Reason == "Failing" && strings.Contains(p.Status.Examples[0].Message, why)
	})
}

// bypass takes all plugins out of the way for a while.
func (c *cluster) bypass(start func(string)) {
	c.t.Helper()
	c.proxy.Bypass(c.t)
	c.plugin("is bypassed", func(p nodePlugin) bool {
		return p.Status.Nodes.Away == 1 && slices.ContainsFunc(p.Status.Conditions, func(condition meta.Condition) bool {
			return strings.Contains(condition.Message, "bypass plugins, do not count: 1 of 1")
		})
	})
	start("bypassed")
	c.expectQuota("bypassed", "-1")
	c.proxy.EndBypass(c.t)
	c.plugin("is back", complete)
	start("bypass-ended")
	c.expectQuota("bypass-ended", "200000")
}

func (c *cluster) remove() {
	c.t.Helper()
	if err := c.api.Discovery().RESTClient().Delete().AbsPath(group, "nodeplugins", pluginID).Do(c.t.Context()).Error(); err != nil {
		c.t.Fatal(err)
	}
	node.Eventually(c.t, time.Minute, "the plugin is removed", func() error {
		switch err := c.get("/nodeplugins/"+pluginID, new(nodePlugin)); {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		}
		return errors.New("the object is there")
	})
	if _, err := os.Stat(filepath.Join(c.proxy.PluginDir, pluginID+".json")); !os.IsNotExist(err) {
		c.t.Errorf("the plugin's file after its removal: %v", err)
	}
}

// expectQuota demands a CPU quota of the containers of a Deployment's pods, from the kernel.
func (c *cluster) expectQuota(name, want string) {
	c.t.Helper()
	for _, pod := range c.pods(name, wave) {
		_, id, _ := strings.Cut(pod.Status.ContainerStatuses[0].ContainerID, "://")
		group, err := cgroupfs.Find(node.RuntimeKind().CgroupName(id))
		if err == nil {
			err = cgroupfs.Check(group, "cpu/cpu.cfs_quota_us", want)
		}
		if err != nil {
			c.t.Errorf("%s: %v", pod.Name, err)
		}
	}
}

func (c *cluster) expectNoRestart(name string) {
	c.t.Helper()
	list, err := c.api.CoreV1().Pods("default").List(c.t.Context(), meta.ListOptions{LabelSelector: "app=" + name})
	if err != nil || len(list.Items) == 0 {
		c.t.Errorf("%s has %d pods: %v", name, len(list.Items), err)
	}
	for _, pod := range list.Items {
		for _, container := range pod.Status.ContainerStatuses {
			if container.RestartCount > 0 {
				c.t.Errorf("the pod %s was restarted %d times", pod.Name, container.RestartCount)
			}
		}
	}
}

// expectRefused demands that calls were refused of the pods for which the bad version is meant, and of no other one ever. A call under
// way when the circuit breaker opens may be refused, too, and kubelet may try again by then: each pod may be refused twice.
func (c *cluster) expectRefused() {
	c.t.Helper()
	refused, all := map[string]int{}, 0
	c.proxy.AllRecords(c.t, "call refused", func(line []byte) error {
		var record struct{ Hook, Pod string }
		err := json.Unmarshal(line, &record)
		refused[record.Hook+" "+record.Pod]++
		all++
		return err
	})
	if all < meant {
		c.t.Errorf("%d calls were refused, and %d open the circuit breaker", all, meant)
	}
	for _, pod := range c.pods("meant", meant) {
		call := "PreRunPodSandbox " + pod.Name
		if refused[call] > 2 {
			c.t.Errorf("%s was refused %d times", pod.Name, refused[call])
		}
		delete(refused, call)
	}
	if len(refused) > 0 {
		c.t.Errorf("calls were refused that are not those of the pods that were meant: %v", refused)
	}
	c.t.Logf("%d calls were refused", all)
}
