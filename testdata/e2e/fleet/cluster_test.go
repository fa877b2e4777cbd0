package fleet_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	authentication "k8s.io/api/authentication/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/image"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/isolation"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/manifests"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

const (
	namespace = "wasmproxy" // of the fleet
	group     = "/apis/fleet.wasmproxy.io/v1alpha1"
	pluginID  = "50-guest"
)

// cluster is a cluster of one node.
type cluster struct {
	t         *testing.T
	api       *node.APIServer
	proxy     *node.Proxy
	artifacts map[string]string // references, by the module's file
}

func startCluster(t *testing.T) *cluster {
	c := &cluster{t: t, api: node.StartAPIServer(t), artifacts: map[string]string{}}
	objects, err := manifests.Build(filepath.Join(manifests.Dir(), "fleet"))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if o.GetKind() == "DaemonSet" || o.GetKind() == "Deployment" {
			continue // its programs run here as they are
		}
		if _, err := c.api.Apply(t.Context(), o, false); err != nil {
			t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
	c.api.StartControllers(t, "deployment-controller", "replicaset-controller", "garbage-collector-controller")
	node.StartRuntime(t)
	status := filepath.Join(t.TempDir(), "status", "s")
	c.proxy = node.StartProxyWith(t, []string{"--status-socket", status})
	node.StartKubelet(t, node.RuntimeKind().ProxyEndpoint, nil, "--kubeconfig="+c.api.Kubeconfig)
	for _, module := range []string{first, second, bad, setter} {
		c.push(module)
	}
	node.StartProgram(t, "wasmproxy-fleet", "controller", "--kubeconfig", c.api.Kubeconfig, "--identity", "test", "--interval", "300ms",
		"--agents", "") // kubelet gives its node no label
	w := isolation.Current()
	node.StartProgram(t, "wasmproxy-fleet-agent", "--node", node.NodeName, "--kubeconfig", c.agentKubeconfig(), "--plugin-dir", c.proxy.PluginDir,
		"--wasmproxy", w.Program("wasmproxy"), "--verifier", w.Program("wasmproxy-fleet-verify"), "--status-socket", status,
		"--config", filepath.Join(t.TempDir(), "wasmproxy.yaml"), "--trust", filepath.Join(t.TempDir(), "trust.yaml"),
		"--plain-http", node.RegistryAddress, "--fetch-jitter", "10ms", "--poll", "200ms", "--report-every", "200ms")
	return c
}

// push brings a module to the registry.
func (c *cluster) push(module string) {
	c.t.Helper()
	w := isolation.Current()
	out, err := exec.CommandContext(c.t.Context(), w.Program("wasmproxy-fleet"), "push", "--plain-http", node.RegistryAddress,
		node.RegistryAddress+"/plugins/"+strings.TrimSuffix(module, ".wasm"), w.Program(module)).Output()
	if err != nil {
		c.t.Fatalf("pushing %s: %v", module, err)
	}
	c.artifacts[module] = strings.TrimSpace(string(out))
}

// agentKubeconfig has the token of a pod of the agent's on the node. The pod's program sleeps.
func (c *cluster) agentKubeconfig() (file string) {
	c.t.Helper()
	pod := &core.Pod{ObjectMeta: meta.ObjectMeta{Name: "agent", Namespace: namespace}, Spec: sleeping()}
	pod.Spec.ServiceAccountName = "wasmproxy-agent"
	if _, err := c.api.CoreV1().Pods(namespace).Create(c.t.Context(), pod, meta.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
	made, err := c.api.CoreV1().ServiceAccounts(namespace).CreateToken(c.t.Context(), "wasmproxy-agent", &authentication.TokenRequest{
		Spec: authentication.TokenRequestSpec{BoundObjectRef: &authentication.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name}},
	}, meta.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(c.api.Kubeconfig)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		user.Token = made.Status.Token
	}
	file = filepath.Join(c.t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		c.t.Fatal(err)
	}
	return file
}

// sleeping is the pod of one container that sleeps on the node.
func sleeping() core.PodSpec {
	return core.PodSpec{
		NodeName: node.NodeName, HostNetwork: true, TerminationGracePeriodSeconds: ptr.To[int64](1),
		Containers: []core.Container{{Name: "main", Image: image.Busybox, Command: node.Sleep}},
	}
}

// deploy makes a Deployment, whose pods have annotations.
func (c *cluster) deploy(name string, replicas int32, annotations map[string]string) {
	c.t.Helper()
	labels := map[string]string{"app": name}
	_, err := c.api.AppsV1().Deployments("default").Create(c.t.Context(), &apps.Deployment{
		ObjectMeta: meta.ObjectMeta{Name: name},
		Spec: apps.DeploymentSpec{Replicas: &replicas, Selector: &meta.LabelSelector{MatchLabels: labels},
			Template: core.PodTemplateSpec{ObjectMeta: meta.ObjectMeta{Labels: labels, Annotations: annotations}, Spec: sleeping()}},
	}, meta.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
}

// pods waits until all pods of a Deployment are ready, and returns them.
func (c *cluster) pods(name string, replicas int) []core.Pod {
	c.t.Helper()
	var list *core.PodList
	node.Eventually(c.t, time.Minute, "all pods of "+name+" are ready", func() (err error) {
		list, err = c.api.CoreV1().Pods("default").List(c.t.Context(), meta.ListOptions{LabelSelector: "app=" + name})
		if err != nil {
			return err
		}
		if len(list.Items) != replicas {
			return fmt.Errorf("there are %d", len(list.Items))
		}
		for i := range list.Items {
			if err := node.Ready(&list.Items[i]); err != nil {
				return fmt.Errorf("%s: %w", list.Items[i].Name, err)
			}
		}
		return nil
	})
	return list.Items
}

// nodePlugin is what the test needs of a NodePlugin.
type nodePlugin struct {
	Metadata struct{ Generation int64 }
	Status   struct {
		ObservedGeneration int64
		Stable             struct{ Revision string }
		RolledBack         string
		Nodes              struct{ Healthy, Away int }
		Examples           []struct{ Reason, Message string }
		Conditions         []meta.Condition
	}
}

// get reads an object of the fleet.
func (c *cluster) get(path string, into any) error {
	text, err := c.api.Discovery().RESTClient().Get().AbsPath(group + path).Do(c.t.Context()).Raw()
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// plugin waits until the NodePlugin is as it is to be.
func (c *cluster) plugin(what string, is func(nodePlugin) bool) {
	c.t.Helper()
	node.Eventually(c.t, time.Minute, "the plugin "+what, func() error {
		var p nodePlugin
		if err := c.get("/nodeplugins/"+pluginID, &p); err != nil {
			return err
		}
		if p.Status.ObservedGeneration != p.Metadata.Generation || !is(p) {
			return fmt.Errorf("it is %+v", p)
		}
		return nil
	})
}

func complete(p nodePlugin) bool {
	for _, condition := range p.Status.Conditions {
		if condition.Type == "Ready" && condition.Status == meta.ConditionTrue {
			return p.Status.Nodes.Healthy == 1
		}
	}
	return false
}

// want gives the plugin a module and settings, and makes it if it is not there.
func (c *cluster) want(module, settings string, bakeSeconds int) {
	c.t.Helper()
	spec := fmt.Sprintf(`{"artifact": %q, "settings": %s, "rollout": {"steps": [100], "bakeSeconds": %d}}`, c.artifacts[module], settings, bakeSeconds)
	client := c.api.Discovery().RESTClient()
	err := client.Patch(types.MergePatchType).AbsPath(group, "nodeplugins", pluginID).Body([]byte(`{"spec": ` + spec + `}`)).Do(c.t.Context()).Error()
	if apierrors.IsNotFound(err) {
		err = client.Post().AbsPath(group, "nodeplugins").Body([]byte(`{"apiVersion": "fleet.wasmproxy.io/v1alpha1", "kind": "NodePlugin",
			"metadata": {"name": "` + pluginID + `"}, "spec": ` + spec + `}`)).Do(c.t.Context()).Error()
	}
	if err != nil {
		c.t.Fatal(err)
	}
}
