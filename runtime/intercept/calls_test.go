package intercept_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// ofCalls are the calls that are about a pod and container which exist, or about
// an image, and what their events say beyond those.
var ofCalls = []struct {
	method      string
	req, answer proto.Message
	pre, post   []string
}{
	{"Exec", &runtimeapi.ExecRequest{ContainerId: "c1", Cmd: []string{"sh", "-c", "ls"}, Tty: true, Stdin: true}, &runtimeapi.ExecResponse{Url: "http://x"},
		[]string{"event.command: [sh -c ls]", "event.tty: 1", "event.stdin: 1"}, nil},
	{"ExecSync", &runtimeapi.ExecSyncRequest{ContainerId: "c1", Cmd: []string{"ls"}, Timeout: 7}, &runtimeapi.ExecSyncResponse{Stdout: []byte("x"), ExitCode: 3},
		[]string{"event.command: [ls]", "event.timeout: 7"}, []string{"event.exit_code: 3"}},
	{"Attach", &runtimeapi.AttachRequest{ContainerId: "c1", Stdin: true}, &runtimeapi.AttachResponse{Url: "http://x"},
		[]string{"event.tty: 0", "event.stdin: 1"}, nil},
	{"PortForward", &runtimeapi.PortForwardRequest{PodSandboxId: "pod1", Port: []int32{80, 443}}, &runtimeapi.PortForwardResponse{Url: "http://x"},
		[]string{"event.ports: [80 443]"}, nil},
	{"CheckpointContainer", &runtimeapi.CheckpointContainerRequest{ContainerId: "c1", Location: "/tmp/c.tar", Timeout: 5}, &runtimeapi.CheckpointContainerResponse{},
		[]string{"event.timeout: 5", "event.location: /tmp/c.tar"}, nil},
	{"CheckpointPod", &runtimeapi.CheckpointPodRequest{PodSandboxId: "pod1", OutputPath: "/tmp/p.tar"}, &runtimeapi.CheckpointPodResponse{},
		[]string{"event.location: /tmp/p.tar"}, nil},
	{"RestorePod", &runtimeapi.RestorePodRequest{CheckpointPath: "/tmp/p.tar", Config: podConfig(), RuntimeHandler: "runc"}, &runtimeapi.RestorePodResponse{PodSandboxId: "pod2"},
		[]string{"event.location: /tmp/p.tar"}, nil},
	{"PullImage", &runtimeapi.PullImageRequest{Image: &runtimeapi.ImageSpec{Image: "web:1"}, SandboxConfig: podConfig()}, &runtimeapi.PullImageResponse{ImageRef: "sha256:1"},
		[]string{"event.image: web:1"}, []string{"event.image_ref: sha256:1"}},
	{"RemoveImage", &runtimeapi.RemoveImageRequest{Image: &runtimeapi.ImageSpec{Image: "sha256:1", UserSpecifiedImage: "web:1"}}, &runtimeapi.RemoveImageResponse{},
		[]string{"event.image: web:1"}, nil},
	{"StopContainer", &runtimeapi.StopContainerRequest{ContainerId: "c1", Timeout: 30}, &runtimeapi.StopContainerResponse{}, []string{"event.timeout: 30"}, nil},
	{"StopPodSandbox", &runtimeapi.StopPodSandboxRequest{PodSandboxId: "pod1"}, &runtimeapi.StopPodSandboxResponse{}, nil, nil},
	{"UpdatePodSandboxResources", &runtimeapi.UpdatePodSandboxResourcesRequest{PodSandboxId: "pod1"}, &runtimeapi.UpdatePodSandboxResourcesResponse{}, nil, nil},
	{"RemoveContainer", &runtimeapi.RemoveContainerRequest{ContainerId: "c1"}, &runtimeapi.RemoveContainerResponse{}, nil, nil},
	{"RemovePodSandbox", &runtimeapi.RemovePodSandboxRequest{PodSandboxId: "pod1"}, &runtimeapi.RemovePodSandboxResponse{}, nil, nil},
}

