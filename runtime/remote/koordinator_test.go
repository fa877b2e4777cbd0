package remote_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/descriptorpb"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/observe/slogsink"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
	"github.com/wasmproxy/wasmproxy/runtime/remote"
	"github.com/wasmproxy/wasmproxy/runtime/workqueue"
)

// TestKoordinator holds the package against Koordinator v1.8.0 itself, which
// testdata/koordinator makes a peer of.
func TestKoordinator(t *testing.T) {
	if testing.Short() {
		t.Skip("builds Koordinator, whose modules the first build downloads")
	}
	peer := filepath.Join(t.TempDir(), "koordinator")
	build := exec.Command("go", "build", "-o", peer, ".")
	build.Dir = "testdata/koordinator"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building testdata/koordinator: %v\n%s", err, out)
	}
	t.Run("descriptor", func(t *testing.T) { testDescriptor(t, peer) })
	t.Run("koordlet", func(t *testing.T) { testKoordlet(t, peer) })
}

// testDescriptor wants Koordinator's own descriptor to say what the table says.
func testDescriptor(t *testing.T, peer string) {
	out, err := exec.Command(peer, "descriptor").Output()
	if err != nil {
		t.Fatal(err)
	}
	var d descriptorpb.FileDescriptorProto
	if err := proto.Unmarshal(out, &d); err != nil {
		t.Fatal(err)
	}
	file, err := protodesc.NewFile(&d, &protoregistry.Files{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(describe(file), string(bytes.TrimSpace([]byte(wire)))); diff != "" {
		t.Errorf("the protocol differs (-Koordinator +ours):\n%s", diff)
	}
}

// testKoordlet takes random pods, as kubelet sends them, through this proxy with
// a hook server of Koordinator's types that answers as koordlet does, and
// through koord-runtime-proxy's own code with the same answers. What reaches the
// runtime must come to the same.
func testKoordlet(t *testing.T, peer string) {
	socket := filepath.Join(t.TempDir(), "koordlet.sock")
	start(t, exec.Command(peer, "serve", socket))
	for i := 0; ; i++ {
		if _, err := os.Stat(socket); err == nil {
			break
		} else if i == 6000 { // a minute
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	echoing, bare := connect(t, socket), connectCompat(t, socket)
	incumbent := newIncumbent(t, peer)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 600 {
		calls, ours := newLife(rng, false), newProxy(echoing)
		if i%2 == 1 { // a server that does not repeat the request, and koord-compat
			calls, ours = newLife(rng, true), newProxy(bare)
		}
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			run, created := proto.CloneOf(calls.run), proto.CloneOf(calls.create)
			ours.forward(t, "RunPodSandbox", run, &runtimeapi.RunPodSandboxResponse{PodSandboxId: "pod"})
			ours.forward(t, "CreateContainer", created, &runtimeapi.CreateContainerResponse{ContainerId: "container"})
			incumbent.forward(t, "RunPodSandbox", calls.run)
			incumbent.forward(t, "CreateContainer", calls.create)
			compareRun(t, calls.run, run)
			compareCreate(t, calls.create, created)
			was, is := calls.create.Config, created.Config // what the runtime has
			for _, update := range calls.updates {
				updated := proto.CloneOf(update)
				ours.forward(t, "UpdateContainerResources", updated, &runtimeapi.UpdateContainerResourcesResponse{})
				incumbent.forward(t, "UpdateContainerResources", update)
				take(was, update)
				take(is, updated)
				if diff := cmp.Diff(was, is, protocmp.Transform()); diff != "" {
					t.Errorf("after UpdateContainerResources the container differs (-incumbent +ours):\n%s", diff)
				}
			}
		})
	}
}

// connectCompat is connect with Options.ClearUnset.
func connectCompat(t *testing.T, socket string) *remote.Plugin {
	t.Helper()
	p, err := remote.New(remote.Options{
		ID: "bare", Endpoint: socket, Hooks: remote.Hooks(), ClearUnset: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close(context.Background()) })
	return p
}

// start runs cmd until the test ends.
func start(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
}

// proxy is this project's way from a request to what the runtime gets.
type proxy struct{ route cri.Router }

func newProxy(p *remote.Plugin) *proxy {
	log := slogsink.New(slog.New(slog.NewTextHandler(io.Discard, nil)))
	member := plugin.Member{ID: "koordlet", Plugin: p, Policy: plugin.Fail, Hooks: remote.Hooks(), Capabilities: abi.AllCapabilities}
	return &proxy{intercept.Router(intercept.Options{
		CallTime: intercept.DefaultCallTime,
		Enforcer: enforce.Enforcer{Observer: log, Store: pods.NewStore(), Node: &crifield.Node{CgroupVersion: 2}, Queue: workqueue.New(), Ledger: enforce.NewLedger()},
		Chain:    plugin.NewChain(log, 2, member), Keep: func() func() { return func() {} },
	})}
}

// forward makes req what the runtime gets.
func (p *proxy) forward(t *testing.T, method string, req, answer proto.Message) {
	t.Helper()
	frame, err := cri.NewFrame(req)
	if err != nil {
		t.Fatal(err)
	}
	runtime := func(_ context.Context, sent *cri.Frame) (*cri.Frame, error) {
		if err := sent.Decode(req); err != nil {
			return nil, err
		}
		return cri.NewFrame(answer)
	}
	if _, err := p.route("/runtime.v1.RuntimeService/"+method)(t.Context(), &cri.Call{Request: frame}, runtime); err != nil {
		t.Fatalf("%s: %v", method, err)
	}
}

// incumbent is koord-runtime-proxy's way.
type incumbent struct {
	in  io.Writer
	out *bufio.Reader
}

func newIncumbent(t *testing.T, peer string) *incumbent {
	t.Helper()
	cmd := exec.Command(peer, "forward")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	start(t, cmd)
	return &incumbent{in, bufio.NewReader(out)}
}

// forward makes req what the runtime would get.
func (i *incumbent) forward(t *testing.T, method string, req proto.Message) {
	t.Helper()
	b, err := proto.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(i.in, "%s %s\n", method, base64.StdEncoding.EncodeToString(b))
	line, err := i.out.ReadString('\n')
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	if b, err = base64.StdEncoding.DecodeString(line); err == nil {
		err = proto.Unmarshal(b, req)
	}
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
}

func compareRun(t *testing.T, want, got *runtimeapi.RunPodSandboxRequest) {
	t.Helper()
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("RunPodSandbox differs (-incumbent +ours):\n%s", diff)
	}
}

// compareCreate compares what is the container's. What a hook changed of the
// pod goes on to its containers here and is lost on the incumbent's way.
func compareCreate(t *testing.T, want, got *runtimeapi.CreateContainerRequest) {
	t.Helper()
	if diff := cmp.Diff(env(want), env(got)); diff != "" {
		t.Errorf("CreateContainer: env differs (-incumbent +ours):\n%s", diff)
	}
	want.Config.Envs, got.Config.Envs = nil, nil // the incumbent's has no order
	if diff := cmp.Diff(want.Config, got.Config, protocmp.Transform()); diff != "" {
		t.Errorf("CreateContainer differs (-incumbent +ours):\n%s", diff)
	}
}

func env(r *runtimeapi.CreateContainerRequest) map[string]string {
	m := map[string]string{}
	for _, v := range r.GetConfig().GetEnvs() {
		m[v.GetKey()] = string(v.GetValue())
	}
	return m
}

// take has a container what an update names. The incumbent sends everything again, this proxy what kubelet or a hook named.
func take(config *runtimeapi.ContainerConfig, update *runtimeapi.UpdateContainerResourcesRequest) {
	config.Linux.Resources = pods.LayResources(config.GetLinux().GetResources(), update.GetLinux())
	config.Annotations = maps.Clone(config.GetAnnotations())
	maps.Copy(config.Annotations, update.GetAnnotations())
}
