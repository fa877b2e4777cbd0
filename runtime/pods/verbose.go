package pods

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/dialect"
)

// podInfo is the JSON object of a verbose status for a pod. CRI-O has no config, overhead nor resources;
// containerd has the latter two after UpdatePodSandboxResources, from 2.1 on.
type podInfo struct {
	Config      *runtimeapi.PodSandboxConfig   `json:"config"`
	Overhead    *runtimeapi.ContainerResources `json:"overhead"`
	Resources   *runtimeapi.ContainerResources `json:"resources"`
	RuntimeSpec runtimeSpec                    `json:"runtimeSpec"`
}

// containerInfo is that object for a container. CRI-O has no config, and cri-dockerd
// no runtime spec either; the config of containerd is as it was at CreateContainer,
// and updates do not change it.
type containerInfo struct {
	SandboxID   string                      `json:"sandboxID"`
	PID         int                         `json:"pid"`        // 0 while it does not run, but for CRI-O
	Privileged  bool                        `json:"privileged"` // of CRI-O
	Config      *runtimeapi.ContainerConfig `json:"config"`
	RuntimeSpec runtimeSpec                 `json:"runtimeSpec"`
}

// runtimeSpec is the part of an OCI runtime spec (https://github.com/opencontainers/runtime-spec)
// that a store can use. The rest, mostly seccomp rules, is many times as long.
type runtimeSpec struct {
	Hostname    string            `json:"hostname"`
	Annotations map[string]string `json:"annotations"`
	Process     *struct {
		Args        []string `json:"args"`
		Env         []string `json:"env"`
		Cwd         string   `json:"cwd"`
		OOMScoreAdj *int     `json:"oomScoreAdj"`
	} `json:"process"`
	Linux *struct {
		CgroupsPath string                `json:"cgroupsPath"`
		Sysctl      map[string]string     `json:"sysctl"`
		Resources   *specs.LinuxResources `json:"resources"`
	} `json:"linux"`
}

// parseInfo reads the info of a verbose status. A runtime that gives none gets
// the zero value.
func parseInfo[T podInfo | containerInfo](info map[string]string) (T, error) {
	var t T
	for _, key := range dialect.Union(func(r dialect.Runtime) []string { return []string{r.Verbose} }) {
		text, ok := info[key]
		if !ok {
			continue
		}
		err := json.Unmarshal([]byte(text), &t)
		if err != nil {
			err = fmt.Errorf("the verbose info is not the JSON it should be: %w", err)
		}
		return t, err
	}
	return t, nil
}

// config returns the config with its env values as they were sent, or nil if
// there is none. In JSON they are strings where the runtime was built with a
// CRI whose KeyValue.value is a string (containerd 1.6), and base64 where it is
// bytes (CRI v0.37.0); the latter's decoder takes both for strings.
func (i *containerInfo) config() *runtimeapi.ContainerConfig {
	if i.Config == nil {
		return nil
	}
	decoded := make([][]byte, len(i.Config.Envs))
	for n, kv := range i.Config.Envs {
		value, err := base64.StdEncoding.DecodeString(string(kv.GetValue()))
		if err != nil {
			return i.Config
		}
		decoded[n] = value
	}
	// The values may be plain text, though all could be base64. The spec's process has them as they really are, though of a
	// name that comes twice perhaps only the last: whichever reading of the config agrees with it more often is right.
	// With no spec to compare, that they could all be base64 says that they are.
	if process := i.RuntimeSpec.Process; process != nil {
		actual := map[string]bool{}
		for _, line := range process.Env {
			actual[line] = true
		}
		last := map[string]int{}
		for n, kv := range i.Config.Envs {
			last[kv.GetKey()] = n
		}
		asPlain, asBase64 := 0, 0
		for name, n := range last {
			if actual[name+"="+string(i.Config.Envs[n].GetValue())] {
				asPlain++
			}
			if actual[name+"="+string(decoded[n])] {
				asBase64++
			}
		}
		if asPlain > asBase64 {
			return i.Config
		}
	}
	for n, kv := range i.Config.Envs {
		if kv != nil {
			kv.Value = decoded[n]
		}
	}
	return i.Config
}
