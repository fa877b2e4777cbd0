package docker

import (
	"bytes"
	"encoding/json"
)

// The parts of Docker's messages that a CRI message is made of. The names are those of
// github.com/moby/moby/api/types; what is not here is never decoded.

// container is the body of ContainerCreate, without the parts that the proxy does not use.
type container struct {
	Hostname, User, Image, WorkingDir string
	Env                               []string
	Entrypoint, Cmd                   words
	Labels                            map[string]string
	OpenStdin, StdinOnce, Tty         bool
	HostConfig                        hostConfig
}

type hostConfig struct {
	resources
	CgroupParent, Runtime         string
	NetworkMode, PidMode, IpcMode string
	Binds, GroupAdd               []string
	CapAdd, CapDrop               words
	SecurityOpt                   []string
	PortBindings                  map[string][]binding // by the container's port and protocol, as 80/tcp
	Sysctls                       map[string]string
	Privileged, ReadonlyRootfs    bool
	OomScoreAdj                   int64
	Devices                       []device
	Mounts                        []mount
}

// resources are also the body of ContainerUpdate.
type resources struct {
	CpuShares, CpuPeriod, CpuQuota, NanoCpus int64
	CpusetCpus, CpusetMems                   string
	Memory, MemorySwap                       int64
}

type binding struct{ HostIp, HostPort string }

type device struct{ PathOnHost, PathInContainer, CgroupPermissions string }

// mount is another way to write a bind. It is one of another kind, too, such as a volume.
type mount struct {
	Type, Source, Target string
	ReadOnly             bool
	BindOptions          struct{ Propagation string }
}

// inspection is the answer of ContainerInspect.
type inspection struct {
	ID      string `json:"Id"`
	Name    string // with a slash before
	Created string
	State   struct {
		Status string
		Pid    int
	}
	Image      string    // its id
	Config     container // its HostConfig is empty
	HostConfig hostConfig
}

// words is a list of strings, or one string.
type words []string

func (w *words) UnmarshalJSON(text []byte) error {
	if bytes.HasPrefix(text, []byte(`"`)) {
		*w = words{""}
		return json.Unmarshal(text, &(*w)[0])
	}
	return json.Unmarshal(text, (*[]string)(w))
}

// summary is an element of the answer of ContainerList.
type summary struct {
	ID     string `json:"Id"`
	Names  []string
	Labels map[string]string
	State  string
}

// decode decodes the first JSON value of a text, as Docker does.
func decode(text []byte, into any) error {
	return json.NewDecoder(bytes.NewReader(text)).Decode(into)
}
