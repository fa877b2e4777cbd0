package manifests_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/manifests"
)

// daemonSet is that of a directory, and the names of its ConfigMaps.
func daemonSet(t *testing.T, dir string) (d apps.DaemonSet, configs []string) {
	t.Helper()
	objects, err := manifests.Build(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		switch o.GetKind() {
		case "DaemonSet":
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, &d, true); err != nil {
				t.Fatal(err)
			}
		case "ConfigMap":
			configs = append(configs, o.GetName())
		case "Namespace":
		default:
			t.Errorf("%s has the %s %s", dir, o.GetKind(), o.GetName())
		}
	}
	if d.Name == "" || len(configs) != 1 {
		t.Fatalf("%s has %d objects, with the ConfigMaps %q", dir, len(objects), configs)
	}
	return d, configs
}

// commands are the arguments of a pod's containers, in their order, the init containers before the others. pause has none.
func commands(d apps.DaemonSet) (all []string) {
	for _, c := range slices.Concat(d.Spec.Template.Spec.InitContainers, d.Spec.Template.Spec.Containers) {
		all = append(all, strings.Join(c.Args, " "))
	}
	return all
}

const (
	deliver   = "plugin deliver /plugins --owner $(OWNER) --config /settings/wasmproxy.yaml --wait 2m --stay"
	install   = "host install --enter-host --yes --restart-kubelet"
	uninstall = "host uninstall --enter-host --yes --restart-kubelet"
)

// TestCommands: only the way to uninstall uninstalls, and delivers nothing. It is the same DaemonSet.
func TestCommands(t *testing.T) {
	for dir, want := range map[string][]string{
		"plugins":   {deliver},
		"node":      {install, deliver},
		"uninstall": {uninstall, ""},
	} {
		d, _ := daemonSet(t, filepath.Join(manifests.Dir(), dir))
		if got := commands(d); !slices.Equal(got, want) {
			t.Errorf("the containers of %s run %q, want %q", dir, got, want)
		}
		if d.Namespace+"/"+d.Name != "wasmproxy/wasmproxy" {
			t.Errorf("the DaemonSet of %s is %s/%s", dir, d.Namespace, d.Name)
		}
	}
}

// owner is whose plugins a pod delivers: kubelet puts a variable's value into a command and into a probe's.
func owner(d apps.DaemonSet) string {
	c := d.Spec.Template.Spec.Containers[0]
	i := slices.IndexFunc(c.Env, func(v core.EnvVar) bool { return v.Name == "OWNER" && v.ValueFrom == nil })
	if i < 0 {
		return ""
	}
	return c.Env[i].Value
}

// TestReadiness: a pod is ready if its node's proxy has the plugins active that the pod has delivered, and an update goes on
// only then, at a share of the nodes. The probe asks for less time than kubelet gives it.
func TestReadiness(t *testing.T) {
	for _, dir := range []string{"plugins", "node"} {
		d, _ := daemonSet(t, filepath.Join(manifests.Dir(), dir))
		if len(d.Spec.Template.Spec.Containers) != 1 {
			t.Fatalf("the containers of %s are %+v", dir, d.Spec.Template.Spec.Containers)
		}
		c := d.Spec.Template.Spec.Containers[0]
		if c.ReadinessProbe == nil || c.ReadinessProbe.Exec == nil {
			t.Fatalf("the readiness probe of %s is %+v", dir, c.ReadinessProbe)
		}
		ask, wait, found := strings.Cut(strings.Join(c.ReadinessProbe.Exec.Command, " "), " --check-only --wait ")
		same, _, _ := strings.Cut(deliver, " --wait ")
		if !found || ask != "/usr/bin/wasmproxy "+same {
			t.Errorf("the probe of %s runs %q", dir, c.ReadinessProbe.Exec.Command)
		}
		within, err := time.ParseDuration(wait)
		if limit := time.Duration(c.ReadinessProbe.TimeoutSeconds) * time.Second; err != nil || within <= 0 || within >= limit {
			t.Errorf("the probe of %s waits for %s, of %v: %v", dir, wait, limit, err)
		}
		if owner(d) != d.Namespace+"/"+d.Name {
			t.Errorf("the owner of the plugins of %s is %q", dir, owner(d))
		}
		if u := d.Spec.UpdateStrategy; u.Type != apps.RollingUpdateDaemonSetStrategyType || u.RollingUpdate.MaxUnavailable.String() != "10%" {
			t.Errorf("%s is updated by %+v", dir, u)
		}
	}
}

