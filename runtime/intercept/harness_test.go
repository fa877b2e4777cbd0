package intercept_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/observe/slogsink"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
	"github.com/wasmproxy/wasmproxy/runtime/workqueue"
)

// function is a plugin whose Call is a Go function.
type function func(ctx context.Context, ev plugin.Event, adj *plugin.Adjustment) error

func (function) Manifest() abi.Manifest      { return abi.Manifest{} }
func (function) Close(context.Context) error { return nil }
func (f function) Call(ctx context.Context, _ *plugin.Budget, ev plugin.Event, adj *plugin.Adjustment) error {
	return f(ctx, ev, adj)
}

// budgeted is a plugin that looks at its event and its time.
type budgeted func(*plugin.Budget, plugin.Event)

func (budgeted) Manifest() abi.Manifest      { return abi.Manifest{} }
func (budgeted) Close(context.Context) error { return nil }
func (f budgeted) Call(_ context.Context, b *plugin.Budget, ev plugin.Event, _ *plugin.Adjustment) error {
	f(b, ev)
	return nil
}

// on wants one hook.
func on(hook abi.Hook, f function) plugin.Member {
	return plugin.Member{ID: "10-test", Plugin: f, Hooks: abi.HookSetOf(hook), Capabilities: abi.AllCapabilities}
}

// node is what calls pass through, and what came out at its far end.
type node struct {
	t       *testing.T
	late    bool // what follows a call may end after it
	store   *pods.Store
	queue   *workqueue.Queue
	backend runtimeBackend
	log     *bytes.Buffer
	options intercept.Options
	route   cri.Router
	report  cri.Call   // the last one
	sent    *cri.Frame // what the backend got last; nil if nothing came
	fails   error      // what the backend answers instead

	updating func() // what else the backend does meanwhile
}

type option func(*intercept.Options)

func withCgroups(fs *cgroup.FS) option { return func(o *intercept.Options) { o.Cgroups = fs } }

func withStore(n *node) option {
	return func(o *intercept.Options) { o.Store, o.Ledger = n.store, n.options.Ledger }
}

// newNode returns a node whose calls go through the members.
func newNode(t *testing.T, members []plugin.Member, opts ...option) *node {
	t.Helper()
	n := &node{t: t, store: pods.NewStore(), queue: workqueue.New(), log: new(bytes.Buffer)}
	log := slogsink.New(slog.New(slog.NewJSONHandler(&locked{w: n.log}, nil)))
	o := intercept.Options{Keep: func() func() { return func() {} }, CallTime: intercept.DefaultCallTime, Enforcer: enforce.Enforcer{
		Observer: log, Store: n.store, Backend: &n.backend, Queue: n.queue, Ledger: enforce.NewLedger(),
		Node: &crifield.Node{CgroupVersion: 2, RuntimeName: "containerd", RuntimeVersion: "v2",
			CgroupDriver: "systemd", CPUs: 8, Memory: 32 << 30, Kernel: "6.1", RuntimeHandlers: []string{"kata", "runc"}},
	}}
	for _, opt := range opts {
		opt(&o)
	}
	o.NewChain = func(m ...plugin.Member) *plugin.Chain { return plugin.NewChain(log, o.Cgroups.Version(), m...) }
	if o.Chain == nil {
		o.Chain = o.NewChain(members...)
	}
	n.options, n.route = o, intercept.Router(o)
	return n
}