// ofEvent are an event's own fields beyond its hook and time.
func ofEvent(ev plugin.Event) []string {
	fields, _ := read(ev)
	return slices.DeleteFunc(fields, func(f string) bool {
		return !strings.HasPrefix(f, "event.") || strings.HasPrefix(f, "event.hook") || strings.HasPrefix(f, "event.time:")
	})
}

// Every call tells what it asks and, afterwards, what was answered, of the
// pod and container that it names; both messages pass as they are.
func TestEventsOfEveryCall(t *testing.T) {
	covered := abi.HookSetOf()
	for _, test := range ofCalls {
		t.Run(test.method, func(t *testing.T) {
			heard := map[abi.Hook][]string{}
			tell := func(_ context.Context, ev plugin.Event, _ *plugin.Adjustment) error {
				heard[ev.Hook()] = ofEvent(ev)
				name, errno := ev.Text(abi.Pod, abi.PodName)
				if wanted := ev.Hook().Info().Object != abi.Event || test.method == "PullImage"; (errno == abi.OK) != wanted || wanted && name != "web" {
					t.Errorf("%v: pod %q, %v", ev.Hook(), name, errno)
				}
				if name, _ := ev.Text(abi.Container, abi.ContainerName); (name == "app") != (ev.Hook().Info().Object == abi.Container) {
					t.Errorf("%v: container %q", ev.Hook(), name)
				}
				return nil
			}
			var members []plugin.Member
			for _, info := range abi.Hooks {
				if info.Method == test.method {
					members = append(members, on(info.Hook, tell))
					covered |= abi.HookSetOf(info.Hook)
				}
			}
			n := newNode(t, members)
			n.runPod()
			frame, err := n.call(t.Context(), test.method, test.req, test.answer)
			n.must(err)
			n.must(n.queue.Drain(t.Context()))
			if n.sent != frame {
				t.Error("an unchanged request was encoded anew")
			}
			var got [2][]string
			for _, info := range abi.Hooks {
				if info.Method == test.method {
					got[flagOf(info.Phase == abi.After)] = heard[info.Hook]
				}
			}
			pre := append(test.pre, "event.method: "+test.method)
			post := append(slices.Clone(pre), test.post...)
			for i, want := range [][]string{pre, post} {
				slices.Sort(want)
				slices.Sort(got[i])
				if diff := cmp.Diff(want, got[i]); diff != "" {
					t.Errorf("hook %d (-want +got):\n%s", i, diff)
				}
			}
		})
	}
	for _, info := range abi.Hooks {
		if known := info.Hook <= abi.PostUpdateContainerResources || info.Phase == abi.Standalone; !known && !covered.Has(info.Hook) {
			t.Errorf("no call of this test has %s", info.Name)
		}
	}
}

func flagOf(b bool) int {
	if b {
		return 1
	}
	return 0
}

// A method that nobody hooks and the store does not follow has no interceptor.
func TestUnhookedCallsPass(t *testing.T) {
	n := newNode(t, []plugin.Member{on(abi.PreExec, nothing)})
	for _, m := range cri.Methods {
		hooked := strings.HasSuffix(m.Name, "/Exec")
		if (n.route(m.Name) != nil) != (m.Effect != cri.Nothing || hooked) {
			t.Errorf("%s: intercepted %v", m.Name, n.route(m.Name) != nil)
		}
	}
}

