package pods

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// containerdEnv is the env of a process as containerd makes it: the image's,
// then the config's, each in the place of an earlier one of its name.
func containerdEnv(envs []*runtimeapi.KeyValue) []string {
	actual := []string{"PATH=/bin", "HOSTNAME=node"}
	for _, kv := range envs {
		name := kv.GetKey() + "="
		v := name + string(kv.GetValue())
		if i := slices.IndexFunc(actual, func(a string) bool { return strings.HasPrefix(a, name) }); i >= 0 {
			actual[i] = v
		} else {
			actual = append(actual, v)
		}
	}
	return actual
}

// asBase64 is an env list in the JSON of a runtime whose KeyValue.value is bytes.
func asBase64(envs []*runtimeapi.KeyValue) []map[string]any {
	var list []map[string]any
	for _, kv := range envs {
		list = append(list, map[string]any{"key": kv.GetKey(), "value": kv.GetValue()})
	}
	return list
}

func envOf(t *testing.T, info any) []*runtimeapi.KeyValue {
	t.Helper()
	b, err := json.Marshal(info)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parseInfo[containerInfo](map[string]string{infoKey: string(b)})
	if err != nil {
		t.Fatal(err)
	}
	return parsed.config().GetEnvs()
}

type object = map[string]any

// jsonText is b after a way through JSON as a string, where each byte that is
// not UTF-8 becomes U+FFFD.
func jsonText(b []byte) string { return string([]rune(string(b))) }

func TestEnvAsTextAndAsBase64(t *testing.T) {
	for _, test := range []struct {
		name string
		envs []*runtimeapi.KeyValue
	}{
		{"none", nil},
		{"one that could be either", env("MODE", "prod")},
		{"base64 of base64", env("A", "YWJj", "B", "ZHJhZg==")},
		{"one that cannot be base64", env("A", "prod", "B", "tcp://192.0.2.1:443")},
		{"empty", env("A", "", "B", "")},
		{"empty and not", env("A", "", "B", "true")},
		{"doubled", env("A", "prod", "A", "test", "A", "1234")},
		{"replacing the image's", env("PATH", "abcd")},
		{"doubled, one the base64 of the other", env("A", "cHJvZA==", "A", "prod")},
		{"odd name", env("A=B", "prod")},
		{"odd names and values", env("A=B", "c=d", "", "x", "N", "a\nb", "U", "żółw")},
	} {
		t.Run(test.name, func(t *testing.T) {
			process := object{"process": object{"env": containerdEnv(test.envs)}}
			text := envOf(t, object{"config": &runtimeapi.ContainerConfig{Envs: test.envs}, "runtimeSpec": process})
			if diff := cmp.Diff(test.envs, text, protocmp.Transform()); diff != "" {
				t.Errorf("as text (-sent +read):\n%s", diff)
			}
			coded := envOf(t, object{"config": object{"envs": asBase64(test.envs)}, "runtimeSpec": process})
			if diff := cmp.Diff(test.envs, coded, protocmp.Transform()); diff != "" {
				t.Errorf("as base64 (-sent +read):\n%s", diff)
			}
		})
	}
}

// TestEnvThatIsNotText: base64 keeps what text cannot.
func TestEnvThatIsNotText(t *testing.T) {
	envs := env("A", "\xff\xfe", "B", "ok\x80\x80")
	process := object{"process": object{"env": containerdEnv(envs)}}
	coded := envOf(t, object{"config": object{"envs": asBase64(envs)}, "runtimeSpec": process})
	if diff := cmp.Diff(envs, coded, protocmp.Transform()); diff != "" {
		t.Errorf("(-sent +read):\n%s", diff)
	}
}

// TestEnvChangedByOthers: an NRI plugin may have changed the process's env.
func TestEnvChangedByOthers(t *testing.T) {
	envs := env("A", "prod", "B", "test")
	process := object{"process": object{"env": []string{"A=prod", "B=else", "C=more"}}}
	for what, config := range map[string]any{"text": &runtimeapi.ContainerConfig{Envs: envs}, "base64": object{"envs": asBase64(envs)}} {
		if diff := cmp.Diff(envs, envOf(t, object{"config": config, "runtimeSpec": process}), protocmp.Transform()); diff != "" {
			t.Errorf("as %s (-sent +read):\n%s", what, diff)
		}
	}
}

