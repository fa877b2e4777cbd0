package suite_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/image"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// Images that the policy of the test refuses.
const (
	refusedImage = "gcr.io/k8s-staging-cri-tools/test-image-1"
	pulledImage  = "gcr.io/k8s-staging-cri-tools/test-image-2:latest" // and is on the node
)

// imagePolicy allows the tests' own images, and in some namespaces something else.
var imagePolicy = node.Plugin{
	File: "05-image-policy.wasm", Program: "image-policy.wasm", Policy: "Fail",
	Config: map[string]any{
		"registries": []string{"registry.k8s.io/e2e-test-images"},
		"namespaces": map[string]any{
			"strict": map[string]any{"registries": []string{"registry.k8s.io"}, "digest": true},
			"short":  map[string]any{"registries": []string{"docker.io/library"}},
		},
	},
}

// policed is a node with the policy, whose pods come from an API server.
type policed struct {
	*testing.T
	api     *node.APIServer
	proxy   *node.Proxy
	kubelet *node.Kubelet
	runtime node.CRI
}

// TestImagePolicy has a real kubelet run pods whose images the bundled image-policy allows or refuses. A refused pod has the
// reason in its events.
func TestImagePolicy(t *testing.T) {
	node.StartRuntime(t)
	n := policed{T: t, proxy: node.StartProxy(t, imagePolicy), api: node.StartAPIServer(t), runtime: node.DialCRI(t, node.RuntimeKind().Endpoint)}
	n.kubelet = node.StartKubelet(t, node.RuntimeKind().ProxyEndpoint, nil, "--kubeconfig="+n.api.Kubeconfig)
	for _, name := range []string{"strict", "short", "kube-system"} {
		namespace := &core.Namespace{ObjectMeta: meta.ObjectMeta{Name: name}}
		if _, err := n.api.CoreV1().Namespaces().Create(t.Context(), namespace, meta.CreateOptions{}); err != nil && name != "kube-system" {
			t.Fatal(err)
		}
	}
	busybox, pulled := n.pull(image.Busybox), n.pull(pulledImage)
	const allows = "not from a registry that namespace default allows: registry.k8s.io/e2e-test-images"
	const only = " is " + allows

	// All pods are made at once: most of the time is kubelet's waiting.
	allowed := n.run(policedPod("default", "allowed", image.Busybox))
	digest := n.run(policedPod("strict", "digest", busybox))
	short := n.run(policedPod("short", "short", "short:1"))
	init := policedPod("default", "init", image.Busybox)
	init.Spec.InitContainers = []core.Container{{Name: "init", Image: pulledImage, Command: []string{"true"}}}
	refused := map[*core.Pod]string{
		n.run(policedPod("default", "refused", refusedImage)):   "image " + refusedImage + ":latest" + only,
		n.run(policedPod("default", "pulled", pulledImage)):     "image " + pulledImage + only,
		n.run(policedPod("default", "by-digest", pulled)):       "image " + pulled + only,
		n.run(policedPod("default", "short", "short:1")):        allows, // on CRI-O the reason has where it was pulled from
		n.run(policedPod("strict", "tag", image.Busybox)):       "image " + image.Busybox + " is not named by a digest, as namespace strict requires: write registry.k8s.io/e2e-test-images/busybox@sha256:DIGEST",
		n.run(policedPod("strict", "digest-elsewhere", pulled)): "image " + pulled + " is not from a registry that namespace strict allows: registry.k8s.io",
		n.run(policedPod("short", "elsewhere", pulledImage)):    "image " + pulledImage + " is not from a registry that namespace short allows: docker.io/library",
		n.run(init): "image " + pulledImage + only,
	}
	static := staticPod("static", policedContainer(image.Busybox))
	refusedStatic := staticPod("static-refused", policedContainer(pulledImage))
	n.kubelet.Apply(t, static)
	n.kubelet.Apply(t, refusedStatic)
	mirror := refusedStatic.DeepCopy()
	mirror.Name = node.PodName(refusedStatic)
	refused[mirror] = "image " + pulledImage + only
	exempt := n.run(policedPod("kube-system", "exempt", pulledImage))

	for _, pod := range []*core.Pod{allowed, digest, short, exempt} {
		n.awaitReady(pod)
	}
	n.kubelet.AwaitReady(t, static)
	for pod, reason := range refused {
		n.awaitEvent(pod, reason)
	}
	n.testEphemeral(allowed, only)
	awaitRecord(t, n.proxy, "plugin refused or failed and was ignored: the namespace is exempt",
		hookRecord{"05-image-policy", "PreCreateContainer", exempt.Namespace, exempt.Name})
}

