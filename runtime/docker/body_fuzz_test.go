package docker

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// all is what Docker reads of a body, with what this build does not know. It is decoded as dockerd
// decodes: names in any case, the last one of several counts.
type all struct {
	container
	NetworkingConfig, Healthcheck any
}

// FuzzCreateBody: a body that plugins change nothing of stays byte for byte. Of one that they change,
// Docker reads their values, and all others as before.
func FuzzCreateBody(f *testing.F) {
	for _, seed := range []string{
		`null`, `{}`, ` { } `, `{"Image":"a"}trailing`, `{"Image":"a","image":"b","IMAGE":null}`, `{"HostConfig":null}`, `{"HostConfig":{"CpuQuota":1},"hostconfig":{"cpuquota":2,"CPUQUOTA":3}}`,
		`{"Labels":{"a":"1","a":"2","annotation.x":"y"},"labels":{"A":"3"},"Env":["A=1","A=2","B","=","\ud800"]}`,
		`{"HostConfig":{"Memory":9223372036854775807,"MemorySwap":-1,"New":1e400,"Binds":["/a:/b:ro","v:/c"],"Devices":[{"PathOnHost":"/dev/x","Future":[[[[1]]]]}]}}`,
		"{\"Hostname\":\"\xff\xfe\",\"\xff\":1,\"Labels\":{\"\xff\":\"\xff\"}}", `{"Deep":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`,
		`{"HostConfig":{"Binds":["/x:/y"],"Mounts":[{"Type":"volume"},{"Type":"bind","Source":"/a","Target":"/b"}]},"hostconfig":{"mounts":[{"Type":"bind"}]}}`,
		`{"NetworkingConfig":{"a":1.50},"Healthcheck":{"Test":["x"]},"Entrypoint":"sh","Cmd":["a"],"User":"1:2"}`,
	} {
		f.Add([]byte(seed), int64(70000), "v")
	}
	f.Fuzz(func(t *testing.T, body []byte, quota int64, value string) {
		of := new(container)
		if _, _, err := membersOf(body); err != nil || decode(body, of) != nil {
			return // plugins do not see it
		}
		made := func() *runtimeapi.CreateContainerRequest {
			return &runtimeapi.CreateContainerRequest{SandboxConfig: podConfig(mainTestName, of, ofPod), Config: containerConfig(mainTestName, of, ofPod)}
		}
		same := newChanges(body)
		same.container(of, ofPod, made(), made())
		if same.err != nil || !bytes.Equal(same.text(), body) {
			t.Fatalf("without a change %q becomes %q, %v", body, same.text(), same.err)
		}
		to := proto.CloneOf(made())
		to.Config.Linux.Resources.CpuQuota = quota
		to.Config.Annotations = map[string]string{"added": value}
		for k, v := range made().GetConfig().GetAnnotations() {
			if k != "added" {
				to.Config.Annotations[k] = v
			}
		}
		to.Config.Envs = append(to.Config.Envs, &runtimeapi.KeyValue{Key: "ADDED", Value: []byte(value)})
		changed := newChanges(body)
		changed.container(of, ofPod, made(), to)
		if changed.err != nil {
			t.Fatalf("changing %q: %v", body, changed.err)
		}
		checkChanged(t, body, changed.text(), made().GetConfig().GetLinux().GetResources(), quota, value)
	})
}

const mainTestName = "k8s_main_web_shop_uid_0"

func checkChanged(t *testing.T, body, changed []byte, was *runtimeapi.LinuxContainerResources, quota int64, value string) {
	t.Helper()
	var before, after all
	if decode(body, &before) != nil {
		return
	}
	if err := decode(changed, &after); err != nil {
		t.Fatalf("%q becomes %q: %v", body, changed, err)
	}
	text, err := json.Marshal(value)
	if err != nil || json.Unmarshal(text, &value) != nil { // what is not UTF-8 is replaced
		t.Fatal(err)
	}
	if got := after.Labels["annotation.added"]; got != value {
		t.Errorf("%q becomes %q: the label is %q", body, changed, got)
	}
	if n := len(after.Env); n == 0 || after.Env[n-1] != "ADDED="+value {
		t.Errorf("%q becomes %q: the environment is %q", body, changed, after.Env)
	}
	if r := after.HostConfig.cri(); before.HostConfig.NanoCpus == 0 && r.GetCpuQuota() != quota {
		t.Errorf("%q becomes %q: the quota is %d", body, changed, r.GetCpuQuota())
	}
	for _, c := range []*all{&before, &after} {
		c.Labels, c.Env = nil, nil
		c.HostConfig.CpuQuota, c.HostConfig.CpuPeriod, c.HostConfig.NanoCpus = 0, 0, 0
	}
	if !reflect.DeepEqual(before, after) {
		t.Errorf("%q becomes %q: Docker reads %+v, and not %+v", body, changed, after, before)
	}
}
