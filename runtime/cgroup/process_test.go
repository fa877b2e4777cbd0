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

// TestKernelTellsTheGroupAndItsResources asks for a real process.
func TestKernelTellsTheGroupAndItsResources(t *testing.T) {
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
	r, err := k.Resources(k.group)
	shares := map[int]int64{1: 204}[k.Version()]
	if err != nil || r.CPUQuota != 25000 || r.CPUPeriod != 100000 || r.CPUShares != shares {
		t.Errorf("%+v, %v", r, err)
	}
	k.set(t, "1", "0", -1)
	if r, err = k.Resources(k.group); err != nil || r.CPUQuota != -1 || r.CPUShares != 0 {
		t.Errorf("idle and without a quota: %+v, %v", r, err)
	}
	_, err = k.Resources(k.group + "-gone")
	wantCode(t, err, abi.NotFound)
}

func TestResourcesOfPlainFiles(t *testing.T) {
	root := t.TempDir()
	f := openMode(t, root, 2)
	if err := os.Mkdir(filepath.Join(root, "g"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		files map[string]string
		want  Resources
	}{
		{map[string]string{
			"cpu.max": "max 100000", "memory.max": "1000", "memory.swap.max": "500", "cpuset.cpus": "", "cpuset.cpus.effective": "0-3", "cpuset.mems": "1",
		}, Resources{CPUPeriod: 100000, CPUQuota: -1, MemoryLimit: 1000, MemorySwap: 1500, CpusetCPUs: "0-3", CpusetMems: "1"}},
		{map[string]string{"cpu.max": "5000 100000", "memory.max": "max", "memory.swap.max": "0"},
			Resources{CPUPeriod: 100000, CPUQuota: 5000, MemoryLimit: -1, MemorySwap: -1, CpusetCPUs: "0-3", CpusetMems: "1"}},
		{map[string]string{"cpu.max": "garbage", "memory.max": "", "memory.swap.max": "max"}, Resources{CpusetCPUs: "0-3", CpusetMems: "1"}},
	} {
		for name, value := range tt.files {
			if err := os.WriteFile(filepath.Join(root, "g", name), []byte(value+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := f.Resources("/g"); err != nil || got != tt.want {
			t.Errorf("%v: %+v, %v, want %+v", tt.files, got, err, tt.want)
		}
	}
}
