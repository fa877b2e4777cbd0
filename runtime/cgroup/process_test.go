package cgroup

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
)

func TestGroupIn(t *testing.T) {
	const id = "5e1fd0c3a9b7"
	const slice = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice"
	for _, tt := range []struct {
		name, text string
		version    int
		shown      string // by the mount
		want       string
	}{
		{"containerd", "4:memory:/other\n1:cpu:/kubepods/pod1/" + id + "\n0::/\n", 1, "/", "/kubepods/pod1/" + id},
		{"CRI-O", "1:cpu,cpuacct:/kubepods/pod1/crio-" + id + "\n", 1, "/", "/kubepods/pod1/crio-" + id},
		{"systemd", "1:cpuacct,cpu:" + slice + "/crio-" + id + ".scope\n", 1, "/", slice + "/crio-" + id + ".scope"},
		{"systemd on v2", "0::" + slice + "/cri-containerd-" + id + ".scope\n", 2, "/", slice + "/cri-containerd-" + id + ".scope"},
		{"Docker and systemd", "0::" + slice + "/docker-" + id + ".scope\n", 2, "/", slice + "/docker-" + id + ".scope"},
		{"crun's own cgroup below it", "0::" + slice + "/crio-" + id + ".scope/container\n", 2, "/", slice + "/crio-" + id + ".scope"},
		{"v2", "0::/kubepods/pod1/" + id + "\n", 2, "/", "/kubepods/pod1/" + id},
		{"a cgroup of the container's own", "0::/kubepods/pod1/" + id + "/init.scope\n", 2, "/", "/kubepods/pod1/" + id},
		{"hybrid", "1:cpu:/kubepods/pod1/" + id + "\n0::/x/" + id + "\n", 1, "/", "/kubepods/pod1/" + id},
		{"another process", "1:cpu:/system/kubelet\n0::/system/kubelet\n", 1, "/", ""},
		{"outside the cgroup namespace", "0::/../../pod1/" + id + "\n", 2, "/", ""},
		{"a cgroup namespace, and the node's mount", "0::/../../kubepods/pod1/" + id + "\n", 2, "/../..", "/kubepods/pod1/" + id},
		{"below the cgroup namespace, whose own path is not shown", "0::/pod1/" + id + "\n", 2, "/../..", ""},
		{"above the node's mount", "0::/../../../pod1/" + id + "\n", 2, "/../..", ""},
		{"a node in a container without a cgroup namespace", "1:cpu:/docker/n1/kubepods/pod1/" + id + "\n", 1, "/docker/n1", "/kubepods/pod1/" + id},
		{"beside the part that is mounted", "1:cpu:/docker/n2/pod1/" + id + "\n", 1, "/docker/n1", ""},
		{"no cpu controller", "1:memory:/kubepods/pod1/" + id + "\n", 1, "/", ""},
		{"not a cgroup file", "x\n\n:\n", 2, "/", ""},
	} {
		if got, ok := groupIn(tt.text, tt.version, tt.shown, id); got != tt.want || ok != (tt.want != "") {
			t.Errorf("%s: %q, %v, want %q", tt.name, got, ok, tt.want)
		}
	}
	if got, ok := groupIn("0::/kubepods\n", 2, "/", ""); ok {
		t.Errorf("a container without an id is in %q", got)
	}
}

// TestKernelTellsTheGroup asks for a real process.
func TestKernelTellsTheGroup(t *testing.T) {
	k := newKernel(t)
	k.set(t, "0", "0", 25000)
	if err := k.shares(204); err != nil {
		t.Fatal(err)
	}
	sleep := exec.Command("sleep", "600")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	defer sleep.Wait()
	defer sleep.Process.Kill()
	if err := k.raw("cgroup.procs", strconv.Itoa(sleep.Process.Pid)); err != nil {
		t.Fatal(err)
	}
	id := filepath.Base(k.group)
	if group, err := k.GroupOfProcess(sleep.Process.Pid, id); err != nil || group != k.group {
		t.Errorf("group %q, %v", group, err)
	}
	for _, pid := range []int{os.Getpid(), 1 << 30} {
		_, err := k.GroupOfProcess(pid, id)
		wantCode(t, err, abi.NotFound)
	}
}
