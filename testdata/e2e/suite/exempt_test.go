package suite_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/image"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/isolation"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/manifests"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// TestExemptNamespace has a pod of the DaemonSet bring a plugin with policy Fail that fails in each call. Pods of another
// namespace are refused. The DaemonSet's next pod starts all the same and takes the plugin back, and the others start.
func TestExemptNamespace(t *testing.T) {
	node.StartRuntime(t)
	proxy := node.StartProxy(t, node.QoS)
	kubelet := node.StartKubelet(t, node.RuntimeKind().ProxyEndpoint, nil)
	first := deliveryPod(t, proxy, "delivery-1", "fail")
	kubelet.Apply(t, first)
	kubelet.AwaitReady(t, first)
	awaitMetric(t, proxy, `wasmproxy_plugin_state{plugin="50-fail",state="active"} 1`)

	web := staticPod("web", ticking("main", requests("10m", "16Mi")))
	kubelet.Apply(t, web)
	awaitRecord(t, proxy, "call refused", hookRecord{"50-fail", "PreRunPodSandbox", "default", node.PodName(web)})
	kubelet.Remove(t, first)
	kubelet.AwaitGone(t, first)
	second := deliveryPod(t, proxy, "delivery-2", "noop")
	kubelet.Apply(t, second)
	kubelet.AwaitReady(t, second)
	for _, hook := range []string{"PreRunPodSandbox", "PreCreateContainer"} {
		awaitRecord(t, proxy, "plugin refused or failed and was ignored: the namespace is exempt",
			hookRecord{"50-fail", hook, second.Namespace, node.PodName(second)})
	}
	awaitMetric(t, proxy, `wasmproxy_plugin_state{plugin="50-noop",state="active"} 1`)
	kubelet.AwaitReady(t, web)
}

// deliveryPod is a pod of the manifests' DaemonSet that delivers one module, under policy Fail. Its plugins come from a
// directory, since nobody has a ConfigMap for a static pod, and its program from the host.
func deliveryPod(t *testing.T, proxy *node.Proxy, name, module string) *core.Pod {
	t.Helper()
	source, settings := t.TempDir(), t.TempDir()
	text, err := os.ReadFile(isolation.Current().Program(module + ".wasm"))
	if err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string]string{
		filepath.Join(source, "50-"+module+".wasm"): string(text),
		filepath.Join(source, "50-"+module+".json"): `{"failure-policy": "Fail", "timeout": "20s"}`,
		filepath.Join(settings, "wasmproxy.yaml"):   "log-level: info\n",
	} {
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	from := daemonSet(t)
	pod := &core.Pod{TypeMeta: meta.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: meta.ObjectMeta{Name: name, Namespace: from.Namespace}, Spec: from.Spec.Template.Spec}
	pod.Spec.NodeSelector, pod.Spec.PriorityClassName = nil, "" // both are of an API server
	onHost := map[string]string{"plugins": source, "node": proxy.PluginDir, "settings": settings, "program": filepath.Dir(isolation.Current().Program("wasmproxy"))}
	pod.Spec.Volumes = append(pod.Spec.Volumes, core.Volume{Name: "program"})
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; onHost[v.Name] != "" {
			v.VolumeSource = core.VolumeSource{HostPath: &core.HostPathVolumeSource{Path: onHost[v.Name]}}
		}
	}
	for _, containers := range [][]core.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			useProgram(&containers[i])
		}
	}
	return pod
}

// useProgram has a container run the host's wasmproxy in the place of the release's image, or the tests' pause.
func useProgram(c *core.Container) {
	if strings.Contains(c.Image, "/pause:") {
		c.Image = image.Pause
		return
	}
	const program = "/program/wasmproxy"
	c.Image, c.Command = image.Busybox, []string{program}
	if probe := c.ReadinessProbe; probe != nil && probe.Exec != nil {
		probe.Exec.Command[0] = program
	}
	c.VolumeMounts = append(c.VolumeMounts, core.VolumeMount{Name: "program", MountPath: filepath.Dir(program), ReadOnly: true})
}

// daemonSet is the one of the manifests that delivers plugins.
func daemonSet(t *testing.T) (d apps.DaemonSet) {
	t.Helper()
	objects, err := manifests.Build(filepath.Join(manifests.Dir(), "plugins"))
	for _, o := range objects {
		if o.GetKind() == "DaemonSet" {
			err = errors.Join(err, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &d))
		}
	}
	if err != nil || d.Name == "" {
		t.Fatalf("the manifests have %d objects: %v", len(objects), err)
	}
	return d
}

// hookRecord is what a line of wasmproxy's log says of a hook of a pod.
type hookRecord struct{ Plugin, Hook, Namespace, Pod string }

func awaitRecord(t *testing.T, proxy *node.Proxy, message string, want hookRecord) {
	t.Helper()
	node.Eventually(t, time.Minute, "wasmproxy logs "+message, func() error {
		err := fmt.Errorf("no line has %+v", want)
		proxy.Records(t, message, func(line []byte) error {
			var got hookRecord
			if bad := json.Unmarshal(line, &got); bad != nil {
				return bad
			}
			if got == want {
				err = nil
			}
			return nil
		})
		return err
	})
}

func awaitMetric(t *testing.T, proxy *node.Proxy, line string) {
	t.Helper()
	node.Eventually(t, time.Minute, "wasmproxy has the metric "+line, func() error {
		said, err := proxy.Get(t.Context(), "/metrics")
		if err == nil && !strings.Contains(said, line+"\n") {
			err = fmt.Errorf("it has\n%s", said)
		}
		return err
	})
}
