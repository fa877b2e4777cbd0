package pods

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// FuzzVerboseStatus: whatever a runtime says, the answer is a record that can be
// used, or an error.
func FuzzVerboseStatus(f *testing.F) {
	files, _ := filepath.Glob("../../testdata/cri/*.json")
	for _, file := range files {
		for _, e := range load(f, file) {
			if !strings.HasSuffix(e.Method, "Status") {
				continue
			}
			_, m := e.messages(f)
			f.Add(m.(interface{ GetInfo() map[string]string }).GetInfo()[infoKey], true, int64(7))
		}
	}
	f.Add(`{"config":{"envs":[null,{"key":"A","value":"AAAA"}]},"runtimeSpec":{"process":{"env":["A"]}}}`, true, int64(1))
	f.Add(`{"config":null,"runtimeSpec":null,"overhead":{"linux":null}}`, false, int64(1))
	f.Fuzz(func(t *testing.T, text string, withResources bool, shares int64) {
		info := map[string]string{infoKey: text}
		st := &runtimeapi.ContainerStatus{Id: "c"}
		if withResources {
			st.Resources = &runtimeapi.ContainerResources{Linux: &runtimeapi.LinuxContainerResources{CpuShares: shares}}
		}
		s := NewStore()
		r := s.begin("")
		if reported, err := readContainerStatus(&runtimeapi.ContainerStatusResponse{Status: st, Info: info}); err == nil {
			use(t, s.reconcileContainer(r, reported).Config)
		}
		if reported, err := readPodStatus(&runtimeapi.PodSandboxStatusResponse{Status: &runtimeapi.PodSandboxStatus{Id: "p"}, Info: info}); err == nil {
			use(t, s.reconcilePod(r, reported).Config)
		}
		s.end(r)
		update(s, "c", &runtimeapi.LinuxContainerResources{CpusetCpus: "0"})
		removePod(s, "p")
		removeContainer(s, "c")
		empty(t, s)
	})
}

// FuzzEnv: values survive both forms, in whichever way they look like the other.
func FuzzEnv(f *testing.F) {
	f.Add("prod", "", "dHJ1ZQ==")
	f.Add("", "", "")
	f.Add("AAAA", "\xff\xfe", "a=b")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		envs := env("A", a, "B", b, "PATH", c)
		process := object{"process": object{"env": containerdEnv(envs)}}
		coded := envOf(t, object{"config": object{"envs": asBase64(envs)}, "runtimeSpec": process})
		if diff := cmp.Diff(envs, coded, protocmp.Transform()); diff != "" {
			t.Errorf("as base64 (-sent +read):\n%s", diff)
		}
		text := envOf(t, object{"config": &runtimeapi.ContainerConfig{Envs: envs}, "runtimeSpec": process})
		for i := range envs {
			if want := jsonText(envs[i].Value); string(text[i].Value) != want {
				t.Errorf("as text: %q became %q", envs[i].Value, text[i].Value)
			}
		}
	})
}

// use does to a config what its users do.
func use[T proto.Message](t *testing.T, config T) {
	t.Helper()
	if !config.ProtoReflect().IsValid() {
		t.Fatal("a record without a config")
	}
	proto.Equal(config, proto.CloneOf(config))
}

// FuzzObserve: no call, however odd, makes the store panic or keep what is removed.
func FuzzObserve(f *testing.F) {
	requests := []proto.Message{
		&runtimeapi.RunPodSandboxRequest{Config: podConfig(), RuntimeHandler: "kata"},
		&runtimeapi.StopPodSandboxRequest{PodSandboxId: "p"},
		&runtimeapi.RemovePodSandboxRequest{PodSandboxId: "p"},
		&runtimeapi.UpdatePodSandboxResourcesRequest{PodSandboxId: "p", Overhead: &runtimeapi.LinuxContainerResources{CpuShares: 2}},
		&runtimeapi.CreateContainerRequest{PodSandboxId: "p", Config: appConfig()},
		&runtimeapi.StartContainerRequest{ContainerId: "c"},
		&runtimeapi.StopContainerRequest{ContainerId: "c"},
		&runtimeapi.RemoveContainerRequest{ContainerId: "c"},
		&runtimeapi.UpdateContainerResourcesRequest{ContainerId: "c", Linux: appConfig().Linux.Resources},
		&runtimeapi.RestorePodRequest{Config: podConfig(), ContainerConfigs: []*runtimeapi.ContainerConfig{appConfig()}},
	}
	responses := []proto.Message{
		&runtimeapi.RunPodSandboxResponse{PodSandboxId: "q"},
		&runtimeapi.CreateContainerResponse{ContainerId: "d"},
		&runtimeapi.RestorePodResponse{PodSandboxId: "q", RestoredContainers: []*runtimeapi.RestoredContainer{{Name: "app", ContainerId: "d"}}},
	}
	for i, req := range requests {
		for j, resp := range responses {
			a, _ := proto.Marshal(req)
			b, _ := proto.Marshal(resp)
			f.Add(uint(i), a, a, uint(j), b)
		}
	}
	f.Fuzz(func(t *testing.T, i uint, asked, sent []byte, j uint, resp []byte) {
		decode := func(like proto.Message, b []byte) proto.Message {
			m := like.ProtoReflect().New().Interface()
			if proto.Unmarshal(b, m) != nil {
				return nil
			}
			return m
		}
		s := NewStore()
		run(s, "p", podConfig())
		create(s, "c", "p", appConfig())
		req := requests[i%uint(len(requests))]
		s.Observe(decode(req, asked), decode(req, sent), decode(responses[j%uint(len(responses))], resp))
		update(s, "c", &runtimeapi.LinuxContainerResources{CpusetCpus: "0"})
		for _, p := range s.Pods() {
			for _, c := range s.Containers(p.ID) {
				use(t, c.Config)
			}
			use(t, p.Config)
			removePod(s, p.ID)
		}
		for id := range s.containers.records { // of pods that nothing is known of
			removeContainer(s, id)
		}
		empty(t, s)
	})
}
