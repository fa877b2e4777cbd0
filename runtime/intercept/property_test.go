package intercept_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup"
	"github.com/wasmproxy/wasmproxy/runtime/explain"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// kernelFile is a cgroup file with values that plugins want, and texts that kubelet writes to the
// kernel's own file. No two of them mean the same.
type kernelFile struct {
	name            string
	v1, v2          string // the kernel's own, below the mount of the hierarchies, and in v2
	wanted, kubelet func(n int) string
}

func above(base, step int, unit string) func(int) string {
	return func(n int) string { return strconv.Itoa(base+n*step) + unit }
}

var kernelFiles = []kernelFile{
	{"cpu.weight", "cpu/cpu.shares", "cpu.weight", above(2000, 1, ""), above(102, 1, "")},
	{"pids.max", "pids/pids.max", "pids.max", above(1000, 1, ""), above(3000, 1, "")},
	{"cpu.max", "cpu/cpu.cfs_quota_us", "cpu.max", above(10_000, 1, " 100000"), above(20_000, 1, "")},
	{"memory.max", "memory/memory.limit_in_bytes", "memory.max", above(100<<20, 4096, ""), above(200<<20, 4096, "")},
}

// ofPods is how many of kernelFiles a plugin may write of a pod.
const ofPods = 2

// kernelWorld is a node with a pod and two containers, whose cgroups are of this machine's kernel,
// and what everybody wants.
type kernelWorld struct {
	*node
	t      *testing.T
	fs     *cgroup.FS
	parent string
	state  string
	ask    map[string]plugin.Change            // the next wish of each plugin
	named  *runtimeapi.LinuxContainerResources // by kubelet's next update
	model  map[string]map[string]*wantedFile
}

type wantedFile struct {
	kubelet string // as the kernel's own file shows it
	owner   string
	wish    string
}

var propertyPlugins = []string{"10-a", "20-b", "30-c"}

func newKernelWorld(t *testing.T) *kernelWorld {
	if os.Getuid() != 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("root is needed to make a cgroup")
		}
		t.Skip("root is needed to make a cgroup")
	}
	files, err := cgroup.Open("/sys/fs/cgroup", "auto")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { files.Close() })
	w := &kernelWorld{t: t, fs: files, parent: fmt.Sprintf("/wasmproxy-%d-any-sequence", rand.Uint64()), state: filepath.Join(t.TempDir(), "state"),
		ask: map[string]plugin.Change{}, model: map[string]map[string]*wantedFile{}}
	w.make("")
	w.open(nil)
	w.runSandbox("pod1")
	w.born("a")
	w.born("b")
	return w
}

func (w *kernelWorld) runSandbox(id string) {
	config := podConfig()
	config.Linux.CgroupParent = w.parent
	_, err := w.call(w.t.Context(), "RunPodSandbox", &runtimeapi.RunPodSandboxRequest{Config: config}, &runtimeapi.RunPodSandboxResponse{PodSandboxId: id})
	w.must(err)
}

// dirs are the directories of a container's cgroup, or of the pod's if the id is empty.
func (w *kernelWorld) dirs(id string) (all []string) {
	if w.fs.Version() == 2 {
		return []string{filepath.Join("/sys/fs/cgroup", w.parent, id)}
	}
	for _, controller := range []string{"cpu", "pids", "memory"} {
		all = append(all, filepath.Join("/sys/fs/cgroup", controller, w.parent, id))
	}
	return all
}

func (w *kernelWorld) make(id string) {
	for _, dir := range w.dirs(id) {
		w.mustDo(os.Mkdir(dir, 0o755))
		w.t.Cleanup(func() {
			if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
				w.t.Error(err)
			}
		})
		if w.fs.Version() == 2 && id == "" {
			w.mustDo(os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+cpu +pids +memory"), 0))
		}
	}
	w.model[id] = map[string]*wantedFile{}
	for _, f := range w.files(id) {
		w.model[id][f.name] = &wantedFile{kubelet: w.raw(id, f)}
	}
}

func (w *kernelWorld) mustDo(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *kernelWorld) files(id string) []kernelFile {
	if id == "" {
		return kernelFiles[:ofPods]
	}
	return kernelFiles
}

