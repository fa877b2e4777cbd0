package kubelet

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// recorded is what kubelet's own code made of a Pod: see testdata/README.md.
type recorded struct {
	QoS        string                     `json:"qos"`
	Systemd    string                     `json:"systemd"` // cgroup parent
	Sandbox    json.RawMessage            `json:"sandbox"`
	Containers map[string]json.RawMessage `json:"containers"`
}

// TestRecorded compares all that this package makes with what kubelet makes.
func TestRecorded(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d Pods, error %v", len(files), err)
	}
	for _, file := range files {
		for version := 1; version <= 2; version++ {
			name := strings.TrimSuffix(file, ".yaml") + fmt.Sprintf(".v%d.json", version)
			t.Run(filepath.Base(name), func(t *testing.T) { compare(t, file, name, Node{CgroupVersion: version, Memory: 16 << 30}) })
		}
	}
}

// hostnames are what GeneratePodHostNameAndDomain makes of the Pods.
var hostnames = map[string]string{
	"web-0": "web-0", "mesh": "mesh", "whole": "whole", "confined": "confined",
	"a-name-that-is-longer-than-the-sixty-three-bytes-that-a-host-name-may-have": "a-name-that-is-longer-than-the-sixty-three-bytes-that-a-host-na",
}

// recordedSeccomp is where the fakes have profiles of seccomp.
const recordedSeccomp = "/fakeSeccompProfileRoot"

func compare(t *testing.T, pod, recording string, n Node) {
	p, _, err := Read(read(t, pod))
	if err != nil {
		t.Fatal(err)
	}
	var want recorded
	if err := json.Unmarshal(read(t, recording), &want); err != nil {
		t.Fatal(err)
	}
	if got := p.QoS(); got != want.QoS {
		t.Errorf("QoS class %s, kubelet's is %s", got, want.QoS)
	}
	if got := (Node{Systemd: true}).CgroupParent(p); got != want.Systemd {
		t.Errorf("systemd's cgroup parent %s, kubelet's is %s", got, want.Systemd)
	}
	sandbox := n.SandboxConfig(p)
	delete(sandbox.Annotations, "kubernetes.io/config.source") // added to the Pod before it comes here
	delete(sandbox.Annotations, "kubernetes.io/config.seen")
	if want := hostnames[p.Metadata.Name]; sandbox.GetHostname() != want {
		t.Errorf("host name %q, want %q", sandbox.GetHostname(), want)
	}
	sandbox.Hostname, sandbox.Linux.SecurityContext.NamespaceOptions.UsernsOptions = "", nil // the fakes make none
	same(t, "sandbox", sandbox, message(t, want.Sandbox, &runtimeapi.PodSandboxConfig{}))
	for _, name := range slices.Sorted(maps.Keys(want.Containers)) {
		c, err := p.Container(name)
		if err != nil {
			t.Fatal(err)
		}
		r, _ := n.CreateContainer(p, c, "sandbox")
		kubelets := message(t, want.Containers[name], &runtimeapi.ContainerConfig{})
		delete(kubelets.Annotations, "io.kubernetes.container.hash")
		s := kubelets.GetLinux().GetSecurityContext()
		s.MaskedPaths, s.ReadonlyPaths = nil, nil
		s.Seccomp.LocalhostRef = strings.Replace(s.Seccomp.LocalhostRef, recordedSeccomp, seccompRoot, 1)
		r.Config.Mounts, r.Config.Envs, r.Config.Linux.SecurityContext.NamespaceOptions.UsernsOptions = nil, nil, nil // the fakes have none
		r.Config.Command, r.Config.Args = kubelets.GetCommand(), kubelets.GetArgs()
		same(t, "container "+name, r.Config, kubelets)
	}
}

func same(t *testing.T, what string, got, want proto.Message) {
	t.Helper()
	diff := cmp.Diff(want, got, protocmp.Transform(),
		protocmp.SortRepeated(func(a, b *runtimeapi.HugepageLimit) bool { return a.GetPageSize() < b.GetPageSize() }),
		protocmp.IgnoreEmptyMessages())
	if diff != "" {
		t.Errorf("%s: -kubelet's +ours\n%s", what, diff)
	}
}

func message[T proto.Message](t *testing.T, text json.RawMessage, m T) T {
	t.Helper()
	if err := protojson.Unmarshal(text, m); err != nil {
		t.Fatal(err)
	}
	return m
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
