package pods

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
)

// A restartCheck holds a store that saw every call against stores that ask the
// backend.
type restartCheck struct {
	observed *Store                    // saw every call, asks nothing
	resynced *Store                    // saw every call, and syncs at each point: the backend restarted
	tells    func(want, got *snapshot) // drops what the runtime does not tell
	// keepsRunning: StopPodSandbox leaves the containers running, which kubelet stops before.
	keepsRunning bool
	created      map[string]int64 // the oom_score_adj of containers when they were created, which is all that runtimes tell
}

// newRestartCheck knows what a runtime of this name cannot tell.
func newRestartCheck(runtimeName string) *restartCheck {
	c := &restartCheck{observed: NewStore(), resynced: NewStore(), tells: containerdTells, created: map[string]int64{}}
	switch {
	case strings.HasPrefix(runtimeName, "cri-o"):
		c.tells = crioReports
	case strings.HasPrefix(runtimeName, "cri-dockerd"), runtimeName == "docker":
		c.tells, c.keepsRunning = dockerdTells, true
	}
	return c
}

// containerdTells drops from want what containerd cannot tell: an env value that
// is not UTF-8 comes back with U+FFFD, from versions whose JSON has it as a string.
func containerdTells(want, got *snapshot) {
	for _, ctr := range want.Containers {
		for _, kv := range ctr.Config.Envs {
			kv.Value = []byte(jsonText(kv.Value))
		}
	}
}

// crioReports drops what CRI-O does not tell, or tells together with its own.
func crioReports(want, got *snapshot) {
	containerdTells(want, got)
	for _, p := range want.Pods {
		p.Config.DnsConfig = nil
	}
	for i, p := range want.Pods { // it forgets UpdatePodSandboxResources
		if !proto.Equal(p.Config.Linux.Overhead, podConfig().Linux.Overhead) {
			linux := got.Pods[i].Config.Linux
			p.Config.Linux.Overhead, p.Config.Linux.Resources = linux.Overhead, linux.Resources
		}
	}
	for _, c := range want.Containers {
		c.Config.Image.UserSpecifiedImage = ""
		c.Config.Linux.SecurityContext = nil
		if res := c.Config.Linux.Resources; res != nil && res.MemorySwapLimitInBytes == res.MemoryLimitInBytes {
			res.MemorySwapLimitInBytes = 0
		}
	}
	for i, c := range got.Containers {
		c.Config.WorkingDir = ""
		c.Config.Image = &runtimeapi.ImageSpec{Image: c.Config.Image.UserSpecifiedImage} // and the id, which no request had
		sameEnv(want.Containers[i].Config, c.Config)
	}
}

// dockerdTells drops what cri-dockerd does not tell and no plugin can read. It stops no
// container with its pod.
func dockerdTells(want, got *snapshot) {
	for _, p := range want.Pods {
		p.Config.DnsConfig = nil
	}
	for i, c := range want.Containers {
		c.Config.Linux = nil // what is unreported of it is seen to be so
		got.Containers[i].Config.Linux = nil
	}
}

// dropUnreported drops from want the parts that got has as unreported, of which got may have nothing.
func dropUnreported(t *testing.T, want, got *snapshot) {
	t.Helper()
	for i := range got.Pods {
		w, g := &want.Pods[i], &got.Pods[i]
		for part, take := range podParts {
			if g.Unreported&part != 0 {
				take(w.Config)
				if before := proto.CloneOf(g.Config); !proto.Equal(take(before), g.Config) {
					t.Errorf("part %d of a pod is unreported and has a value: %v", part, g.Config)
				}
			}
		}
		g.Unreported = 0
	}
	for i := range got.Containers {
		w, g := &want.Containers[i], &got.Containers[i]
		for part, take := range containerParts {
			if g.Unreported&part != 0 {
				take(w.Config)
				if before := proto.CloneOf(g.Config); !proto.Equal(take(before), g.Config) {
					t.Errorf("part %d of a container is unreported and has a value: %v", part, g.Config)
				}
			}
		}
		g.Unreported = 0
	}
}

// podParts take a part out of a config.
var podParts = map[Parts]func(*runtimeapi.PodSandboxConfig) *runtimeapi.PodSandboxConfig{
	PartOf(abi.PodLogDirectory): func(c *runtimeapi.PodSandboxConfig) *runtimeapi.PodSandboxConfig { c.LogDirectory = ""; return c },
	PodCgroupParent:             linuxPart(func(l *runtimeapi.LinuxPodSandboxConfig) { l.CgroupParent = "" }),
	PodOverhead:                 linuxPart(func(l *runtimeapi.LinuxPodSandboxConfig) { l.Overhead = nil }),
	allResources:                linuxPart(func(l *runtimeapi.LinuxPodSandboxConfig) { l.Resources = nil }),
}

func linuxPart(take func(*runtimeapi.LinuxPodSandboxConfig)) func(*runtimeapi.PodSandboxConfig) *runtimeapi.PodSandboxConfig {
	return func(c *runtimeapi.PodSandboxConfig) *runtimeapi.PodSandboxConfig {
		if c.Linux != nil {
			take(c.Linux)
		}
		return c
	}
}

