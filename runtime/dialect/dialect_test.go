package dialect_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/dialect"
	"github.com/wasmproxy/wasmproxy/runtime/doctor"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/host"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

// TestTable holds what the rows have to have for their users.
func TestTable(t *testing.T) {
	resources := (&runtimeapi.LinuxContainerResources{}).ProtoReflect().Descriptor().Fields()
	for i, r := range dialect.Runtimes {
		if at := slices.IndexFunc(dialect.Runtimes, func(o dialect.Runtime) bool { return o.Name == r.Name }); at != i {
			t.Errorf("two rows have the name %q", r.Name)
		}
		if strings.Count(r.Cgroup, "ID") > 1 || strings.Count(r.Scope, "ID") > 1 || !strings.HasSuffix(r.Socket, r.SocketEnd) {
			t.Errorf("%s: names %q and %q, and socket %s with the end %s", r.Name, r.Cgroup, r.Scope, r.Socket, r.SocketEnd)
		}
		if r.Socket != "" && (r.Title == "" || r.Unit == "" || r.Cgroup == "" || r.Scope == "" || dialect.At(r.Socket).Name != r.Name) {
			t.Errorf("%s, which kubelet calls: title %q, unit %q, cgroups %q and %q", r.Name, r.Title, r.Unit, r.Cgroup, r.Scope)
		}
		for changed, partner := range r.Partners {
			if resources.ByName(protoreflect.Name(partner)) == nil {
				t.Errorf("%s: with %s goes %s, which is no resource of CRI", r.Name, changed, partner)
			}
			if !strings.Contains(changed, ".") && resources.ByName(protoreflect.Name(changed)) == nil {
				t.Errorf("%s: %s is neither a resource of CRI nor a cgroup file", r.Name, changed)
			}
		}
	}
}

func TestWeights(t *testing.T) {
	for shares, want := range map[int64][]string{ // what two versions of runc write
		0: {"1"}, 2: {"1"}, 102: {"17", "4"}, 256: {"35", "10"}, 1024: {"100", "39"}, 262144: {"10000"}, 1 << 40: {"10000"},
	} {
		if got := dialect.Weights(shares); !slices.Equal(got, want) {
			t.Errorf("%d shares become %q, want %q", shares, got, want)
		}
	}
}

// youki stands for a runtime that the proxy does not know yet: all of it is made up.
var youki = dialect.Runtime{
	Name: "youki", Title: "Youki",
	Socket: "/run/youki/youki.sock", Unit: "youki.service", SocketEnd: "run/youki/youki.sock", Cadvisor: "/run/youki/metrics.sock",
	Cgroup: "youki-ID", Scope: "you-ID.scope", Inner: "processes",
	Verbose:      "status",
	CgroupParent: []string{"youki/parent"}, RuntimeHandler: []string{"youki/handler"},
	PodOverhead: []string{"youki/overhead"}, PodResources: []string{"youki/resources"},
	PodLabels: map[string]string{"youki/kind": "sandbox"},
	Env:       []string{"YOUKI_NODE"},
	Partners:  map[string]string{"cpu.idle": "cpuset_cpus"},
	Weights:   []func(uint64) uint64{func(uint64) uint64 { return 7 }},
}

