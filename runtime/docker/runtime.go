package docker

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// The questions of CRI that a Client answers are those that the store, the hooks and the daemon
// ask.

// Version implements the method of CRI's RuntimeService.
func (c *Client) Version(ctx context.Context, _ *runtimeapi.VersionRequest, _ ...grpc.CallOption) (*runtimeapi.VersionResponse, error) {
	var v struct{ Version, ApiVersion string }
	err := c.get(ctx, "/version", nil, &v)
	return &runtimeapi.VersionResponse{Version: "0.1.0", RuntimeName: "docker", RuntimeVersion: v.Version, RuntimeApiVersion: v.ApiVersion}, err
}

type info struct {
	CgroupDriver, DefaultRuntime string
	Runtimes                     map[string]json.RawMessage
	NCPU                         int64
}

// info asks about the node. It is empty if Docker does not tell.
func (c *Client) info(ctx context.Context) *info {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	i := new(info)
	if err := c.get(ctx, "/info", nil, i); err != nil {
		return new(info)
	}
	return i
}

// handlerOf is the runtime handler of one of Docker's runtimes. Where a request names none, Docker fills in its default one.
func (c *Client) handlerOf(ctx context.Context, runtime string) string {
	switch runtime {
	case "", "runc", "io.containerd.runc.v2":
		return defaultHandler
	}
	i := c.listed.Load()
	if i == nil { // Docker starts programs to answer, so not for each pod of a list
		i = c.info(ctx)
		c.listed.Store(i)
	}
	if runtime == i.DefaultRuntime {
		return defaultHandler
	}
	return runtime
}

// RuntimeConfig implements the method of CRI's RuntimeService.
func (c *Client) RuntimeConfig(
	ctx context.Context, _ *runtimeapi.RuntimeConfigRequest, _ ...grpc.CallOption,
) (*runtimeapi.RuntimeConfigResponse, error) {
	var i info
	err := c.get(ctx, "/info", nil, &i)
	driver := runtimeapi.CgroupDriver_CGROUPFS
	if i.CgroupDriver == "systemd" {
		driver = runtimeapi.CgroupDriver_SYSTEMD
	}
	return &runtimeapi.RuntimeConfigResponse{Linux: &runtimeapi.LinuxRuntimeConfiguration{CgroupDriver: driver}}, err
}

// Status implements the method of CRI's RuntimeService, as far as runtime handlers go: dockershim takes
// the default one alone. Docker's own runtimes are those of containers that Kubernetes did not make.
func (c *Client) Status(ctx context.Context, _ *runtimeapi.StatusRequest, _ ...grpc.CallOption) (*runtimeapi.StatusResponse, error) {
	var i info
	err := c.get(ctx, "/info", nil, &i)
	if err == nil {
		c.listed.Store(&i)
	}
	answer := &runtimeapi.StatusResponse{RuntimeHandlers: []*runtimeapi.RuntimeHandler{{Name: defaultHandler}}}
	for name := range i.Runtimes {
		if !c.all || c.handlerOf(ctx, name) == defaultHandler {
			continue
		}
		answer.RuntimeHandlers = append(answer.RuntimeHandlers, &runtimeapi.RuntimeHandler{Name: name})
	}
	return answer, err
}

// ListPodSandbox implements the method of CRI's RuntimeService.
func (c *Client) ListPodSandbox(
	ctx context.Context, r *runtimeapi.ListPodSandboxRequest, _ ...grpc.CallOption,
) (*runtimeapi.ListPodSandboxResponse, error) {
	c.listed.Store(nil) // Docker may have been given another default runtime
	all, err := c.list(ctx, r.GetFilter().GetId())
	answer := new(runtimeapi.ListPodSandboxResponse)
	for _, s := range all {
		k := kindOf(s.Labels, c.all)
		if k != ofSandbox && k != standalone {
			continue
		}
		labels, annotations := split(s.Labels, k.prefix())
		answer.Items = append(answer.Items, &runtimeapi.PodSandbox{
			Id: s.ID, Metadata: namesOf(s.name(), s.Labels, k).pod, State: podState(s.State), Labels: labels, Annotations: annotations, RuntimeHandler: defaultHandler,
		})
	}
	return answer, err
}

// ListContainers implements the method of CRI's RuntimeService.
func (c *Client) ListContainers(
	ctx context.Context, r *runtimeapi.ListContainersRequest, _ ...grpc.CallOption,
) (*runtimeapi.ListContainersResponse, error) {
	all, err := c.list(ctx, r.GetFilter().GetId())
	answer := new(runtimeapi.ListContainersResponse)
	for _, s := range all {
		k := kindOf(s.Labels, c.all)
		if k != ofPod && k != standalone {
			continue
		}
		n := namesOf(s.name(), s.Labels, k)
		labels, annotations := split(s.Labels, k.prefix())
		answer.Containers = append(answer.Containers, &runtimeapi.Container{
			Id: s.ID, PodSandboxId: podID(s.ID, s.Labels, k), State: containerState(s.State),
			Metadata: &runtimeapi.ContainerMetadata{Name: n.container, Attempt: n.attempt}, Labels: labels, Annotations: annotations,
		})
	}
	return answer, err
}

func (s *summary) name() string {
	if len(s.Names) == 0 {
		return ""
	}
	return s.Names[0]
}

// podID is the ID of the pod that a container is in.
func podID(id string, labels map[string]string, k kind) string {
	if k == ofPod {
		return labels[sandboxIDLabel]
	}
	return id
}

