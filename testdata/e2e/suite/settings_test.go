package suite_test

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/cgroupfs"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/settings"
)

// limited are the pods whose cgroup files the plugin setter sets, and their cgroups.
type limited struct {
	settings []settings.Setting
	pods     []*core.Pod
	groups   map[string]map[string]string // of pods, by role
}

// TestSettings is package cgroupv2's test on this machine's cgroup version: the plugin's values are in the
// kernel after the start, an update, a kill of wasmproxy and a foreign write to a file, and no longer
// once the plugin is removed.
func TestSettings(t *testing.T) {
	node.StartRuntime(t)
	proxy := node.StartProxy(t, node.Setter)
	l := startLimited(t)
	l.expect(t, settings.Setting.Expected)
	l.resize(t)
	proxy.Kill()
	l.expect(t, settings.Setting.Expected)
	proxy.Start(t)
	l.resize(t)
	for _, s := range settings.Only(l.settings, settings.Setting.OfFile) {
		if err := cgroupfs.Write(l.group(s), s.File, s.Foreign()); err != nil {
			t.Errorf("%s of %s/%s: %v", s.File, s.Pod, s.Object(), err)
		}
	}
	l.await(t, l.settings, settings.Setting.Expected)
	l.awaitExplained(t, proxy)
	if err := os.Remove(filepath.Join(proxy.PluginDir, node.Setter.File)); err != nil {
		t.Fatal(err)
	}
	l.await(t, settings.Only(l.settings, settings.Setting.Undone), settings.Setting.Original)
	expectNoFailures(t, proxy)
}

// awaitExplained compares what wasmproxy explains to be in the kernel with what is there: each file
// that the plugin sets is the plugin's, and as the kernel shows it, in version 2's form. A field is in
// the kernel a moment before the runtime's answer tells the proxy so.
func (l *limited) awaitExplained(t *testing.T, proxy *node.Proxy) {
	t.Helper()
	l.expect(t, settings.Setting.Expected)
	owner := strings.TrimSuffix(node.Setter.File, ".wasm")
	node.Eventually(t, time.Minute, "wasmproxy explains the values", func() error {
		explained := map[string]map[string][]node.Explained{}
		for _, pod := range l.pods {
			explained[pod.Name] = proxy.Explain(t, pod)
		}
		var wrong error
		expect := func(pod, object string, want node.Explained) {
			if all := explained[pod][object]; !slices.Contains(all, want) {
				wrong = errors.Join(wrong, fmt.Errorf("%s/%s: it explains %+v, want %+v", pod, object, all, want))
			}
		}
		for _, s := range settings.Only(l.settings, settings.Setting.OfFile) {
			_, file, _ := strings.Cut(s.Target, ".file.")
			expect(s.Pod, s.Object(), node.Explained{Kind: "file", Name: file, Owner: owner, Kernel: s.Shown})
		}
		expect("fields", "main", node.Explained{Kind: "field", Name: "cpu_quota", Owner: owner, Kernel: "30000"})
		return wrong
	})
}

func startLimited(t *testing.T) *limited {
	t.Helper()
	l := &limited{settings: tableOf(blockDevice(t)), groups: map[string]map[string]string{}}
	l.pods = settings.Pods(t, l.settings)
	kubelet := node.StartKubelet(t, node.RuntimeKind().ProxyEndpoint, nil)
	for _, pod := range l.pods {
		kubelet.Apply(t, pod)
	}
	for _, pod := range l.pods {
		kubelet.AwaitReady(t, pod)
		l.groups[pod.Name] = cgroups(t, pod)
	}
	return l
}

// tableOf is the table of this machine's cgroup version.
func tableOf(device string) []settings.Setting {
	if cgroupfs.Version() == 1 {
		return settings.V1(device)
	}
	table := settings.V2(device)
	for k := range table {
		s := &table[k]
		if weight, differs := node.RuntimeKind().Weights[s.Without]; differs && strings.HasPrefix(s.File, "cpu.weight") && s.Object() != "pod" {
			s.Without = weight
		}
		if weight, differs := node.RuntimeKind().Weights[s.With]; differs && s.File == "cpu.weight" && !s.OfFile() {
			s.With = weight
		}
	}
	return table
}

