package manifests_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/manifests"
)

// helm runs Helm on the chart of the checkout.
func helm(t *testing.T, command string, args ...string) (string, error) {
	t.Helper()
	checkout := filepath.Join(manifests.Dir(), "../..")
	words := []string{"tool", "-modfile=" + filepath.Join(checkout, "testdata/tools/go.mod"), "helm", command}
	if command == "template" {
		words = append(words, "release")
	}
	cmd := exec.CommandContext(t.Context(), "go", slices.Concat(words, []string{filepath.Join(checkout, "deploy/helm")}, args)...)
	home := t.TempDir()
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("helm %s %q: %w\n%s%s", command, args, err, &out, &errs)
	}
	return out.String(), nil
}

// objects are those of the chart with these arguments, by kind and name.
func objects(t *testing.T, args ...string) map[string]*unstructured.Unstructured {
	t.Helper()
	text, err := helm(t, "template", args...)
	if err != nil {
		t.Fatal(err)
	}
	var all []*unstructured.Unstructured
	for document := range strings.SplitSeq(text, "\n---\n") {
		o := new(unstructured.Unstructured)
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	return byName(t, all)
}

func byName(t *testing.T, all []*unstructured.Unstructured) map[string]*unstructured.Unstructured {
	t.Helper()
	named := map[string]*unstructured.Unstructured{}
	for _, o := range all {
		name := o.GetKind() + " " + o.GetName()
		if named[name] != nil {
			t.Errorf("the %s is there twice", name)
		}
		named[name] = o
	}
	return named
}

// kustomized are the objects of deploy/kustomize/fleet.
func kustomized(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	all, err := manifests.Build(filepath.Join(manifests.Dir(), "fleet"))
	if err != nil {
		t.Fatal(err)
	}
	return byName(t, all)
}

// TestChartIsKustomize: without values the chart has the objects of deploy/kustomize/fleet. It adds one annotation to those that
// stay when the release goes.
func TestChartIsKustomize(t *testing.T) {
	if _, err := helm(t, "lint", "--strict"); err != nil {
		t.Error(err)
	}
	has, want := objects(t), kustomized(t)
	for name, o := range has {
		keeps := o.GetAnnotations()["helm.sh/resource-policy"] == "keep"
		if kind := o.GetKind(); keeps != slices.Contains([]string{"CustomResourceDefinition", "Namespace"}, kind) {
			t.Errorf("the %s stays when the release goes: %v", name, keeps)
		}
		unstructured.RemoveNestedField(o.Object, "metadata", "annotations", "helm.sh/resource-policy")
		if len(o.GetAnnotations()) == 0 {
			unstructured.RemoveNestedField(o.Object, "metadata", "annotations")
		}
		if want[name] == nil || !reflect.DeepEqual(plain(t, o), plain(t, want[name])) {
			t.Errorf("the chart's %s is\n%v\nand that of kustomize\n%v", name, o, want[name])
		}
	}
	if len(has) != len(want) || len(has) < 20 {
		t.Errorf("the chart has %d objects, and kustomize %d", len(has), len(want))
	}
}

// plain is an object as YAML, in which 1 is written in one way.
func plain(t *testing.T, o *unstructured.Unstructured) string {
	t.Helper()
	text, err := yaml.Marshal(o.Object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestChartNamespace: the namespace of the release is there before its objects, and Helm makes none that is there.
func TestChartNamespace(t *testing.T) {
	want := slices.DeleteFunc(slices.Sorted(maps.Keys(kustomized(t))), func(name string) bool { return name == "Namespace wasmproxy" })
	if has := slices.Sorted(maps.Keys(objects(t, "--namespace", "wasmproxy"))); !slices.Equal(has, want) {
		t.Errorf("in the namespace wasmproxy the chart has %q, and not %q", has, want)
	}
}

// TestChartValues sets each value, and looks at all that it changes.
func TestChartValues(t *testing.T) {
	kept := kustomized(t)
	agent, controller := "DaemonSet wasmproxy-agent", "Deployment wasmproxy-controller"
	for _, test := range []struct {
		value   string // as --set-json has it
		changed []string
		check   func(*testing.T, map[string]*unstructured.Unstructured)
	}{
		{`image="registry.example/wasmproxy:1"`, []string{agent, controller}, func(t *testing.T, all map[string]*unstructured.Unstructured) {
			for _, name := range []string{agent, controller} {
				if c := podOf(t, all[name]).Containers; c[0].Image != "registry.example/wasmproxy:1" || len(c) != 1 {
					t.Errorf("the containers of %s are %+v", name, c)
				}
			}
		}},
		{`imagePullSecrets=["a","b"]`, []string{agent, controller}, func(t *testing.T, all map[string]*unstructured.Unstructured) {
			for _, name := range []string{agent, controller} {
				if has := podOf(t, all[name]).ImagePullSecrets; !slices.Equal(has, []core.LocalObjectReference{{Name: "a"}, {Name: "b"}}) {
					t.Errorf("the secrets of %s are %+v", name, has)
				}
			}
		}},
		{`agentArgs=["--plain-http","registry.inside:5000"]`, []string{agent}, func(t *testing.T, all map[string]*unstructured.Unstructured) {
			endsWith(t, podOf(t, all[agent]), "--plain-http registry.inside:5000")
		}},
		{`registrySecret="registry"`, []string{agent}, checkRegistrySecret},
		{`mirrors={"registry.example":["http://127.0.0.1:30020","https://cache.example/proxy"]}`, []string{"ConfigMap wasmproxy-mirrors"}, checkMirrors},
		{`rootGroup="node-team"`, []string{"ValidatingAdmissionPolicy wasmproxy-root-plugins", "ValidatingAdmissionPolicyBinding wasmproxy-root-plugins"}, checkRootGroup},
		{`monitoring={"enabled":true,"labels":{"release":"kube-prometheus-stack"}}`, []string{"ConfigMap wasmproxy-fleet-dashboard",
			"PodMonitor wasmproxy-agent", "PodMonitor wasmproxy-controller", "PrometheusRule wasmproxy-fleet"}, checkMonitoring},
		{`global={"a":1}`, nil, nil}, // which Helm gives to each part of a chart
	} {
		t.Run(test.value, func(t *testing.T) {
			all := objects(t, "--set-json", test.value)
			var changed []string
			for name, o := range all {
				unstructured.RemoveNestedField(o.Object, "metadata", "annotations")
				if before := kept[name]; before != nil {
					before = before.DeepCopy()
					unstructured.RemoveNestedField(before.Object, "metadata", "annotations")
					if plain(t, o) == plain(t, before) {
						continue
					}
				}
				changed = append(changed, name)
			}
			slices.Sort(changed)
			if !slices.Equal(changed, test.changed) {
				t.Fatalf("it changes %q, and not %q", changed, test.changed)
			}
			if test.check != nil {
				test.check(t, all)
			}
		})
	}
}

// into gives an object its type, which must know all its keys.
func into(t *testing.T, o *unstructured.Unstructured, typed any) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, typed, true); err != nil {
		t.Fatal(err)
	}
}

func podOf(t *testing.T, o *unstructured.Unstructured) core.PodSpec {
	t.Helper()
	if o.GetKind() == "DaemonSet" {
		var d apps.DaemonSet
		into(t, o, &d)
		return d.Spec.Template.Spec
	}
	var d apps.Deployment
	into(t, o, &d)
	return d.Spec.Template.Spec
}

func endsWith(t *testing.T, pod core.PodSpec, args string) {
	t.Helper()
	if has := strings.Join(pod.Containers[0].Args, " "); !strings.HasPrefix(has, "--node $(NODE) ") || !strings.HasSuffix(has, " "+args) {
		t.Errorf("the agent's arguments are %s, and do not end with %s", has, args)
	}
}

func checkRegistrySecret(t *testing.T, all map[string]*unstructured.Unstructured) {
	pod := podOf(t, all["DaemonSet wasmproxy-agent"])
	endsWith(t, pod, "--registry-config /registry/"+core.DockerConfigJsonKey)
	volume := pod.Volumes[len(pod.Volumes)-1]
	if volume.Secret == nil || volume.Secret.SecretName != "registry" {
		t.Errorf("the agent's volumes are %+v", pod.Volumes)
	}
	mounts := pod.Containers[0].VolumeMounts
	if m := mounts[len(mounts)-1]; m.Name != volume.Name || m.MountPath != "/registry" || !m.ReadOnly {
		t.Errorf("the agent's mounts are %+v", mounts)
	}
}

func checkMirrors(t *testing.T, all map[string]*unstructured.Unstructured) {
	var c core.ConfigMap
	into(t, all["ConfigMap wasmproxy-mirrors"], &c)
	var has map[string][]string
	err := yaml.UnmarshalStrict([]byte(c.Data["mirrors.yaml"]), &has)
	want := map[string][]string{"registry.example": {"http://127.0.0.1:30020", "https://cache.example/proxy"}}
	if err != nil || !reflect.DeepEqual(has, want) || c.Namespace != "wasmproxy" {
		t.Errorf("the mirrors are %+v, error %v", c, err)
	}
	volumes := podOf(t, all["DaemonSet wasmproxy-agent"]).Volumes
	if !slices.ContainsFunc(volumes, func(v core.Volume) bool { return v.ConfigMap != nil && v.ConfigMap.Name == c.Name }) {
		t.Errorf("the agent's pod has no volume of %s", c.Name)
	}
}

// checkRootGroup compares with the policy of deploy/kustomize/fleet-root: the group is another one, and nothing else.
func checkRootGroup(t *testing.T, all map[string]*unstructured.Unstructured) {
	built, err := manifests.Build(filepath.Join(manifests.Dir(), "fleet-root"))
	if err != nil || len(built) != 2 {
		t.Fatalf("fleet-root has %d objects, error %v", len(built), err)
	}
	for name, o := range byName(t, built) {
		if want := strings.ReplaceAll(plain(t, o), `'''wasmproxy-plugin-admins'''`, `'''node-team'''`); plain(t, all[name]) != want {
			t.Errorf("the %s is\n%s\nand not\n%s", name, plain(t, all[name]), want)
		}
	}
}

func checkMonitoring(t *testing.T, all map[string]*unstructured.Unstructured) {
	var jobs []string
	for _, of := range []string{"DaemonSet wasmproxy-agent", "Deployment wasmproxy-controller"} {
		var m monitoring.PodMonitor
		name := strings.Fields(of)[1]
		into(t, all["PodMonitor "+name], &m)
		if m.Namespace != "wasmproxy" || m.Labels["release"] != "kube-prometheus-stack" || len(m.Spec.PodMetricsEndpoints) != 1 {
			t.Fatalf("the PodMonitor %s is %+v", name, m)
		}
		wears, _, err := unstructured.NestedStringMap(all[of].Object, "spec", "template", "metadata", "labels")
		if err != nil || !maps.Equal(m.Spec.Selector.MatchLabels, wears) {
			t.Errorf("the PodMonitor %s selects %v, and the pods have %v: %v", name, m.Spec.Selector, wears, err)
		}
		endpoint := m.Spec.PodMetricsEndpoints[0]
		if ports := podOf(t, all[of]).Containers[0].Ports; endpoint.Port == nil || *endpoint.Port != ports[0].Name {
			t.Errorf("the PodMonitor %s has the port %v, and the pods %+v", name, endpoint.Port, ports)
		}
		jobs = append(jobs, *endpoint.RelabelConfigs[0].Replacement)
	}
	if !slices.Equal(jobs, []string{"wasmproxy-agent", "wasmproxy-controller"}) { // which the alerts expect
		t.Errorf("the jobs are %q", jobs)
	}
	var rule monitoring.PrometheusRule
	into(t, all["PrometheusRule wasmproxy-fleet"], &rule)
	prometheus := filepath.Join(manifests.Dir(), "../prometheus")
	alerts, err := os.ReadFile(filepath.Join(prometheus, "fleet-alerts.yaml"))
	var want monitoring.PrometheusRuleSpec
	if err := errors.Join(err, yaml.UnmarshalStrict(alerts, &want)); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(rule.Spec, want) || len(want.Groups) == 0 || rule.Labels["release"] != "kube-prometheus-stack" {
		t.Errorf("the rules are %+v, and the file has %+v", rule, want)
	}
	var dashboard core.ConfigMap
	into(t, all["ConfigMap wasmproxy-fleet-dashboard"], &dashboard)
	text, err := os.ReadFile(filepath.Join(prometheus, "fleet-dashboard.json"))
	if err != nil || dashboard.Data["fleet-dashboard.json"] != string(text) || dashboard.Labels["grafana_dashboard"] != "1" {
		t.Errorf("the ConfigMap of the dashboard is %+v, error %v", dashboard, err)
	}
}

// TestChartRefuses: a key that is spelled wrong, and a value of another form, are refused by name.
func TestChartRefuses(t *testing.T) {
	for value, want := range map[string]string{
		`imge="a:1"`:                    "additional properties 'imge' not allowed",
		`monitoring={"enable":true}`:    "additional properties 'enable' not allowed",
		`image="wasmproxy"`:             "/image",
		`agentArgs="--plain-http r"`:    "/agentArgs",
		`mirrors={"r":["cache"]}`:       "/mirrors/r/0",
		`mirrors={"r":"http://cache"}`:  "/mirrors/r",
		`rootGroup="a' || true || 'a"`:  "/rootGroup",
		`monitoring={"enabled":"true"}`: "/monitoring/enabled",
	} {
		if _, err := helm(t, "template", "--set-json", value); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, and does not have %q", value, err, want)
		}
	}
}
