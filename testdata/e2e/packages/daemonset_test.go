package packages_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/guest"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/manifests"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// static is the pod of a DaemonSet of deploy/kustomize as a static pod: there is no API server
// for a ConfigMap, so that a directory of the host is in its place.
func (h *host) static(t *testing.T, directory string) *core.Pod {
	t.Helper()
	dir := t.TempDir()
	text := "resources: [wasmproxy/" + directory + "]\nimages:\n- {name: localhost/wasmproxy, newName: registry.k8s.io/wasmproxy, newTag: " + newVersion +
		"}\n- {name: registry.k8s.io/pause, newTag: \"3.9\"}\n"
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dir, "wasmproxy"), os.DirFS(manifests.Dir())); err != nil {
		t.Fatal(err)
	}
	objects, err := manifests.Build(dir)
	if err != nil {
		t.Fatal(err)
	}
	var d apps.DaemonSet
	for _, o := range objects {
		if o.GetKind() == "DaemonSet" {
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &d)
		}
	}
	if err != nil || d.Name == "" {
		t.Fatalf("%s has no DaemonSet, error %v", directory, err)
	}
	pod := &core.Pod{ObjectMeta: d.Spec.Template.ObjectMeta, Spec: d.Spec.Template.Spec}
	pod.APIVersion, pod.Kind, pod.Namespace, pod.Name = "v1", "Pod", "default", directory
	pod.Spec.NodeSelector, pod.Spec.HostNetwork = nil, true // the guest has no CNI
	i := slices.IndexFunc(pod.Spec.Volumes, func(v core.Volume) bool { return v.Name == "plugins" })
	pod.Spec.Volumes[i].VolumeSource = core.VolumeSource{HostPath: &core.HostPathVolumeSource{Path: "/srv/plugins"}}
	return pod
}

// testDaemonSet: a pod that kubelet starts installs the proxy, restarts that kubelet, and
// delivers plugins. Its end takes nothing back.
func (h *host) testDaemonSet(t *testing.T) {
	h.Run(t, "mkdir -p /srv/plugins && echo '{\"failure-policy\": \"Ignore\"}' >/srv/plugins/10-qos.json && cp /mnt/qos.wasm /srv/plugins/10-qos.wasm")
	pod := h.static(t, "node")
	h.Apply(t, pod)
	h.ended(t, pod)
	h.throughProxy(t, newVersion)
	h.Await(t, "wasmproxy plugin list -o json | grep -q '\"state\": \"active\"'")
	h.prints(t, map[string]string{
		"command -v wasmproxy":                                       "/usr/local/bin/wasmproxy",
		"ls /etc/wasmproxy/plugins.d | tr '\\n' ' '":                 "10-qos.json ",
		"cmp /etc/wasmproxy/plugins.d/.modules/*.wasm /mnt/qos.wasm": "",
	})
	h.end(t, pod)
	h.throughProxy(t, newVersion)
}

// testUninstall: the other pod takes the proxy back, and succeeds where there is none.
func (h *host) testUninstall(t *testing.T) {
	pod := h.static(t, "uninstall")
	for range 2 {
		h.Apply(t, pod)
		h.ended(t, pod)
		h.end(t, pod)
	}
	const dir = "/etc/wasmproxy/plugins.d"
	module := h.Run(t, "sha256sum </mnt/qos.wasm | cut -c-64 | tr -d '\\n'")
	h.onRuntime(t, strings.Join([]string{"/etc/wasmproxy", dir, dir + "/.delivery", dir + "/.delivery/record.json",
		dir + "/.modules", dir + "/.modules/" + module + ".wasm", dir + "/10-qos.json"}, "\n"))
}

// ended waits until the containers of a pod have done their work: plugins are compiled on a slow machine.
func (h *host) ended(t *testing.T, pod *core.Pod) {
	t.Helper()
	node.Eventually(t, 10*time.Minute, "pod "+pod.Name+" is ready", func() error {
		now, err := h.Pod(t.Context(), pod)
		if err != nil {
			return err
		}
		if err := node.Ready(now); err != nil {
			return fmt.Errorf("%w: %+v", err, now.Status.InitContainerStatuses)
		}
		return nil
	})
}

// end removes a pod, and waits until it is gone.
func (h *host) end(t *testing.T, pod *core.Pod) {
	t.Helper()
	h.Remove(t, pod)
	h.Await(t, "test -z \"$(crictl --runtime-endpoint unix://"+guest.ContainerdSocket+" pods --quiet --name '^"+pod.Name+"-')\"")
}