// path is that of the kernel's own file.
func (w *kernelWorld) path(id string, f kernelFile) string {
	if w.fs.Version() == 2 {
		return filepath.Join("/sys/fs/cgroup", w.parent, id, f.v2)
	}
	controller, name, _ := strings.Cut(f.v1, "/")
	return filepath.Join("/sys/fs/cgroup", controller, w.parent, id, name)
}

func (w *kernelWorld) raw(id string, f kernelFile) string {
	w.t.Helper()
	text, err := os.ReadFile(w.path(id, f))
	w.mustDo(err)
	return strings.TrimSpace(string(text))
}

// open is a start of the proxy, with the store of the one before.
func (w *kernelWorld) open(before *node) {
	var members []plugin.Member
	for _, id := range propertyPlugins {
		wants := func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
			if c, ok := w.ask[id]; ok {
				_ = adj.Add(c) // a conflict is an outcome
			}
			return nil
		}
		m := on(abi.PreUpdateContainerResources, wants)
		m.ID, m.Hooks = id, abi.HookSetOf(abi.PreUpdateContainerResources, abi.PreRunPodSandbox)
		members = append(members, m)
	}
	var opts []option
	if before != nil {
		w.must(before.queue.Drain(w.t.Context())) // it has the state directory alone
		opts = append(opts, func(o *intercept.Options) { o.Store = before.options.Store })
	}
	opts = append(opts, withCgroups(w.fs), withLedger(openLedger(w.t, w.state)))
	w.node = newNode(w.t, members, opts...)
	if before != nil {
		resync(w.t.Context(), &w.options.Enforcer)
	}
}

func (w *kernelWorld) born(id string) {
	w.make(id)
	req := createRequest()
	req.SandboxConfig.Linux.CgroupParent, req.Config.Metadata.Name = w.parent, id
	_, err := w.call(w.t.Context(), "CreateContainer", req, &runtimeapi.CreateContainerResponse{ContainerId: id})
	w.must(err)
	_, err = w.call(w.t.Context(), "StartContainer", &runtimeapi.StartContainerRequest{ContainerId: id}, &runtimeapi.StartContainerResponse{})
	w.must(err)
}

func (w *kernelWorld) gone(id string) {
	for _, dir := range w.dirs(id) {
		w.mustDo(os.Remove(dir))
	}
	_, err := w.call(w.t.Context(), "RemoveContainer", &runtimeapi.RemoveContainerRequest{ContainerId: id}, &runtimeapi.RemoveContainerResponse{})
	w.must(err)
}

// update is an update by kubelet, in which the plugins may ask, and the runtime may write. Of the
// pod they ask when another sandbox of it is run.
func (w *kernelWorld) update(id string) {
	var err error
	if id == "" && len(w.ask) > 0 {
		w.runSandbox("pod2")
		w.removeSandbox("pod2")
	} else if id == "" {
		req := &runtimeapi.UpdatePodSandboxResourcesRequest{PodSandboxId: "pod1"}
		_, err = w.call(w.t.Context(), "UpdatePodSandboxResources", req, &runtimeapi.UpdatePodSandboxResourcesResponse{})
	} else {
		req := &runtimeapi.UpdateContainerResourcesRequest{ContainerId: id, Linux: w.named}
		_, err = w.call(w.t.Context(), "UpdateContainerResources", req, &runtimeapi.UpdateContainerResourcesResponse{})
	}
	w.must(err)
	w.updating, w.named = nil, nil
	clear(w.ask)
}

// naming is what an update says to have the runtime write a text to the kernel's own file.
func (w *kernelWorld) naming(f kernelFile, text string) *runtimeapi.LinuxContainerResources {
	n, _ := strconv.ParseInt(text, 10, 64)
	switch {
	case w.fs.Version() == 2 || f.name == "pids.max":
		return &runtimeapi.LinuxContainerResources{Unified: map[string]string{f.v2: text}}
	case f.name == "cpu.weight":
		return &runtimeapi.LinuxContainerResources{CpuShares: n}
	case f.name == "cpu.max":
		return &runtimeapi.LinuxContainerResources{CpuQuota: n, CpuPeriod: 100_000}
	}
	return &runtimeapi.LinuxContainerResources{MemoryLimitInBytes: n}
}