// A call reports whether the store reads it, whether plugins have a hook in it, and how long
// plugins took before the answer.
func TestReportOfACall(t *testing.T) {
	const nap = 5 * time.Millisecond
	sleep := func(context.Context, plugin.Event, *plugin.Adjustment) error { time.Sleep(nap); return nil }
	n := newNode(t, []plugin.Member{on(abi.PreRunPodSandbox, sleep), on(abi.PreRunPodSandbox, sleep), on(abi.PreExec, sleep), on(abi.PostStopPodSandbox, sleep)})
	for _, tt := range []struct {
		method           string
		req, answer      proto.Message
		followed, hooked bool
		least, most      time.Duration
	}{
		{"RunPodSandbox", &runtimeapi.RunPodSandboxRequest{Config: podConfig()}, &runtimeapi.RunPodSandboxResponse{PodSandboxId: "p"}, true, true, 2 * nap, time.Hour},
		{"Exec", &runtimeapi.ExecRequest{ContainerId: "none"}, &runtimeapi.ExecResponse{}, false, true, 0, 0},
		{"StopPodSandbox", &runtimeapi.StopPodSandboxRequest{PodSandboxId: "p"}, &runtimeapi.StopPodSandboxResponse{}, true, true, 0, 0},
		{"RemovePodSandbox", &runtimeapi.RemovePodSandboxRequest{PodSandboxId: "p"}, &runtimeapi.RemovePodSandboxResponse{}, true, false, 0, 0},
	} {
		if _, err := n.call(t.Context(), tt.method, tt.req, tt.answer); err != nil {
			t.Fatal(err)
		}
		if got := n.report; got.Followed != tt.followed || got.Hooked != tt.hooked || got.Plugins < tt.least || got.Plugins > tt.most {
			t.Errorf("%s: got %+v, want %+v", tt.method, got, tt)
		}
	}
}

// What is to stop or go does so whatever plugins say, and whatever becomes of
// them.
func TestLeavingHooksRefuseNothing(t *testing.T) {
	refuse := func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		if err := adj.Reject(0, "stay"); err == nil {
			return errors.New("a refusal was taken")
		}
		if err := adj.SetInt64(abi.Container, abi.Resources+abi.CPUShares, 5); !errors.Is(err, abi.ReadOnly) {
			return errors.New("a write was taken")
		}
		return &plugin.Rejection{Code: abi.RejectPermissionDenied, Reason: "stay"}
	}
	m := on(abi.PreStopContainer, refuse)
	m.Policy = plugin.Fail
	n := newNode(t, []plugin.Member{m})
	n.runPod()
	for _, id := range []string{"c1", "c9"} { // c9 is nobody's: the runtime decides
		_, err := n.call(t.Context(), "StopContainer", &runtimeapi.StopContainerRequest{ContainerId: id}, &runtimeapi.StopContainerResponse{})
		n.must(err)
	}
	n.backend.down = true
	_, err := n.call(t.Context(), "StopContainer", &runtimeapi.StopContainerRequest{ContainerId: "c8"}, &runtimeapi.StopContainerResponse{})
	n.must(err)
	if n.sent == nil || strings.Contains(n.log.String(), "was taken") {
		t.Errorf("the log:\n%s", n.log)
	}
}

// exec-guard: an exec is refused with the plugin's code, before the runtime
// hears of it.
func TestExecRefused(t *testing.T) {
	n := newNode(t, []plugin.Member{on(abi.PreExec, func(_ context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
		return adj.Reject(abi.RejectPermissionDenied, "no shells")
	})})
	n.runPod()
	_, err := n.call(t.Context(), "Exec", &runtimeapi.ExecRequest{ContainerId: "c1", Cmd: []string{"sh"}}, &runtimeapi.ExecResponse{})
	if status.Code(err) != codes.PermissionDenied || n.sent != nil {
		t.Errorf("error %v, sent %v", err, n.sent != nil)
	}
}

// A pulled image is replaced in the request, and the store's pods are untouched.
func TestPullAnotherImage(t *testing.T) {
	n := newNode(t, []plugin.Member{on(abi.PrePullImage, func(_ context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
		return adj.SetText(abi.Event, abi.EventImage, "mirror/web:1")
	})})
	_, err := n.call(t.Context(), "PullImage", &runtimeapi.PullImageRequest{
		Image: &runtimeapi.ImageSpec{Image: "web:1", UserSpecifiedImage: "web:1", ImageRef: "sha256:1"}, Auth: &runtimeapi.AuthConfig{Password: "secret"},
	}, &runtimeapi.PullImageResponse{})
	n.must(err)
	want := &runtimeapi.PullImageRequest{
		Image: &runtimeapi.ImageSpec{Image: "mirror/web:1", UserSpecifiedImage: "mirror/web:1"}, Auth: &runtimeapi.AuthConfig{Password: "secret"},
	}
	if got := decodeSent[runtimeapi.PullImageRequest](n); !proto.Equal(got, want) {
		t.Errorf("sent %v", got)
	}
}