// blockDevice returns the numbers of a block device of this machine, such as 8:0.
func blockDevice(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("/sys/block/*/dev")
	if err != nil || len(files) == 0 {
		t.Fatalf("this machine has no block device, whose writes a plugin limits here: %v", err)
	}
	numbers, err := os.ReadFile(files[len(files)-1])
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(numbers))
}

// resize updates the containers as kubelet does when it resizes a pod: up to what it had before.
func (l *limited) resize(t *testing.T) {
	t.Helper()
	for _, resources := range []*cri.LinuxContainerResources{
		{CpuPeriod: 100000, CpuQuota: 40000, CpuShares: 512, MemoryLimitInBytes: 60 << 20, CpusetCpus: "1"},
		{CpuPeriod: 100000, CpuQuota: 50000, CpuShares: 102, MemoryLimitInBytes: 64 << 20, CpusetCpus: "0-1"},
	} {
		for _, pod := range l.pods {
			if err := update(t, node.RuntimeKind().ProxyEndpoint, mainContainer(t, pod), resources); err != nil {
				t.Errorf("updating pod %s: %v", pod.Name, err)
			}
		}
		l.expect(t, settings.Setting.Expected)
		expectGroupFile(t, l.groups["fields"]["main"], "cpuset/cpuset.cpus", resources.CpusetCpus)
	}
}

// mainContainer returns the id of the pod's running container main. In cgroup version 2 the table has
// a pod with another one.
func mainContainer(t *testing.T, pod *core.Pod) string {
	t.Helper()
	containers, err := node.DialCRI(t, node.RuntimeKind().Endpoint).ListContainers(t.Context(), &cri.ListContainersRequest{
		Filter: &cri.ContainerFilter{
			State:         &cri.ContainerStateValue{State: cri.ContainerState_CONTAINER_RUNNING},
			LabelSelector: map[string]string{"io.kubernetes.pod.name": node.PodName(pod), "io.kubernetes.container.name": "main"},
		},
	})
	if err != nil || len(containers.Containers) != 1 {
		t.Fatalf("pod %s has %d running containers main, want 1: %v", pod.Name, len(containers.GetContainers()), err)
	}
	return containers.Containers[0].Id
}

// group is the cgroup of which the file of a setting counts. With crun on version 2 that is the one with the processes, and
// of weights the scope.
func (l *limited) group(s settings.Setting) string {
	scope, inner := path.Split(l.groups[s.Pod][s.Object()])
	if inner == "container" && (strings.Contains(s.File, "weight") || s.File == "cpu.idle") {
		return path.Clean(scope)
	}
	return l.groups[s.Pod][s.Object()]
}

// compare returns which files do not show what want says.
func (l *limited) compare(all []settings.Setting, want func(settings.Setting) string) error {
	var errs []error
	for _, s := range all {
		if got, err := cgroupfs.Read(l.group(s), s.File); err != nil || got != want(s) {
			errs = append(errs, fmt.Errorf("%s of %s/%s is %q, want %q (%v)", s.File, s.Pod, s.Object(), got, want(s), err))
		}
		scope, inner := path.Split(l.group(s))
		if inner != "container" || !s.OfFile() || s.File == "memory.oom.group" { // which systemd sets to 0 in the scope
			continue
		}
		if got, err := cgroupfs.Read(scope, s.File); err != nil || got != want(s) { // a limit holds if both have it
			errs = append(errs, fmt.Errorf("%s of the scope of %s/%s is %q, want %q (%v)", s.File, s.Pod, s.Object(), got, want(s), err))
		}
	}
	return errors.Join(errs...)
}

func (l *limited) expect(t *testing.T, want func(settings.Setting) string) {
	t.Helper()
	if err := l.compare(l.settings, want); err != nil {
		t.Error(err)
	}
}

// await waits until wasmproxy has looked at the files, which it does every 90 s.
func (l *limited) await(t *testing.T, all []settings.Setting, want func(settings.Setting) string) {
	t.Helper()
	node.Eventually(t, 5*time.Minute, "the files are as they should be", func() error { return l.compare(all, want) })
}