// TestARowSuffices adds the row, and nothing else, and asks its users.
func TestARowSuffices(t *testing.T) {
	before := dialect.Runtimes
	dialect.Runtimes = append(slices.Clone(before), youki)
	t.Cleanup(func() { dialect.Runtimes = before })
	t.Run("cgroup", youkiCgroups)
	t.Run("pods", youkiPods)
	t.Run("resources", youkiResources)
	t.Run("host", youkiHost)
	t.Run("doctor", youkiDoctor)
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func youkiCgroups(t *testing.T) {
	for parent, name := range map[string]string{"/kubepods/pod1": "youki-c1", "/kubepods.slice/kubepods-pod1.slice": "you-c1.scope"} {
		root := t.TempDir()
		put(t, filepath.Join(root, parent, name, "pids.max"), "10\n")
		put(t, filepath.Join(root, parent, name, "processes", "pids.max"), "5\n")
		groups, err := cgroup.Open(root, "v2")
		if err != nil {
			t.Fatal(err)
		}
		defer groups.Close()
		group, exists, err := groups.FindContainer(parent, "c1")
		if group != parent+"/"+name || !exists || err != nil {
			t.Errorf("the container's cgroup is %q, %v, %v", group, exists, err)
		}
		want := map[bool]string{true: "5", false: "10"}[strings.HasSuffix(name, ".scope")]
		if limit, err := groups.Read(group, "pids.max"); limit != want || err != nil {
			t.Errorf("the limit of %s is %q, %v", group, limit, err)
		}
	}
}

// backend answers with one pod.
type backend struct {
	pods.Backend
	status *runtimeapi.PodSandboxStatusResponse
}

func (b backend) PodSandboxStatus(
	context.Context, *runtimeapi.PodSandboxStatusRequest, ...grpc.CallOption,
) (*runtimeapi.PodSandboxStatusResponse, error) {
	return b.status, nil
}

func youkiPods(t *testing.T) {
	pod, err := pods.NewStore().ReadPod(t.Context(), backend{status: &runtimeapi.PodSandboxStatusResponse{
		Status: &runtimeapi.PodSandboxStatus{Id: "p1", Labels: map[string]string{"app": "web", "youki/kind": "sandbox"}},
		Info: map[string]string{"status": `{"runtimeSpec": {"hostname": "web-0", "annotations": {
			"youki/parent": "/kubepods/pod1", "youki/handler": "fast", "youki/overhead": "{\"cpu_shares\": 3}", "youki/resources": "{\"cpu_shares\": 5}"}}}`},
	}}, "p1")
	linux := pod.Config.GetLinux()
	if err != nil || pod.Config.GetHostname() != "web-0" || linux.GetCgroupParent() != "/kubepods/pod1" || pod.RuntimeHandler != "fast" {
		t.Errorf("the pod is %+v, %v", pod, err)
	}
	if linux.GetOverhead().GetCpuShares() != 3 || linux.GetResources().GetCpuShares() != 5 || len(pod.Config.GetLabels()) != 1 {
		t.Errorf("the pod's configuration is %v", pod.Config)
	}
}

func youkiResources(t *testing.T) {
	update := &runtimeapi.LinuxContainerResources{}
	added := enforce.NameWith(rules.CPUIdle, update, &runtimeapi.LinuxContainerResources{CpusetCpus: "0-1", CpuShares: 512, CpuQuota: 1000})
	if want := (&runtimeapi.LinuxContainerResources{CpusetCpus: "0-1", CpuShares: 512}); !added || !proto.Equal(update, want) {
		t.Errorf("the update that ends cpu.idle is %v", update)
	}
	if weights := dialect.Weights(1024); !slices.Contains(weights, "7") {
		t.Errorf("1024 shares become %q", weights)
	}
	envs := []*runtimeapi.KeyValue{{Key: "YOUKI_NODE", Value: []byte("node-7")}, {Key: "TOKEN", Value: []byte("s3cret")}}
	secrets := intercept.Secrets(&runtimeapi.ContainerConfig{Envs: envs}, abi.AllCapabilities)
	if !slices.Equal(secrets, []string{"s3cret"}) {
		t.Errorf("the secrets are %q", secrets)
	}
}

func youkiHost(t *testing.T) {
	root, out := t.TempDir(), new(bytes.Buffer)
	put(t, filepath.Join(root, "program"), "#!/bin/sh\n")
	put(t, filepath.Join(root, host.DefaultKubeletConfig), "containerRuntimeEndpoint: unix:///run/youki/youki.sock\n")
	h := host.Host{Root: host.Root(root), KubeletConfig: host.DefaultKubeletConfig, Program: filepath.Join(root, "program"), Out: out}
	if err := h.Install(t.Context(), host.Consent{}); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for path, want := range map[string]string{
		host.SettingsFile: "listen: unix:///run/wasmproxy/run/youki/youki.sock\nbackend: unix:///run/youki/youki.sock\n",
		"/etc/systemd/system/wasmproxy.service.d/runtime.conf": "After=youki.service\n",
	} {
		if text, err := os.ReadFile(filepath.Join(root, path)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s is %q, %v", path, text, err)
		}
	}
}

// server tells its name.
type server struct {
	runtimeapi.UnimplementedRuntimeServiceServer
}

func (server) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{RuntimeName: "youki", RuntimeVersion: "1.0"}, nil
}

func youkiDoctor(t *testing.T) {
	root, err := os.MkdirTemp("", "wp") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	socket, err := net.Listen("unix", filepath.Join(root, "youki.sock"))
	if err != nil {
		t.Fatal(err)
	}
	serves := grpc.NewServer()
	runtimeapi.RegisterRuntimeServiceServer(serves, server{})
	go serves.Serve(socket) //nolint:errcheck // ends with Stop
	t.Cleanup(serves.Stop)
	settings := config.Default()
	settings.Backend = "unix:///youki.sock"
	report := doctor.Run(t.Context(), doctor.Options{
		Root: root, Settings: settings, Clock: doctor.KernelClock, Load: func(context.Context, *config.Config) ([]string, error) { return nil, nil },
	})
	for check, want := range map[string]string{
		"crio-socket":       "the container runtime is Youki, and unix:///run/wasmproxy/wasmproxy.sock does not end in run/youki/youki.sock",
		"containerd-socket": "the container runtime is Youki, whose socket is unix:///youki.sock",
	} {
		if !slices.ContainsFunc(report.Findings, func(f doctor.Finding) bool { return f.Check == check && f.Found == want }) {
			t.Errorf("%s does not find %q: %+v", check, want, report.Findings)
		}
	}
}