func (w *kernelWorld) step(r *rand.Rand) (what string) {
	id := []string{"", "a", "b"}[r.IntN(3)]
	f := w.files(id)[r.IntN(len(w.files(id)))]
	p, n, m := propertyPlugins[r.IntN(3)], r.IntN(100), w.model[id][f.name]
	switch r.IntN(10) {
	case 0, 1, 2, 3:
		object := abi.Container
		if id == "" {
			object = abi.Pod
		}
		w.ask[p] = plugin.Change{Op: plugin.WriteFile, Object: object, Key: f.name, Text: f.wanted(n)}
		if m.owner == "" || m.owner == p { // another plugin hears of a conflict, or wants the same
			m.owner, m.wish = p, f.wanted(n)
		} else if m.wish == f.wanted(n) {
			clear(w.ask)
		}
		w.update(id)
		return "ask " + p + " " + f.name
	case 4, 5:
		text := f.kubelet(n)
		if n%4 == 0 && id != "" { // just what is there, which may be a plugin's; of a pod, kubelet leaves that
			text = w.raw(id, f)
			w.named = w.naming(f, text)
		}
		w.updating = func() { w.mustDo(os.WriteFile(w.path(id, f), []byte(text), 0)); m.kubelet = w.raw(id, f) }
		w.update(id)
		return "kubelet " + f.name
	case 6:
		w.open(w.node)
		return "restart"
	case 7:
		for _, files := range w.model {
			for _, m := range files {
				if m.owner == p {
					m.owner, m.wish = "", ""
				}
			}
		}
		w.withdraw(p)
		return p + " removed"
	case 8:
		w.options.Scan(w.t.Context())
		return "scan"
	}
	if id != "" {
		w.gone(id)
		w.born(id)
	}
	return "another container"
}

// check compares the kernel with the model.
func (w *kernelWorld) check(when string) {
	w.t.Helper()
	for id, files := range w.model {
		for _, f := range w.files(id) {
			m := files[f.name]
			got, want := w.raw(id, f), m.kubelet
			if m.owner != "" {
				got, _ = w.fs.Read(filepath.Join(w.parent, id), f.name)
				want = m.wish
			}
			if got != want {
				w.t.Fatalf("%s: %s of %q is %q, want %q of %q\n%s", when, f.name, id, got, want, m.owner, w.log)
			}
		}
	}
}

// told compares what is explained of the pod and its containers with the model: each file that a
// plugin wants, with that plugin and what the kernel holds, and no other.
func (w *kernelWorld) told(when string) {
	w.t.Helper()
	report, err := w.options.Explain(w.t.Context(), "prod/web")
	w.must(err)
	told, want := map[string]string{}, map[string]string{}
	note := func(id string, o *explain.Object) {
		for _, v := range o.Values {
			if v.Kind == explain.File {
				told[id+" "+v.Name] = fmt.Sprint(v.Owner, " ", *cmp.Or(v.Kernel, new(o.Unread)), " ", v.State)
			}
		}
	}
	note("", &report.Pods[0].Object)
	for _, c := range report.Pods[0].Containers {
		note(c.ID, &c.Object)
	}
	for id, files := range w.model {
		for file, m := range files {
			if m.owner != "" {
				want[id+" "+file] = m.owner + " " + m.wish + " "
			}
		}
	}
	if diff := gocmp.Diff(want, told); diff != "" {
		w.t.Fatalf("%s: what is explained (-want +got):\n%s\n%s", when, diff, w.log)
	}
}

// TestAnySequenceOnTheKernel holds, with the machine's own cgroups, that after any sequence of
// kubelet's updates, wishes of plugins, restarts of the proxy, and removals of plugins and
// containers, the kernel holds what the ledger says, which is what is explained, and after the
// removal of all plugins the very text that kubelet wrote last.
func TestAnySequenceOnTheKernel(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r, w := rand.New(rand.NewPCG(seed, 2)), newKernelWorld(t)
			for step := range 40 {
				when := fmt.Sprintf("step %d, %s", step, w.step(r))
				w.check(when)
				w.told(when)
			}
			w.withdraw(propertyPlugins...)
			for _, files := range w.model {
				for _, m := range files {
					m.owner = ""
				}
			}
			w.check("without plugins")
			w.told("without plugins")
			if left := w.options.Ledger.Objects(); len(left) > 0 {
				t.Errorf("the records of %v remain, %+v", left, w.options.Ledger.Record(left[0]).Values())
			}
		})
	}
}