type locked struct {
	mu sync.Mutex
	w  *bytes.Buffer
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// wish is the value that a plugin wants in a file of a container of pod u1; "" if none does.
func (n *node) wish(container, file string) string {
	w, _ := n.options.Ledger.Record(enforce.ID{Pod: "u1", Container: container}).Owner(enforce.File(file))
	return w.Value
}

// full is the method's name on the wire.
func (n *node) full(method string) string {
	if strings.HasSuffix(method, "Image") {
		return "/runtime.v1.ImageService/" + method
	}
	return service + method
}

const service = "/runtime.v1.RuntimeService/"

// call sends req as kubelet would and decodes the answer into a message of the
// method's type.
func (n *node) call(ctx context.Context, method string, req, answer proto.Message) (*cri.Frame, error) {
	n.t.Helper()
	frame, err := cri.NewFrame(req)
	if err != nil {
		n.t.Fatal(err)
	}
	return frame, n.callFrame(ctx, method, frame, answer)
}

func (n *node) callFrame(ctx context.Context, method string, frame *cri.Frame, answer proto.Message) error {
	n.t.Helper()
	n.sent, n.report = nil, cri.Call{Request: frame}
	var made *cri.Frame
	got, err := n.route(n.full(method))(ctx, &n.report, func(_ context.Context, sent *cri.Frame) (*cri.Frame, error) {
		n.sent = sent
		if n.updating != nil {
			n.updating()
		}
		if n.fails != nil {
			return nil, n.fails
		}
		var err error
		made, err = cri.NewFrame(answer)
		return made, err
	})
	if got != made {
		n.t.Error("the answer is not the runtime's own frame")
	}
	if !n.late {
		n.must(n.queue.Drain(context.Background()))
	}
	return err
}

// decodeSent is what the backend got.
func decodeSent[T any, P interface {
	*T
	proto.Message
}](n *node) P {
	n.t.Helper()
	m := P(new(T))
	if n.sent == nil {
		n.t.Fatal("nothing was sent to the backend")
	}
	if err := n.sent.Decode(m); err != nil {
		n.t.Fatal(err)
	}
	return m
}

func (n *node) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

// runPod runs a sandbox "pod1" and creates a container "c1" in it.
func (n *node) runPod() {
	n.t.Helper()
	n.runPodWith(podConfig(), createRequest())
}

func (n *node) runPodWith(config *runtimeapi.PodSandboxConfig, c *runtimeapi.CreateContainerRequest) {
	n.t.Helper()
	_, err := n.call(n.t.Context(), "RunPodSandbox", &runtimeapi.RunPodSandboxRequest{Config: config, RuntimeHandler: "runc"},
		&runtimeapi.RunPodSandboxResponse{PodSandboxId: "pod1"})
	n.must(err)
	_, err = n.call(n.t.Context(), "CreateContainer", c, &runtimeapi.CreateContainerResponse{ContainerId: "c1"})
	n.must(err)
	n.must(n.queue.Drain(n.t.Context()))
}

// podWithoutOverhead is podConfig of a pod whose limits are those of its containers.
func podWithoutOverhead() *runtimeapi.PodSandboxConfig {
	config := podConfig()
	config.Linux.Overhead = nil
	return config
}

func podConfig() *runtimeapi.PodSandboxConfig {
	return &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: "web", Namespace: "prod", Uid: "u1", Attempt: 3},
		Hostname: "web", LogDirectory: "/var/log/pods/web",
		PortMappings: []*runtimeapi.PortMapping{{HostIp: "10.0.0.1", HostPort: 8080, ContainerPort: 80}, {ContainerPort: 53, Protocol: runtimeapi.Protocol_UDP}},
		Labels:       map[string]string{"app": "web"},
		Annotations:  map[string]string{"example.com/tier": "gold"},
		Linux: &runtimeapi.LinuxPodSandboxConfig{
			CgroupParent: "/kubepods/burstable/podu1",
			Overhead:     fullResources(),
			Resources:    fullResources(),
			Sysctls:      map[string]string{"net.core.somaxconn": "1024"},
			SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{
				Privileged:       true,
				NamespaceOptions: &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_NODE, Pid: runtimeapi.NamespaceMode_CONTAINER},
			},
		},
	}
}

// imageID is that of web:1.
var imageID = "sha256:" + strings.Repeat("1", 64)

func createRequest() *runtimeapi.CreateContainerRequest {
	return &runtimeapi.CreateContainerRequest{
		PodSandboxId:  "pod1",
		SandboxConfig: podConfig(),
		Config: &runtimeapi.ContainerConfig{
			Metadata:    &runtimeapi.ContainerMetadata{Name: "app", Attempt: 2},
			Image:       &runtimeapi.ImageSpec{Image: imageID, UserSpecifiedImage: "web:1"},
			Labels:      map[string]string{"l": "1"},
			Annotations: map[string]string{"a": "1"},
			Envs: []*runtimeapi.KeyValue{
				{Key: "Z", Value: []byte("1")}, {Key: "A", Value: []byte("first")},
				{Key: "BIN", Value: []byte{0xff, 0xfe}}, {Key: "A", Value: []byte("second")},
			},
			Command: []string{"sh", "-c"}, Args: []string{"run it"}, WorkingDir: "/srv", LogPath: "app/0.log",
			Mounts: []*runtimeapi.Mount{{
				ContainerPath: "/data", HostPath: "/mnt", Readonly: true, Propagation: runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL,
				SelinuxRelabel: true, RecursiveReadOnly: true, UidMappings: []*runtimeapi.IDMapping{{HostId: 1, Length: 1}},
			}},
			Devices:    []*runtimeapi.Device{{ContainerPath: "/dev/a", HostPath: "/dev/b", Permissions: "rwm"}},
			CDIDevices: []*runtimeapi.CDIDevice{{Name: "example.com/gpu=0"}},
			Linux: &runtimeapi.LinuxContainerConfig{Resources: fullResources(), SecurityContext: &runtimeapi.LinuxContainerSecurityContext{
				RunAsUser: &runtimeapi.Int64Value{}, RunAsGroup: &runtimeapi.Int64Value{Value: 7}, RunAsUsername: "web", SupplementalGroups: []int64{8, 9},
				Privileged: true, ReadonlyRootfs: true, NoNewPrivs: true,
				Capabilities: &runtimeapi.Capability{
					AddCapabilities: []string{"NET_ADMIN"}, DropCapabilities: []string{"ALL"}, AddAmbientCapabilities: []string{"CHOWN"},
				},
				Seccomp: &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Localhost, LocalhostRef: "/x.json"},
				//lint:ignore SA1019 older callers send it
				ApparmorProfile: "runtime/default",
			}},
		},
	}
}

