package simulate

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

const pod = `
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: prod, uid: u-1}
spec:
  containers:
    - name: app
      image: registry.example/web:1
      env: [{name: PASSWORD, value: secret}, {name: OLD, value: x}]
      resources: {limits: {cpu: 500m, memory: 128Mi}}
    - {name: helper, image: registry.example/helper:1}
`

func event(t *testing.T, hook abi.Hook, s Setting) *Event {
	t.Helper()
	if s.CgroupVersion == 0 {
		s.CgroupVersion = 2
	}
	s.Memory = 16 << 30
	e, err := Read([]byte(pod), hook, s)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestRequest has what goes to the runtime beside what came.
func TestRequest(t *testing.T) {
	res := play(t, event(t, abi.PreCreateContainer, Setting{}), func(ev plugin.Event, adj *plugin.Adjustment) error {
		return errors.Join(
			adj.SetInt64(abi.Container, abi.Resources+abi.CPUQuota, 100000),
			adj.SetEntry(abi.Container, abi.ContainerEnv, "PASSWORD", "more"),
			adj.SetEntry(abi.Container, abi.ContainerEnv, "NEW", "x"),
			adj.DeleteEntry(abi.Container, abi.ContainerEnv, "OLD"),
			adj.Add(plugin.Change{Op: plugin.SetList, Object: abi.Container, Field: abi.ContainerArgs, Text: string(abi.AppendList(nil, []string{"-v"}))}),
			adj.SetText(abi.Pod, abi.PodCgroupParent, "/kubepods/burstable/podu-1/batch"))
	})
	if res.Err != nil || res.Answer != nil || !res.Called {
		t.Fatalf("called %v, error %v, answer %v", res.Called, res.Err, res.Answer)
	}
	var got []string
	for _, d := range Diff(res.Request, res.Sent) {
		text := d.String()
		if d.Secret {
			text += " secret"
		}
		got = append(got, text)
	}
	want := []string{
		`~ config.envs[PASSWORD]: "secret" -> "more" secret`, `- config.envs[OLD]: "x" secret`,
		"~ config.linux.resources.cpu_quota: 50000 -> 100000",
		`~ sandbox_config.linux.cgroup_parent: "/kubepods/burstable/podu-1" -> "/kubepods/burstable/podu-1/batch"`,
		`+ config.args[0]: "-v"`, `+ config.envs[NEW]: "x" secret`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestSiblings is what the store holds: the Pod's other containers run, the event's
// own is as its hook finds it.
func TestSiblings(t *testing.T) {
	for hook, want := range map[abi.Hook]string{
		abi.PreCreateContainer: "helper running", abi.PostCreateContainer: "app created, helper running",
		abi.PreStartContainer: "app created, helper running", abi.PostStartContainer: "app running, helper running",
		abi.PreStopContainer: "app running, helper running", abi.PostStopContainer: "app exited, helper running",
		abi.PostRemoveContainer: "helper running", abi.PreExec: "app running, helper running",
		abi.Synchronize: "app running, helper running", abi.PreRunPodSandbox: "",
	} {
		t.Run(hook.String(), func(t *testing.T) {
			var got []string
			res := play(t, event(t, hook, Setting{}), func(ev plugin.Event, _ *plugin.Adjustment) error {
				all, _, _ := ev.Containers(abi.Pod, nil)
				for _, h := range all {
					name, _ := ev.Text(h, abi.ContainerName)
					state, _ := ev.Text(h, abi.ContainerState)
					got = append(got, name+" "+state)
				}
				return nil
			})
			if text := strings.Join(got, ", "); text != want || !res.Called || res.Err != nil {
				t.Errorf("called %v, error %v, got %q, want %q", res.Called, res.Err, text, want)
			}
		})
	}
}

// TestWrites has cgroup files of the pod, of a container that is made, and of another.
func TestWrites(t *testing.T) {
	write := func(o abi.Object, file, v string) func(plugin.Event, *plugin.Adjustment) error {
		return func(_ plugin.Event, adj *plugin.Adjustment) error { return adj.WriteFile(o, file, v) }
	}
	for _, c := range []struct {
		hook abi.Hook
		call func(plugin.Event, *plugin.Adjustment) error
		want Write
	}{
		{abi.PreRunPodSandbox, write(abi.Pod, "cpu.idle", "1"), Write{"kubepods/burstable/podu-1/cpu.idle", "0", "1"}},
		{abi.PreCreateContainer, write(abi.Container, "memory.high", "1000000"), Write{"kubepods/burstable/podu-1/sandbox-web-app/memory.high", "max", "1000000"}},
		{abi.PostCreateContainer, write(abi.Container, "cpu.idle", "1"), Write{"kubepods/burstable/podu-1/sandbox-web-app/cpu.idle", "0", "1"}},
		{abi.PostStartContainer, write(abi.Container, "cpu.idle", "1"), Write{"kubepods/burstable/podu-1/sandbox-web-app/cpu.idle", "0", "1"}},
		{abi.Tick, func(ev plugin.Event, adj *plugin.Adjustment) error {
			h, _ := ev.Find(abi.ByContainerID, "sandbox-web-helper", nil)
			return adj.WriteFile(h, "cpu.idle", "1")
		}, Write{"kubepods/burstable/podu-1/sandbox-web-helper/cpu.idle", "0", "1"}},
	} {
		t.Run(c.hook.String(), func(t *testing.T) {
			res := play(t, event(t, c.hook, Setting{}), c.call)
			if res.Err != nil || len(res.Writes) != 1 || res.Writes[0] != c.want {
				t.Errorf("error %v, remarks %q, wrote %v, want %v", res.Err, res.Remarks, res.Writes, c.want)
			}
		})
	}
}

// TestOutcomes are the ends that a call can come to.
func TestOutcomes(t *testing.T) {
	res := play(t, event(t, abi.PreExec, Setting{Command: []string{"sh"}}), func(ev plugin.Event, adj *plugin.Adjustment) error {
		if command, _ := ev.List(t.Context(), abi.Event, abi.EventCommand); slices.Equal(command, []string{"sh"}) {
			return adj.Reject(abi.RejectPermissionDenied, "no shell")
		}
		return nil
	})
	if res.Rejection == nil || res.Rejection.Reason != "no shell" || res.Sent != nil || res.Answer == nil {
		t.Errorf("refused: %v, sent %v, answer %v", res.Rejection, res.Sent, res.Answer)
	}
	wrong := errors.New("wrong")
	for _, hook := range []abi.Hook{abi.PreCreateContainer, abi.PostStopContainer, abi.PreStopContainer, abi.Tick, abi.Synchronize} {
		if res := play(t, event(t, hook, Setting{}), func(plugin.Event, *plugin.Adjustment) error { return wrong }); !errors.Is(res.Err, wrong) {
			t.Errorf("%v: error %v, want the plugin's own", hook, res.Err)
		}
	}
}

func TestDiffOfSecrets(t *testing.T) {
	for _, d := range Fields(&runtimeapi.PullImageRequest{Image: &runtimeapi.ImageSpec{Image: "web:1"}, Auth: &runtimeapi.AuthConfig{Username: "me", Password: "secret"}}) {
		if secret := strings.HasPrefix(d.Path, "auth."); d.Secret != secret {
			t.Errorf("%s: secret is %v", d.Path, d.Secret)
		}
	}
}

// TestRequestForms has one request as it is on the wire, and as protojson.
func TestRequestForms(t *testing.T) {
	request := &runtimeapi.RunPodSandboxRequest{RuntimeHandler: "kata", Config: &runtimeapi.PodSandboxConfig{Metadata: &runtimeapi.PodSandboxMetadata{Name: "web"}}}
	wire, err := proto.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	text, err := protojson.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range [][]byte{wire, text} {
		e, err := Read(file, abi.PreRunPodSandbox, Setting{CgroupVersion: 2})
		if err != nil {
			t.Fatal(err)
		}
		res := play(t, e, func(ev plugin.Event, adj *plugin.Adjustment) error {
			return adj.SetText(abi.Pod, abi.PodRuntimeHandler, "runc")
		})
		got := Diff(res.Request, res.Sent)
		if want := `~ runtime_handler: "kata" -> "runc"`; len(got) != 1 || got[0].String() != want {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

// TestReadRefuses says what is wrong with a file.
func TestReadRefuses(t *testing.T) {
	for _, c := range []struct {
		file string
		hook abi.Hook
		want string
	}{
		{" ", abi.PreCreateContainer, "it is empty"},
		{pod, 0, "it does not name its hook"},
		{"nonsense", abi.PreCreateContainer, "or a CreateContainerRequest"},
		{`{"container_id": "c"}`, abi.PreStartContainer, "give a Pod or a fixture"},
		{`{}`, abi.Tick, "Tick belongs to no CRI call"},
		{`{"hook": "PreCreateContainer"}`, abi.PreStartContainer, "no case is PreStartContainer; there are "},
	} {
		e, err := Read([]byte(c.file), c.hook, Setting{CgroupVersion: 2})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q for %v: event %v, error %v, want %q in it", c.file, c.hook, e, err, c.want)
		}
	}
}

// recorded returns the last call of the hook's method that testdata/cri has of a real runtime, after those before it; nil if there
// is none.
func recorded(t *testing.T, name string, hook abi.Hook) *Event {
	t.Helper()
	file, err := os.ReadFile("../../testdata/cri/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var entries []struct {
		Method            string
		Request, Response json.RawMessage
	}
	if err := json.Unmarshal(file, &entries); err != nil {
		t.Fatal(err)
	}
	var e *Event
	var before []Call
	for _, entry := range entries {
		m := cri.MethodNamed(entry.Method)
		if m == nil {
			continue
		}
		c := newCall(m.NewRequest())
		read := protojson.UnmarshalOptions{DiscardUnknown: true}
		if err := errors.Join(read.Unmarshal(entry.Request, c.Request), read.Unmarshal(entry.Response, c.Response)); err != nil {
			t.Fatal(err)
		}
		if m == cri.MethodNamed(hook.Info().Method) {
			e = &Event{Hook: hook, Node: DefaultNode(2), Grant: abi.DefaultGrant(), Before: slices.Clone(before), Call: c}
		}
		if m.Effect != cri.Nothing {
			before = append(before, c)
		}
	}
	return e
}

// TestNoChangeWithoutThePlugin plays each hook that a Pod or a fixture has, or calls of real runtimes, to
// a plugin that does nothing, on both versions of cgroups.
func TestNoChangeWithoutThePlugin(t *testing.T) {
	for _, version := range []int{1, 2} {
		for _, info := range abi.Hooks {
			wantNoChange(t, event(t, info.Hook, Setting{CgroupVersion: version, Command: []string{"sh"}}))
		}
	}
	for _, name := range []string{"containerd-1.6.20", "containerd-2.4.2", "cri-o-1.37.0"} {
		played := 0
		for _, info := range abi.Hooks {
			if e := recorded(t, name, info.Hook); e != nil {
				wantNoChange(t, e)
				played++
			}
		}
		if played < 10 {
			t.Errorf("%s has calls of %d hooks alone", name, played)
		}
	}
	files := `{"pod": {"cpu.stat": "usage_usec 1\n\n"}, "container": {"cpu.stat": "usage_usec 1\nnr_periods 2\n", "cpu.max": "50000 100000\n\n", "memory.current": "\n7 \n"}}`
	for _, info := range abi.Hooks {
		e, err := Read([]byte(`{"hook": "`+info.Name+`", "pod": {"name": "web"}, "container": {"name": "app"}, "cgroup_files": `+files+`}`), 0, Setting{})
		if err != nil {
			t.Fatal(err)
		}
		wantNoChange(t, e)
	}
}

func wantNoChange(t *testing.T, e *Event) {
	t.Helper()
	res := play(t, e, func(plugin.Event, *plugin.Adjustment) error { return nil })
	if res.Err != nil || res.Answer != nil {
		t.Errorf("%s, cgroups v%d: error %v, answer %v", res.Title, e.Node.CgroupVersion, res.Err, res.Answer)
	}
	if d := res.Changes(); len(d)+len(res.Writes)+len(res.Updates) > 0 || len(res.KV) > 0 || res.Sent != nil && !proto.Equal(res.Request, res.Sent) {
		t.Errorf("%s, cgroups v%d: changes %v, writes %v, updates %v, kept %v", res.Title, e.Node.CgroupVersion, d, res.Writes, res.Updates, res.KV)
	}
}

// TestPluginIsNotBlamedForKubeletsChange plays a pod that lost an annotation between
// RunPodSandbox and CreateContainer, to a plugin that does nothing.
func TestPluginIsNotBlamedForKubeletsChange(t *testing.T) {
	metadata := &runtimeapi.PodSandboxMetadata{Name: "web"}
	config := &runtimeapi.PodSandboxConfig{Metadata: metadata, Annotations: map[string]string{"team/owner": "bob"}}
	run := newCall(&runtimeapi.RunPodSandboxRequest{Config: config}).answer("p", "")
	create := newCall(&runtimeapi.CreateContainerRequest{
		PodSandboxId: "p", SandboxConfig: &runtimeapi.PodSandboxConfig{Metadata: metadata},
		Config: &runtimeapi.ContainerConfig{Metadata: &runtimeapi.ContainerMetadata{Name: "app"}},
	}).answer("p", "c")
	e := &Event{Hook: abi.PreCreateContainer, Node: DefaultNode(2), Grant: abi.DefaultGrant(), Before: []Call{run}, Call: create}
	res := play(t, e, func(plugin.Event, *plugin.Adjustment) error { return nil })
	if diff := Diff(res.Request, res.Sent); len(diff) > 0 || !res.Called || res.Err != nil {
		t.Errorf("called %v, error %v, changes %v of a plugin that made none", res.Called, res.Err, diff)
	}
}