// TestRecordedAsBase64 plays the recordings of containerd as a build with
// KeyValue.value as bytes would have answered.
func TestRecordedAsBase64(t *testing.T) {
	files, err := filepath.Glob("../../testdata/cri/containerd-*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings of containerd (%v)", err)
	}
	recoded := 0
	for _, file := range files {
		for _, e := range load(t, file) {
			if e.Method != "ContainerStatus" {
				continue
			}
			_, m := e.messages(t)
			resp := m.(*runtimeapi.ContainerStatusResponse)
			want, err := readContainerStatus(resp)
			if err != nil {
				t.Fatal(err)
			}
			other := proto.CloneOf(resp)
			other.Info[infoKey] = recode(t, resp.Info[infoKey])
			got, err := readContainerStatus(other)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want.Config, got.Config, protocmp.Transform()); diff != "" {
				t.Errorf("%s: (-text +base64):\n%s", file, diff)
			}
			if other.Info[infoKey] != resp.Info[infoKey] {
				recoded++
			}
		}
	}
	if recoded == 0 {
		t.Error("no recording has an env")
	}
}

// recode makes the env values of a config in JSON base64.
func recode(t *testing.T, text string) string {
	t.Helper()
	var info object
	if err := json.Unmarshal([]byte(text), &info); err != nil {
		t.Fatal(err)
	}
	envs, _ := info["config"].(object)["envs"].([]any)
	for _, kv := range envs {
		if v, ok := kv.(object)["value"].(string); ok {
			kv.(object)["value"] = []byte(v)
		}
	}
	b, err := json.Marshal(info)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestCgroupsPath: the recordings have the path that the runtime really uses.
func TestCgroupsPath(t *testing.T) {
	for file, prefix := range map[string]string{"containerd-2.4.2": "", "containerd-1.6.20": "", "cri-o-1.37.0": "crio-"} {
		seen := 0
		for _, e := range load(t, "../../testdata/cri/"+file+".json") {
			if e.Method != "ContainerStatus" {
				continue
			}
			_, m := e.messages(t)
			reported, err := readContainerStatus(m.(*runtimeapi.ContainerStatusResponse))
			want := fmt.Sprintf("%s/%s%s", podConfig().GetLinux().GetCgroupParent(), prefix, reported.ID)
			if err != nil || reported.CgroupsPath != want {
				t.Errorf("%s: %q, %v, want %q", file, reported.CgroupsPath, err, want)
			}
			seen++
		}
		if seen == 0 {
			t.Errorf("%s has no container", file)
		}
	}
}

// TestResourcesOfSpec: where the status has no resources, the spec has them.
func TestResourcesOfSpec(t *testing.T) {
	const text = `{"runtimeSpec":{"process":{"oomScoreAdj":-997},"linux":{"resources":{
		"cpu":{"shares":2,"quota":-1,"period":100000,"cpus":"0-1","mems":"0"},
		"memory":{"limit":4096,"swap":8192},
		"hugepageLimits":[{"pageSize":"2MB","limit":3},{"pageSize":"2MB","limit":4}],
		"unified":{"memory.high":"2048"}}}}}`
	reported, err := readContainerStatus(&runtimeapi.ContainerStatusResponse{
		Status: &runtimeapi.ContainerStatus{Id: "c"}, Info: map[string]string{infoKey: text},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := &runtimeapi.LinuxContainerResources{
		CpuPeriod: 100000, CpuQuota: -1, CpuShares: 2, MemoryLimitInBytes: 4096, MemorySwapLimitInBytes: 8192, OomScoreAdj: -997,
		CpusetCpus: "0-1", CpusetMems: "0", HugepageLimits: []*runtimeapi.HugepageLimit{{PageSize: "2MB", Limit: 4}},
		Unified: map[string]string{"memory.high": "2048"},
	}
	got := reported.mergeInto(Container{}, false).Config.GetLinux().GetResources()
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAsOfNow: what the runtime says now is kubelet's wish only where kubelet
// wished something.
func TestAsOfNow(t *testing.T) {
	type resources = runtimeapi.LinuxContainerResources
	for _, test := range []struct {
		name               string
		created, now, want *resources
	}{
		{"not reported", &resources{CpuShares: 2}, nil, &resources{CpuShares: 2}},
		{"nothing but zeros", nil, &resources{Unified: map[string]string{}}, nil},
		{"updated", &resources{CpuShares: 2, CpusetCpus: "0-3"}, &resources{CpuShares: 2, CpusetCpus: "1"}, &resources{CpuShares: 2, CpusetCpus: "1"}},
		{"oom_score_adj restricted by the runtime", &resources{OomScoreAdj: -998}, &resources{OomScoreAdj: -500}, &resources{OomScoreAdj: -998}},
		{"swap by default", &resources{MemoryLimitInBytes: 9}, &resources{MemoryLimitInBytes: 8, MemorySwapLimitInBytes: 8}, &resources{MemoryLimitInBytes: 8}},
		{"swap by wish", &resources{MemoryLimitInBytes: 9, MemorySwapLimitInBytes: 9}, &resources{MemoryLimitInBytes: 8, MemorySwapLimitInBytes: 8},
			&resources{MemoryLimitInBytes: 8, MemorySwapLimitInBytes: 8}},
		{"more swap", &resources{MemoryLimitInBytes: 9}, &resources{MemoryLimitInBytes: 9, MemorySwapLimitInBytes: 10}, &resources{MemoryLimitInBytes: 9, MemorySwapLimitInBytes: 10}},
		{"not applied on this node", &resources{HugepageLimits: []*runtimeapi.HugepageLimit{{PageSize: "2MB"}}}, &resources{}, &resources{HugepageLimits: []*runtimeapi.HugepageLimit{{PageSize: "2MB"}}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			config := &runtimeapi.ContainerConfig{Linux: &runtimeapi.LinuxContainerConfig{Resources: test.created}}
			got := asOfNow(config, test.now).GetLinux().GetResources()
			if diff := cmp.Diff(test.want, got, protocmp.Transform()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestPodOfSpec: what the recording of CRI-O does not have, for its pod uses the
// host's network.
func TestPodOfSpec(t *testing.T) {
	const text = `{"runtimeSpec":{"hostname":"web-0","linux":{"sysctl":{"net.core.somaxconn":"1024"}},"annotations":{
		"io.kubernetes.cri-o.RuntimeHandler":"kata","io.kubernetes.cri-o.CgroupParent":"kubepods-pod1.slice",
		"io.kubernetes.cri-o.PodLinuxOverhead":"null","io.kubernetes.cri-o.PodLinuxResources":"{\"cpu_shares\":3}"}}}`
	options := &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_POD}
	reported, err := readPodStatus(&runtimeapi.PodSandboxStatusResponse{
		Status: &runtimeapi.PodSandboxStatus{Id: "p", Linux: &runtimeapi.LinuxPodSandboxStatus{Namespaces: &runtimeapi.Namespace{Options: options}}},
		Info:   map[string]string{infoKey: text},
	})
	if err != nil || reported.RuntimeHandler != "kata" {
		t.Fatalf("got %v, %v", reported, err)
	}
	want := &runtimeapi.PodSandboxConfig{Hostname: "web-0", Linux: &runtimeapi.LinuxPodSandboxConfig{
		CgroupParent:    "kubepods-pod1.slice",
		Sysctls:         map[string]string{"net.core.somaxconn": "1024"},
		Resources:       &runtimeapi.LinuxContainerResources{CpuShares: 3},
		SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{NamespaceOptions: options},
	}}
	if diff := cmp.Diff(want, reported.Config, protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