// The credentials that kubelet has for one registry are not sent to another.
func TestCredentialsStayWithTheirRegistry(t *testing.T) {
	for _, test := range []struct {
		from, to string
		kept     bool
	}{
		{"web:1", "mirror/web:1", true}, // both of docker.io
		{"web:1", "docker.io/library/web:2", true},
		{"web:1", "mirror.example.com/web:1", false},
		{"web:1", "localhost/web:1", false},
		{"web:1", "MIRROR/web:1", false},
		{"reg.example.com/web", "reg.example.com/other", true},
		{"reg.example.com/web", "reg.example.com:5000/web", false},
		{"reg.example.com/web", "web", false},
	} {
		n := newNode(t, []plugin.Member{on(abi.PrePullImage, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
			return adj.SetText(abi.Event, abi.EventImage, test.to)
		})})
		_, err := n.call(t.Context(), "PullImage", &runtimeapi.PullImageRequest{
			Image: &runtimeapi.ImageSpec{Image: test.from}, Auth: &runtimeapi.AuthConfig{Password: "secret"},
		}, &runtimeapi.PullImageResponse{})
		n.must(err)
		if kept := decodeSent[runtimeapi.PullImageRequest](n).Auth != nil; kept != test.kept {
			t.Errorf("%s instead of %s: credentials are sent: %v", test.to, test.from, kept)
		}
	}
}

// The states that plugins see are those that the call has left.
func TestStatesAfterCalls(t *testing.T) {
	var states []string
	tell := func(_ context.Context, ev plugin.Event, _ *plugin.Adjustment) error {
		pod, _ := ev.Text(abi.Pod, abi.PodState)
		container, _ := ev.Text(abi.Container, abi.ContainerState)
		states = append(states, ev.Hook().String()+" "+pod+" "+container)
		return nil
	}
	var members []plugin.Member
	for _, h := range []abi.Hook{abi.PreRunPodSandbox, abi.PostRunPodSandbox, abi.PreCreateContainer, abi.PostCreateContainer,
		abi.PreStartContainer, abi.PostStartContainer, abi.PostStopContainer, abi.PreStopPodSandbox, abi.PostStopPodSandbox} {
		members = append(members, on(h, tell))
	}
	n := newNode(t, members)
	n.runPod()
	for _, c := range []struct {
		method      string
		req, answer proto.Message
	}{
		{"StartContainer", &runtimeapi.StartContainerRequest{ContainerId: "c1"}, &runtimeapi.StartContainerResponse{}},
		{"StopContainer", &runtimeapi.StopContainerRequest{ContainerId: "c1"}, &runtimeapi.StopContainerResponse{}},
		{"StopPodSandbox", &runtimeapi.StopPodSandboxRequest{PodSandboxId: "pod1"}, &runtimeapi.StopPodSandboxResponse{}},
	} {
		_, err := n.call(t.Context(), c.method, c.req, c.answer)
		n.must(err)
		n.must(n.queue.Drain(t.Context()))
	}
	want := []string{
		"PreRunPodSandbox  ", "PostRunPodSandbox ready ", "PreCreateContainer ready ", "PostCreateContainer ready created",
		"PreStartContainer ready created", "PostStartContainer ready running", "PostStopContainer ready exited",
		"PreStopPodSandbox ready ", "PostStopPodSandbox notready ",
	}
	slices.Sort(want) // the pre hook of an object without an id waits for nobody
	slices.Sort(states)
	if diff := cmp.Diff(want, states); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
}