// containerParts do the same of a container's.
var containerParts = map[Parts]func(*runtimeapi.ContainerConfig) *runtimeapi.ContainerConfig{
	PartOf(abi.ContainerEnv) | PartOf(abi.ContainerCommand) | PartOf(abi.ContainerWorkingDir): func(c *runtimeapi.ContainerConfig) *runtimeapi.ContainerConfig {
		c.Envs, c.Command, c.WorkingDir = nil, nil, ""
		return c
	},
	PartOf(abi.ContainerLogPath): func(c *runtimeapi.ContainerConfig) *runtimeapi.ContainerConfig { c.LogPath = ""; return c },
	PartOf(abi.ContainerDevices) | PartOf(abi.ContainerCDIDevices): func(c *runtimeapi.ContainerConfig) *runtimeapi.ContainerConfig {
		c.Devices, c.CDIDevices = nil, nil
		return c
	},
	PartOf(abi.Resources + abi.CPUQuota): func(c *runtimeapi.ContainerConfig) *runtimeapi.ContainerConfig {
		if c.Linux.GetResources() != nil {
			c.Linux.Resources.CpuQuota = 0
		}
		return c
	},
}

// sameEnv makes got's env want's, if it has all variables of want with their
// last values. It may have more.
func sameEnv(want, got *runtimeapi.ContainerConfig) {
	last := func(c *runtimeapi.ContainerConfig) map[string]string {
		m := map[string]string{}
		for _, kv := range c.Envs {
			m[kv.Key] = string(kv.Value)
		}
		return m
	}
	has := last(got)
	for k, v := range last(want) {
		if has[k] != v {
			return
		}
	}
	got.Envs = want.Envs
}

func (c *restartCheck) observe(req, resp proto.Message) {
	c.observed.Observe(req, req, resp)
	c.resynced.Observe(req, req, resp)
	if made, ok := req.(*runtimeapi.CreateContainerRequest); ok {
		c.created[resp.(*runtimeapi.CreateContainerResponse).GetContainerId()] = made.GetConfig().GetLinux().GetResources().GetOomScoreAdj()
	}
}

// asCreated has the containers of want have the scores that they were created with.
func (c *restartCheck) asCreated(want *snapshot) {
	for _, ctr := range want.Containers {
		if res := ctr.Config.GetLinux().GetResources(); res != nil {
			res.OomScoreAdj = c.created[ctr.ID]
		}
	}
}

func (c *restartCheck) restart(ctx context.Context, t *testing.T, point string, from Backend) {
	t.Helper()
	fresh := NewStore()
	if err := fresh.Sync(ctx, from); err != nil {
		t.Fatalf("%s: %v", point, err)
	}
	if err := c.resynced.Sync(ctx, from); err != nil {
		t.Fatalf("%s: second sync: %v", point, err)
	}
	want, got, resynced := take(c.observed), take(fresh), take(c.resynced)
	c.runOn(&want, got)
	if diff := cmp.Diff(want, resynced, protocmp.Transform()); diff != "" {
		t.Errorf("%s: a store that saw all and synced differs from one that did not (-observed +synced):\n%s", point, diff)
	}
	c.asCreated(&want)
	dropUnreported(t, &want, &got)
	c.tells(&want, &got)
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("%s: a store that starts afresh differs from one that saw all (-observed +synced):\n%s", point, diff)
	}
	c.readThrough(ctx, t, point, from)
}

// runOn lets the containers that the runtime left running run.
func (c *restartCheck) runOn(want *snapshot, got snapshot) {
	for i := range want.Containers {
		if c.keepsRunning && want.Pods[0].State == runtimeapi.PodSandboxState_SANDBOX_NOTREADY {
			want.Containers[i].State = got.Containers[i].State
		}
	}
}

// readThrough has each container read by its ID from an empty store.
func (c *restartCheck) readThrough(ctx context.Context, t *testing.T, point string, from Backend) {
	t.Helper()
	want, one := take(c.observed), NewStore()
	for _, ctr := range want.Containers {
		if _, err := one.ReadContainer(ctx, from, ctr.ID); err != nil {
			t.Errorf("%s: %v", point, err)
		}
	}
	for _, pod := range want.Pods {
		if _, err := one.ReadPod(ctx, from, pod.ID); err != nil {
			t.Errorf("%s: %v", point, err)
		}
	}
	got := take(one)
	c.runOn(&want, got)
	c.asCreated(&want)
	dropUnreported(t, &want, &got)
	c.tells(&want, &got)
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("%s: records read one by one differ from those observed (-observed +read):\n%s", point, diff)
	}
}

// A snapshot is a copy of all that a store holds, but for what only the backend
// tells.
type snapshot struct {
	Pods       []Pod
	Containers []Container
}

func take(s *Store) snapshot {
	snap := snapshot{Pods: s.Pods()}
	for _, p := range snap.Pods {
		snap.Containers = append(snap.Containers, s.Containers(p.ID)...)
	}
	for i := range snap.Pods {
		snap.Pods[i].Requested, snap.Pods[i].Unchanged = nil, false // only a store that saw the call knows it
		snap.Pods[i].Config = proto.CloneOf(snap.Pods[i].Config)
	}
	for i := range snap.Containers {
		snap.Containers[i].CgroupParent, snap.Containers[i].CgroupsPath = "", ""
		snap.Containers[i].Config = proto.CloneOf(snap.Containers[i].Config)
	}
	return snap
}

// TestRestartRecorded plays what real runtimes said.
func TestRestartRecorded(t *testing.T) {
	files, err := filepath.Glob("../../testdata/cri/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings in testdata/cri (%v)", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			check := newRestartCheck(name)
			entries := load(t, file)
			for i, e := range entries {
				switch {
				case e.Point != "":
					check.restart(t.Context(), t, e.Point, answersAt(t, entries[i+1:]))
				case !e.question():
					check.observe(e.messages(t))
				}
			}
		})
	}
}

// answersAt gathers the answers that follow a point.
func answersAt(t *testing.T, entries []entry) answers {
	a := answers{}
	for _, e := range entries {
		if e.Point != "" || !e.question() {
			break
		}
		a.add(t, e)
	}
	return a
}