// fullResources has every field set.
func fullResources() *runtimeapi.LinuxContainerResources {
	return &runtimeapi.LinuxContainerResources{
		CpuPeriod: 100_000, CpuQuota: 50_000, CpuShares: 512, MemoryLimitInBytes: 1 << 27, OomScoreAdj: 500,
		CpusetCpus: "0-1", CpusetMems: "0", HugepageLimits: []*runtimeapi.HugepageLimit{{PageSize: "2MB", Limit: 4 << 20}},
		Unified: map[string]string{"memory.high": "100"}, MemorySwapLimitInBytes: 1 << 28,
	}
}

// runtimeBackend answers the questions of the store, from a table, with
// NotFound for what is not in it.
type runtimeBackend struct {
	enforce.Backend
	pods       map[string]*runtimeapi.PodSandboxStatusResponse
	containers map[string]*runtimeapi.ContainerStatusResponse
	down       bool
	pod        *runtimeapi.PodSandbox  // what it lists
	listed     []*runtimeapi.Container // in the pod
	unknown    error                   // what it answers for what is in no table, in place of NotFound
	asked      atomic.Int32            // how often for a status
	answering  func()                  // called at each

	mu      sync.Mutex                                    // of updates, while containers are updated at once
	updates []*runtimeapi.UpdateContainerResourcesRequest // the proxy's own
	refuses error                                         // what they are answered
	hear    func()                                        // called at each
}

func (b *runtimeBackend) UpdateContainerResources(_ context.Context, r *runtimeapi.UpdateContainerResourcesRequest, _ ...grpc.CallOption) (*runtimeapi.UpdateContainerResourcesResponse, error) {
	b.mu.Lock()
	b.updates = append(b.updates, r)
	b.mu.Unlock()
	if b.hear != nil {
		b.hear()
	}
	return &runtimeapi.UpdateContainerResourcesResponse{}, b.refuses
}

var errDown = status.Error(codes.Unavailable, "no connection")

func (b *runtimeBackend) PodSandboxStatus(_ context.Context, r *runtimeapi.PodSandboxStatusRequest, _ ...grpc.CallOption) (*runtimeapi.PodSandboxStatusResponse, error) {
	return lookUp(b, b.pods, r.GetPodSandboxId())
}

func (b *runtimeBackend) ContainerStatus(_ context.Context, r *runtimeapi.ContainerStatusRequest, _ ...grpc.CallOption) (*runtimeapi.ContainerStatusResponse, error) {
	return lookUp(b, b.containers, r.GetContainerId())
}

func (b *runtimeBackend) ListPodSandbox(_ context.Context, r *runtimeapi.ListPodSandboxRequest, _ ...grpc.CallOption) (*runtimeapi.ListPodSandboxResponse, error) {
	if b.down {
		return nil, errDown
	}
	if id := r.GetFilter().GetId(); b.pod == nil || id != "" && id != b.pod.GetId() {
		return &runtimeapi.ListPodSandboxResponse{}, nil
	}
	return &runtimeapi.ListPodSandboxResponse{Items: []*runtimeapi.PodSandbox{b.pod}}, nil
}

func (b *runtimeBackend) ListContainers(_ context.Context, r *runtimeapi.ListContainersRequest, _ ...grpc.CallOption) (*runtimeapi.ListContainersResponse, error) {
	if b.down {
		return nil, errDown
	}
	other := func(c *runtimeapi.Container) bool {
		id := r.GetFilter().GetId()
		return id != "" && id != c.GetId()
	}
	return &runtimeapi.ListContainersResponse{Containers: slices.DeleteFunc(slices.Clone(b.listed), other)}, nil
}

func lookUp[T any](b *runtimeBackend, in map[string]*T, id string) (*T, error) {
	b.asked.Add(1)
	if b.answering != nil {
		b.answering()
	}
	if b.down {
		return nil, errDown
	}
	if v, ok := in[id]; ok {
		return v, nil
	}
	if b.unknown != nil {
		return nil, b.unknown
	}
	return nil, status.Errorf(codes.NotFound, "%q not found", id)
}

// tellPod makes the backend tell of a running pod as containerd does.
func (b *runtimeBackend) tellPod(id string, config *runtimeapi.PodSandboxConfig) {
	info, err := json.Marshal(map[string]any{"config": config})
	if err != nil {
		panic(err)
	}
	if b.pods == nil {
		b.pods = map[string]*runtimeapi.PodSandboxStatusResponse{}
	}
	b.pods[id] = &runtimeapi.PodSandboxStatusResponse{
		Status: &runtimeapi.PodSandboxStatus{Id: id, Metadata: config.GetMetadata()},
		Info:   map[string]string{"info": string(info)},
	}
}

// resync brings records and cgroup files to where the runtime is, as package reconcile does after a new connection to it.
func resync(ctx context.Context, values *enforce.Enforcer) {
	values.DropGone()
	values.Repair(ctx, "a new connection to the container runtime")
}
