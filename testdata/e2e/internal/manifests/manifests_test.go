package manifests_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
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

// commands are the arguments of a pod's init containers, in their order.
func commands(d apps.DaemonSet) (all []string) {
	for _, c := range d.Spec.Template.Spec.InitContainers {
		all = append(all, strings.Join(c.Args, " "))
	}
	return all
}

// TestInitContainers: only the way to uninstall uninstalls, and it is the same DaemonSet.
func TestInitContainers(t *testing.T) {
	const deliver = "plugin deliver /plugins --owner wasmproxy --config /settings/wasmproxy.yaml"
	for dir, want := range map[string][]string{
		"plugins":   {deliver},
		"node":      {"host install --enter-host --yes --restart-kubelet", deliver},
		"uninstall": {"host uninstall --enter-host --yes --restart-kubelet"},
	} {
		d, _ := daemonSet(t, filepath.Join(manifests.Dir(), dir))
		if got := commands(d); !slices.Equal(got, want) {
			t.Errorf("the init containers of %s run %q, want %q", dir, got, want)
		}
		if d.Namespace+"/"+d.Name != "wasmproxy/wasmproxy" {
			t.Errorf("the DaemonSet of %s is %s/%s", dir, d.Namespace, d.Name)
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

// TestPrivileges: nothing but the container that installs has rights on the host, and no
// container does anything when it ends.
func TestPrivileges(t *testing.T) {
	for _, dir := range []string{"plugins", "node", "uninstall"} {
		d, _ := daemonSet(t, filepath.Join(manifests.Dir(), dir))
		pod := d.Spec.Template.Spec
		if pod.HostNetwork || pod.HostIPC || pod.HostPID == (dir == "plugins") || *pod.AutomountServiceAccountToken || pod.PriorityClassName != "system-node-critical" {
			t.Errorf("the pod of %s is %+v", dir, pod)
		}
		for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
			s := c.SecurityContext
			if c.Lifecycle != nil {
				t.Errorf("container %s of %s does something when it starts or ends", c.Name, dir)
			}
			if c.Name == "host" {
				continue
			}
			if s.Privileged != nil || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || !slices.Equal(s.Capabilities.Drop, []core.Capability{"ALL"}) || len(s.Capabilities.Add) > 0 {
				t.Errorf("container %s of %s may do %+v", c.Name, dir, s)
			}
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
	command := regexp.MustCompile(`(?m)^wasmproxy plugin install \S+ --as (\S+) --dir \. `).FindSubmatch(page)
	if len(kustomizations) != 2 || command == nil {
		t.Fatalf("%d kustomizations, command %q", len(kustomizations), command)
	}
	return kustomizations, string(command[1])
}

// TestDocumented: the kustomization of docs/install.md builds with the file that the command there
// writes, and gives all containers its image. Another plugin is another revision of the DaemonSet.
// Its plugins can also come from an image. It uninstalls with another resource.
func TestDocumented(t *testing.T) {
	kustomizations, plugin := documented(t)
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "wasmproxy-kustomize"), os.DirFS(manifests.Dir())); err != nil {
		t.Fatal(err)
	}
	overlay := func(kustomization, module string, containers int) (apps.DaemonSet, string) {
		for name, content := range map[string]string{"kustomization.yaml": kustomization, plugin + ".wasm": module} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		d, configs := daemonSet(t, dir)
		if len(d.Spec.Template.Spec.InitContainers) != containers {
			t.Errorf("the init containers run %q", commands(d))
		}
		for _, c := range d.Spec.Template.Spec.InitContainers {
			if c.Image != "registry.example/wasmproxy:1.2.3" {
				t.Errorf("container %s has the image %s", c.Name, c.Image)
			}
		}
		return d, configs[0]
	}
	first, config := overlay(kustomizations[0], "\x00asm 1", 2)
	second, _ := overlay(kustomizations[0], "\x00asm 2", 2)
	if name := plugins(first).ConfigMap.Name; name != config || name == plugins(second).ConfigMap.Name {
		t.Errorf("the volumes are of %s and %s, the ConfigMap is %s", name, plugins(second).ConfigMap.Name, config)
	}
	third, _ := overlay(kustomizations[1], "", 2)
	if v := plugins(third); v.Image == nil || v.ConfigMap != nil || v.Image.Reference != "registry.example/plugins:1" {
		t.Errorf("the volume is %+v", v)
	}
	for _, kustomization := range kustomizations {
		last, _ := overlay(strings.Replace(kustomization, "[wasmproxy-kustomize/node]", "[wasmproxy-kustomize/uninstall]", 1), "", 1)
		if got := commands(last); !strings.HasPrefix(got[0], "host uninstall ") {
			t.Errorf("to uninstall, the init containers run %q", got)
		}
	}
}

// plugins is the volume that plugins come from.
func plugins(d apps.DaemonSet) core.Volume {
	all := d.Spec.Template.Spec.Volumes
	return all[slices.IndexFunc(all, func(v core.Volume) bool { return v.Name == "plugins" })]
}