// testEphemeral adds an allowed and a refused container to a pod that runs.
func (n policed) testEphemeral(pod *core.Pod, reason string) {
	pods := n.api.CoreV1().Pods(pod.Namespace)
	now, err := pods.Get(n.Context(), pod.Name, meta.GetOptions{})
	if err != nil {
		n.Fatal(err)
	}
	for name, image := range map[string]string{"debug": image.Busybox, "refused": pulledImage} {
		container := core.EphemeralContainerCommon(policedContainer(image))
		container.Name = name
		now.Spec.EphemeralContainers = append(now.Spec.EphemeralContainers, core.EphemeralContainer{EphemeralContainerCommon: container})
	}
	if _, err := pods.UpdateEphemeralContainers(n.Context(), pod.Name, now, meta.UpdateOptions{}); err != nil {
		n.Fatal(err)
	}
	n.awaitEvent(pod, "image "+pulledImage+reason)
	node.Eventually(n, time.Minute, "the allowed ephemeral container runs", func() error {
		now, err := pods.Get(n.Context(), pod.Name, meta.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range now.Status.EphemeralContainerStatuses {
			if c.Name == "debug" && c.State.Running != nil {
				return nil
			}
		}
		return fmt.Errorf("they are %v", now.Status.EphemeralContainerStatuses)
	})
}

// pull has the runtime itself pull an image, beside the proxy, and returns its name by a digest.
func (n policed) pull(name string) string {
	n.Helper()
	spec := &cri.ImageSpec{Image: name}
	if _, err := n.runtime.PullImage(n.Context(), &cri.PullImageRequest{Image: spec}); err != nil {
		n.Fatal(err)
	}
	status, err := n.runtime.ImageStatus(n.Context(), &cri.ImageStatusRequest{Image: spec})
	if err != nil {
		n.Fatal(err)
	}
	repository := name[:strings.LastIndexByte(name, ':')]
	for _, digest := range status.GetImage().GetRepoDigests() {
		if strings.HasPrefix(digest, repository+"@") {
			return digest
		}
	}
	n.Fatalf("the runtime tells no digest of %s: %v", name, status)
	return ""
}

func policedPod(namespace, name, image string) *core.Pod {
	pod := staticPod(name, policedContainer(image))
	pod.Namespace, pod.Spec.NodeName = namespace, node.NodeName
	return pod
}

func policedContainer(image string) core.Container {
	return core.Container{Name: "main", Image: image, Command: node.Sleep, ImagePullPolicy: core.PullIfNotPresent}
}

func (n policed) run(pod *core.Pod) *core.Pod {
	n.Helper()
	made, err := n.api.CoreV1().Pods(pod.Namespace).Create(n.Context(), pod, meta.CreateOptions{})
	if err != nil {
		n.Fatal(err)
	}
	return made
}

func (n policed) awaitReady(pod *core.Pod) {
	n.Helper()
	node.Eventually(n, 2*time.Minute, "pod "+pod.Namespace+"/"+pod.Name+" is ready", func() error {
		now, err := n.api.CoreV1().Pods(pod.Namespace).Get(n.Context(), pod.Name, meta.GetOptions{})
		if err != nil {
			return err
		}
		return node.Ready(now)
	})
}

// awaitEvent waits until an event of a pod has the plugin's reason.
func (n policed) awaitEvent(pod *core.Pod, reason string) {
	n.Helper()
	node.Eventually(n, 2*time.Minute, "an event of pod "+pod.Namespace+"/"+pod.Name+" says: "+reason, func() error {
		events, err := n.api.CoreV1().Events(pod.Namespace).List(n.Context(), meta.ListOptions{FieldSelector: "involvedObject.name=" + pod.Name})
		if err != nil {
			return err
		}
		var said []string
		for _, e := range events.Items {
			if strings.Contains(e.Message, "plugin 05-image-policy") && strings.Contains(e.Message, reason) {
				return nil
			}
			said = append(said, e.Reason+": "+e.Message)
		}
		return fmt.Errorf("its events are\n%s", strings.Join(said, "\n"))
	})
}