// TestNodesAreLabelled: no node gets a pod before the command of docs/install.md has labelled it. All
// nodes would get their first pod at once, and restart kubelet.
func TestNodesAreLabelled(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(manifests.Dir(), "../../docs/install.md"))
	if err != nil {
		t.Fatal(err)
	}
	label := regexp.MustCompile(`(?m)^kubectl label node .*? (\S+)=(\S+) `).FindStringSubmatch(string(page))
	if label == nil {
		t.Fatal("install.md labels no node")
	}
	for _, dir := range []string{"plugins", "node", "uninstall"} {
		d, _ := daemonSet(t, filepath.Join(manifests.Dir(), dir))
		if got := d.Spec.Template.Spec.NodeSelector; got[label[1]] != label[2] {
			t.Errorf("%s selects nodes by %v, install.md labels them %s", dir, got, label[0])
		}
	}
}

// TestPrivileges: nothing but the container that installs has rights on the host, and no container does anything when it
// starts or ends. The one that delivers can write to the plugin directory alone, and reaches no socket that changes anything.
func TestPrivileges(t *testing.T) {
	for _, dir := range []string{"plugins", "node", "uninstall"} {
		d, _ := daemonSet(t, filepath.Join(manifests.Dir(), dir))
		pod := d.Spec.Template.Spec
		if pod.HostNetwork || pod.HostIPC || pod.HostPID == (dir == "plugins") {
			t.Errorf("the pod of %s shares namespaces of the host: %+v", dir, pod)
		}
		if *pod.AutomountServiceAccountToken || pod.PriorityClassName != "system-node-critical" {
			t.Errorf("the pod of %s is %+v", dir, pod)
		}
		for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
			if c.Lifecycle != nil {
				t.Errorf("container %s of %s does something when it starts or ends", c.Name, dir)
			}
			if c.Name != "host" {
				unprivileged(t, dir, c)
			}
		}
		onHost := map[string]string{}
		for _, v := range pod.Volumes {
			if v.HostPath != nil {
				onHost[v.Name] = v.HostPath.Path
			}
		}
		want := map[string]string{"node": "/etc/wasmproxy/plugins.d", "settings": "/etc/wasmproxy", "status": "/run/wasmproxy/status"}
		if !maps.Equal(onHost, want) {
			t.Errorf("%s has the host's directories %v, want %v", dir, onHost, want)
		}
	}
}

// unprivileged checks a container that needs no privilege.
func unprivileged(t *testing.T, dir string, c core.Container) {
	t.Helper()
	s := c.SecurityContext
	drops := slices.Equal(s.Capabilities.Drop, []core.Capability{"ALL"}) && len(s.Capabilities.Add) == 0
	if s.Privileged != nil || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || !drops {
		t.Errorf("container %s of %s may do %+v", c.Name, dir, s)
	}
	for _, m := range c.VolumeMounts {
		if !m.ReadOnly && m.Name != "node" {
			t.Errorf("container %s of %s can write to %s", c.Name, dir, m.MountPath)
		}
	}
}

// TestRings: the DaemonSets of two rings have names, selectors, nodes and owners of their own, and no ring has the namespace
// that both need. That holds for what installs and for what uninstalls, too.
func TestRings(t *testing.T) {
	for _, base := range []string{"plugins", "node", "uninstall"} {
		of := map[string]apps.DaemonSet{}
		for _, ring := range []string{"canary", "wide"} {
			dir := t.TempDir()
			text := "resources: [wasmproxy-kustomize/" + base + "]\ncomponents: [wasmproxy-kustomize/ring-" + ring + "]\n"
			writeOverlay(t, dir, map[string]string{"kustomization.yaml": text})
			d, _ := daemonSet(t, dir)
			of[ring] = d
			wears := map[string]string{"app.kubernetes.io/name": "wasmproxy", "wasmproxy.io/ring": ring}
			if !maps.Equal(d.Spec.Selector.MatchLabels, wears) || !maps.Equal(d.Spec.Template.Labels, wears) {
				t.Errorf("%s in the ring %s selects %v, its pods have %v", base, ring, d.Spec.Selector, d.Spec.Template.Labels)
			}
			if got := d.Spec.Template.Spec.NodeSelector; got["wasmproxy.io/ring"] != ring || got["wasmproxy.io/node"] != "true" {
				t.Errorf("%s in the ring %s is for the nodes %v", base, ring, got)
			}
			if owner(d) != d.Namespace+"/"+d.Name || d.Name != "wasmproxy-"+ring {
				t.Errorf("%s in the ring %s is %s, with the owner %q", base, ring, d.Name, owner(d))
			}
			if n := len(d.Spec.Template.Spec.Containers); n != 1 {
				t.Errorf("%s in the ring %s has %d containers", base, ring, n)
			}
			objects, err := manifests.Build(dir)
			if err != nil || slices.ContainsFunc(objects, isNamespace) {
				t.Errorf("%s in the ring %s has the namespace, or error %v", base, ring, err)
			}
		}
		for _, pair := range [][2]string{{"canary", "wide"}, {"wide", "canary"}} {
			selector, err := meta.LabelSelectorAsSelector(of[pair[0]].Spec.Selector)
			if err != nil || selector.Matches(labels.Set(of[pair[1]].Spec.Template.Labels)) {
				t.Errorf("%s: the DaemonSet of %s takes the pods of %s for its own, error %v", base, pair[0], pair[1], err)
			}
		}
	}
	objects, err := manifests.Build(filepath.Join(manifests.Dir(), "namespace"))
	if err != nil || len(objects) != 1 || !isNamespace(objects[0]) {
		t.Errorf("namespace has %d objects, error %v", len(objects), err)
	}
}

