package guest

import (
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Cgroup is a cgroup of the guest, as the kernel names it: a path below /sys/fs/cgroup.
type Cgroup struct {
	Path  string
	guest *Machine
}

// Cgroup returns the cgroup of a running container, as the kernel says of its process.
func (n *Node) Cgroup(t testing.TB, container string) Cgroup {
	t.Helper()
	status, err := n.CRI(t, ContainerdSocket).ContainerStatus(t.Context(), &cri.ContainerStatusRequest{ContainerId: container, Verbose: true})
	if err != nil {
		t.Fatal(err)
	}
	var info struct{ Pid json.Number }
	if err := json.Unmarshal([]byte(status.Info["info"]), &info); err != nil {
		t.Fatalf("decoding what containerd says of container %s: %v", container, err)
	}
	line := n.Run(t, "cat /proc/"+info.Pid.String()+"/cgroup")
	group, ok := strings.CutPrefix(line, "0::/")
	if !ok || strings.Contains(line, "\n") {
		t.Fatalf("container %s is not in one cgroup of version 2: %s", container, line)
	}
	return Cgroup{"/" + group, n.Machine}
}

// Parent returns the cgroup around this one: of a container's, the pod's.
func (g Cgroup) Parent() Cgroup { return Cgroup{path.Dir(g.Path), g.guest} }

// Dir is the cgroup's directory in the guest.
func (g Cgroup) Dir() string { return path.Join("/sys/fs/cgroup", g.Path) }

// Read returns what files of the cgroup hold, without the last newline. One command
// reads them all: each takes a good part of a second.
func (g Cgroup) Read(t testing.TB, files ...string) map[string]string {
	t.Helper()
	values := map[string]string{}
	if len(files) == 0 {
		return values
	}
	// grep tells by 1 that all are empty, and by 2 that one cannot be read.
	out := g.guest.Run(t, "cd "+g.Dir()+" && { grep --with-filename '' "+strings.Join(files, " ")+" || test $? = 1; }")
	for _, file := range files { // grep prints nothing of an empty one
		values[file] = ""
	}
	for line := range strings.Lines(out) {
		file, value, _ := strings.Cut(line, ":")
		values[file] += value
	}
	for file, value := range values {
		values[file] = strings.TrimSuffix(value, "\n")
	}
	return values
}

// Expect checks what files of the cgroup hold.
func (g Cgroup) Expect(t testing.TB, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, g.Read(t, slices.Sorted(maps.Keys(want))...)); diff != "" {
		t.Errorf("files of %s (-want +got):\n%s", g.Path, diff)
	}
}