// PodSandboxStatus implements the method of CRI's RuntimeService. The answer is verbose, as
// containerd's.
func (c *Client) PodSandboxStatus(
	ctx context.Context, r *runtimeapi.PodSandboxStatusRequest, _ ...grpc.CallOption,
) (*runtimeapi.PodSandboxStatusResponse, error) {
	of, k, err := c.inspect(ctx, r.GetPodSandboxId())
	if err == nil && k != ofSandbox && k != standalone {
		err = status.Errorf(codes.NotFound, "container %s of Docker is no pod", r.GetPodSandboxId())
	}
	if err != nil {
		return nil, err
	}
	config := podConfig(of.Name, &of.Config, k)
	detail, err := json.Marshal(map[string]any{"pid": of.State.Pid, "config": config})
	return &runtimeapi.PodSandboxStatusResponse{
		Status: &runtimeapi.PodSandboxStatus{
			Id: of.ID, Metadata: config.GetMetadata(), State: podState(of.State.Status), CreatedAt: created(of.Created),
			Labels: config.GetLabels(), Annotations: config.GetAnnotations(), RuntimeHandler: c.handlerOf(ctx, of.HostConfig.Runtime),
		},
		Info: map[string]string{"info": string(detail)},
	}, err
}

// ContainerStatus implements the method of CRI's RuntimeService, in the same way.
func (c *Client) ContainerStatus(
	ctx context.Context, r *runtimeapi.ContainerStatusRequest, _ ...grpc.CallOption,
) (*runtimeapi.ContainerStatusResponse, error) {
	of, k, err := c.inspect(ctx, r.GetContainerId())
	if err == nil && k != ofPod && k != standalone {
		err = status.Errorf(codes.NotFound, "container %s of Docker is in no pod", r.GetContainerId())
	}
	if err != nil {
		return nil, err
	}
	config := containerConfig(of.Name, &of.Config, k)
	if name := config.Image.GetUserSpecifiedImage(); name != "" && of.Image != "" {
		config.Image.Image = of.Image
	}
	detail, err := json.Marshal(map[string]any{"sandboxID": podID(of.ID, of.Config.Labels, k), "pid": of.State.Pid, "config": config})
	return &runtimeapi.ContainerStatusResponse{
		Status: &runtimeapi.ContainerStatus{
			Id: of.ID, Metadata: config.GetMetadata(), State: containerState(of.State.Status), CreatedAt: created(of.Created),
			Image: config.GetImage(), Labels: config.GetLabels(), Annotations: config.GetAnnotations(), Mounts: config.GetMounts(), LogPath: config.GetLogPath(),
			Resources: &runtimeapi.ContainerResources{Linux: config.GetLinux().GetResources()},
		},
		Info: map[string]string{"info": string(detail)},
	}, err
}

// ImageStatus implements the method of CRI's ImageService, as far as names and digests go.
func (c *Client) ImageStatus(
	ctx context.Context, r *runtimeapi.ImageStatusRequest, _ ...grpc.CallOption,
) (*runtimeapi.ImageStatusResponse, error) {
	var of struct {
		ID                    string `json:"Id"`
		RepoTags, RepoDigests []string
	}
	err := c.get(ctx, "/images/"+r.GetImage().GetImage()+"/json", nil, &of)
	switch {
	case status.Code(err) == codes.NotFound:
		return &runtimeapi.ImageStatusResponse{}, nil
	case err != nil:
		return nil, err
	}
	return &runtimeapi.ImageStatusResponse{Image: &runtimeapi.Image{Id: of.ID, RepoTags: of.RepoTags, RepoDigests: of.RepoDigests}}, nil
}

// UpdateContainerResources implements the method of CRI's RuntimeService. Of a container without
// swap, memory and swap together are set as well, as cri-dockerd does.
func (c *Client) UpdateContainerResources(
	ctx context.Context, r *runtimeapi.UpdateContainerResourcesRequest, _ ...grpc.CallOption,
) (*runtimeapi.UpdateContainerResourcesResponse, error) {
	edit, has := newChanges([]byte("{}")), new(resources)
	edit.cpus = func() int64 { return c.info(ctx).NCPU }
	if c.all || r.GetLinux().GetMemoryLimitInBytes() < 0 { // dockershim uses no NanoCpus and no swap
		if of, _, err := c.inspect(ctx, r.GetContainerId()); err == nil {
			has = &of.HostConfig.resources
		}
	}
	edit.update(has, new(runtimeapi.UpdateContainerResourcesRequest), r)
	if edit.err != nil {
		return nil, edit.err
	}
	var warnings any
	err := c.do(ctx, http.MethodPost, "/containers/"+r.GetContainerId()+"/update", nil, edit.text(), &warnings)
	return new(runtimeapi.UpdateContainerResourcesResponse), err
}

func podState(state string) runtimeapi.PodSandboxState {
	if containerState(state) == runtimeapi.ContainerState_CONTAINER_RUNNING {
		return runtimeapi.PodSandboxState_SANDBOX_READY
	}
	return runtimeapi.PodSandboxState_SANDBOX_NOTREADY
}

func containerState(state string) runtimeapi.ContainerState {
	switch state {
	case "created":
		return runtimeapi.ContainerState_CONTAINER_CREATED
	case "running", "paused", "restarting":
		return runtimeapi.ContainerState_CONTAINER_RUNNING
	case "exited", "dead", "removing":
		return runtimeapi.ContainerState_CONTAINER_EXITED
	}
	return runtimeapi.ContainerState_CONTAINER_UNKNOWN
}

// created returns nanoseconds since 1970, 0 if that is not known.
func created(text string) int64 {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return 0
	}
	return at.UnixNano()
}