func isNamespace(o *unstructured.Unstructured) bool {
	return o.GetKind() == "Namespace" && o.GetName() == "wasmproxy"
}

// writeOverlay makes a directory with a copy of the manifests, as make dist packs them, and files of its own.
func writeOverlay(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	if err := os.CopyFS(filepath.Join(dir, "wasmproxy-kustomize"), os.DirFS(manifests.Dir())); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// documented are the kustomizations of docs/install.md, and the name of the plugin that its
// command writes.
func documented(t *testing.T) (kustomizations []string, plugin string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(manifests.Dir(), "../../docs/install.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range regexp.MustCompile("(?s)```yaml kustomization\n(.*?)```").FindAllSubmatch(page, -1) {
		kustomizations = append(kustomizations, string(block[1]))
	}
	command := regexp.MustCompile(`(?m)^wasmproxy plugin install \S+ --as (\S+) --plugin-dir \. `).FindSubmatch(page)
	if len(kustomizations) != 3 || command == nil {
		t.Fatalf("%d kustomizations, command %q", len(kustomizations), command)
	}
	entries, err := os.ReadDir(manifests.Dir())
	if err != nil || len(entries) == 0 {
		t.Fatalf("the manifests have %d directories, error %v", len(entries), err)
	}
	for _, e := range entries {
		if !strings.Contains(string(page), "\n| `"+e.Name()+"` |") {
			t.Errorf("the table of install.md does not have the directory %s", e.Name())
		}
	}
	return kustomizations, string(command[1])
}

// TestDocumented: the kustomization of docs/install.md builds with the file that the command there
// writes, and gives all containers its image. Another plugin is another revision of the DaemonSet.
// Its plugins can also be one ring's, or come from an image. It uninstalls with another resource.
func TestDocumented(t *testing.T) {
	kustomizations, plugin := documented(t)
	overlay := func(kustomization, module string, commands []string) (apps.DaemonSet, string) {
		dir := t.TempDir()
		writeOverlay(t, dir, map[string]string{"kustomization.yaml": kustomization, plugin + ".wasm": module})
		d, configs := daemonSet(t, dir)
		if got := containers(d); !slices.Equal(got, commands) {
			t.Errorf("the containers are %q, want %q", got, commands)
		}
		return d, configs[0]
	}
	const image = "registry.example/wasmproxy:1.2.3 "
	installs, uninstalls := []string{image + install, image + deliver}, []string{image + uninstall, "registry.k8s.io/pause:3.10 "}
	first, config := overlay(kustomizations[0], "\x00asm 1", installs)
	second, _ := overlay(kustomizations[0], "\x00asm 2", installs)
	if name := plugins(first).ConfigMap.Name; name != config || name == plugins(second).ConfigMap.Name {
		t.Errorf("the volumes are of %s and %s, the ConfigMap is %s", name, plugins(second).ConfigMap.Name, config)
	}
	ring, config := overlay(kustomizations[1], "\x00asm 1", installs)
	if ring.Name != "wasmproxy-canary" || plugins(ring).ConfigMap.Name != config || !strings.HasPrefix(config, "wasmproxy-plugins-canary-") {
		t.Errorf("the ring's DaemonSet is %s, with the ConfigMap %s of %s", ring.Name, plugins(ring).ConfigMap.Name, config)
	}
	third, _ := overlay(kustomizations[2], "", installs)
	if v := plugins(third); v.Image == nil || v.ConfigMap != nil || v.Image.Reference != "registry.example/plugins:1" {
		t.Errorf("the volume is %+v", v)
	}
	for _, kustomization := range kustomizations {
		overlay(strings.Replace(kustomization, "[wasmproxy-kustomize/node]", "[wasmproxy-kustomize/uninstall]", 1), "", uninstalls)
	}
}

// containers are the images and commands of a pod's containers.
func containers(d apps.DaemonSet) (all []string) {
	commands := commands(d)
	for i, c := range slices.Concat(d.Spec.Template.Spec.InitContainers, d.Spec.Template.Spec.Containers) {
		all = append(all, c.Image+" "+commands[i])
	}
	return all
}

// plugins is the volume that plugins come from.
func plugins(d apps.DaemonSet) core.Volume {
	all := d.Spec.Template.Spec.Volumes
	return all[slices.IndexFunc(all, func(v core.Volume) bool { return v.Name == "plugins" })]
}
