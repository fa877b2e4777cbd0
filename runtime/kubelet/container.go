package kubelet

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// CreateContainer is the request that makes a container in the Pod's sandbox:
// generateContainerConfig of pkg/kubelet/kuberuntime. lacking names the variables
// whose values are elsewhere in the cluster, and which the request does not have.
func (n Node) CreateContainer(p *Pod, c *Container, sandbox string) (r *runtimeapi.CreateContainerRequest, lacking []string) {
	env, values, lacking := p.env(c)
	config := &runtimeapi.ContainerConfig{
		Metadata:   &runtimeapi.ContainerMetadata{Name: c.Name},
		Image:      imageSpec(c.Image),
		Command:    expandAll(c.Command, values),
		Args:       expandAll(c.Args, values),
		WorkingDir: c.WorkingDir,
		Envs:       env,
		Mounts:     p.mounts(c),
		Labels:     p.labels(map[string]string{"io.kubernetes.container.name": c.Name}),
		// newContainerAnnotations of labels.go, without the hash, which only kubelet knows how to make.
		Annotations: map[string]string{
			"io.kubernetes.container.restartCount":             "0",
			"io.kubernetes.container.terminationMessagePath":   c.TerminationPath,
			"io.kubernetes.container.terminationMessagePolicy": c.TerminationPolicy,
			"io.kubernetes.pod.terminationGracePeriod":         strconv.FormatInt(*p.Spec.GracePeriod, 10),
		},
		LogPath: c.Name + "/0.log",
		Stdin:   c.Stdin, StdinOnce: c.StdinOnce, Tty: c.TTY,
		Linux: &runtimeapi.LinuxContainerConfig{
			Resources: n.containerResources(p, c),
			SecurityContext: &runtimeapi.LinuxContainerSecurityContext{
				NamespaceOptions: p.namespaces(), Privileged: c.Security.Privileged, ReadonlyRootfs: c.Security.ReadOnlyRootFS,
				RunAsUser:          number(cmp.Or(c.Security.RunAsUser, p.Spec.Security.RunAsUser)),
				RunAsGroup:         number(cmp.Or(c.Security.RunAsGroup, p.Spec.Security.RunAsGroup)),
				SupplementalGroups: p.groups(),
				NoNewPrivs:         c.Security.AllowEscalation != nil && !*c.Security.AllowEscalation,
				Seccomp:            &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined},
			},
		},
	}
	if len(c.Ports) > 0 {
		ports, _ := json.Marshal(c.Ports) // of strings and numbers
		config.Annotations["io.kubernetes.container.ports"] = string(ports)
	}
	s := config.Linux.SecurityContext
	if of := c.Security.Capabilities; of != nil {
		s.Capabilities = &runtimeapi.Capability{AddCapabilities: of.Add, DropCapabilities: of.Drop}
	}
	// getSeccompProfile of helpers.go, without kubelet's seccompDefault.
	if profile := cmp.Or(c.Security.Seccomp, p.Spec.Security.Seccomp); profile != nil {
		s.Seccomp = profile.message()
		if s.Seccomp.LocalhostRef != "" {
			s.Seccomp.LocalhostRef = path.Join(seccompRoot, s.Seccomp.LocalhostRef)
		}
	}
	// getAppArmorProfile of the same file, without the annotations of Kubernetes before 1.30.
	if profile := cmp.Or(c.Security.AppArmor, p.Spec.Security.AppArmor); profile != nil {
		s.Apparmor = profile.message()
		older := map[string]string{"RuntimeDefault": "runtime/default", "Unconfined": "unconfined", "Localhost": "localhost/"}
		//lint:ignore SA1019 kubelet sends both
		s.ApparmorProfile = older[profile.Type] + profile.Localhost
	}
	return &runtimeapi.CreateContainerRequest{PodSandboxId: sandbox, Config: config, SandboxConfig: n.SandboxConfig(p)}, lacking
}

// seccompRoot is where kubelet has profiles of seccomp.
const seccompRoot = "/var/lib/kubelet/seccomp"

func (p *Profile) message() *runtimeapi.SecurityProfile {
	return &runtimeapi.SecurityProfile{
		ProfileType: runtimeapi.SecurityProfile_ProfileType(runtimeapi.SecurityProfile_ProfileType_value[p.Type]), LocalhostRef: p.Localhost,
	}
}

// imageSpec is an image as kubelet asks for it: by the id that the runtime has told, which is made up here.
func imageSpec(name string) *runtimeapi.ImageSpec {
	return &runtimeapi.ImageSpec{Image: ImageID(name), UserSpecifiedImage: name}
}

// ImageID is an id such as a runtime tells of an image, always the same for a name. It is "" without one.
func ImageID(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(name)))
}

// PullImage is the request for a container's image: EnsureImageExists of pkg/kubelet/images. always says that kubelet makes
// it also for an image that is there.
func (n Node) PullImage(p *Pod, c *Container) (r *runtimeapi.PullImageRequest, always bool) {
	name := c.Image
	if _, last := path.Split(name); !strings.ContainsAny(last, ":@") {
		name += ":latest"
	}
	always = c.ImagePullPolicy == "Always" || c.ImagePullPolicy == "" && strings.HasSuffix(name, ":latest")
	image := &runtimeapi.ImageSpec{Image: name, Annotations: p.Metadata.Annotations}
	return &runtimeapi.PullImageRequest{Image: image, SandboxConfig: n.SandboxConfig(p)}, always
}

// UpdateContainerResources is the request of an in-place resize to what the Pod says.
func (n Node) UpdateContainerResources(p *Pod, c *Container, id string) *runtimeapi.UpdateContainerResourcesRequest {
	return &runtimeapi.UpdateContainerResourcesRequest{ContainerId: id, Linux: n.containerResources(p, c)}
}

// UpdatePodSandboxResources is that of the whole Pod.
func (n Node) UpdatePodSandboxResources(p *Pod, sandbox string) *runtimeapi.UpdatePodSandboxResourcesRequest {
	linux := n.sandboxLinux(p)
	return &runtimeapi.UpdatePodSandboxResourcesRequest{PodSandboxId: sandbox, Overhead: linux.Overhead, Resources: linux.Resources}
}

// env is makeEnvironmentVariables of pkg/kubelet/kubelet_pods.go, without services.
func (p *Pod) env(c *Container) (list []*runtimeapi.KeyValue, values map[string]string, lacking []string) {
	values = map[string]string{}
	if len(c.EnvFrom) > 0 {
		lacking = append(lacking, "all of envFrom")
	}
	for _, v := range c.Env {
		value, ok := expand(v.Value, values), true
		if v.ValueFrom != nil {
			if value, ok = "", false; v.ValueFrom.FieldRef != nil {
				value, ok = p.field(v.ValueFrom.FieldRef.FieldPath)
			}
		}
		if !ok {
			lacking = append(lacking, v.Name)
			continue
		}
		values[v.Name] = value
		list = append(list, &runtimeapi.KeyValue{Key: v.Name, Value: []byte(value)})
	}
	return list, values, lacking
}

// field is what a fieldRef names, as far as the manifest tells.
func (p *Pod) field(name string) (string, bool) {
	m := p.Metadata
	if key, ok := strings.CutPrefix(name, "metadata.labels['"); ok {
		return m.Labels[strings.TrimSuffix(key, "']")], true
	}
	if key, ok := strings.CutPrefix(name, "metadata.annotations['"); ok {
		return m.Annotations[strings.TrimSuffix(key, "']")], true
	}
	v, ok := map[string]string{
		"metadata.name": m.Name, "metadata.namespace": m.Namespace, "metadata.uid": m.UID,
		"spec.nodeName": p.Spec.NodeName, "spec.serviceAccountName": cmp.Or(p.Spec.ServiceAccountName, "default"),
	}[name]
	return v, ok
}

func expandAll(texts []string, values map[string]string) []string {
	var all []string
	for _, text := range texts {
		all = append(all, expand(text, values))
	}
	return all
}

// expand replaces $(NAME) by the variable, if there is one before, and $$ by $:
// third_party/forked/golang/expansion of k8s.io/kubernetes.
func expand(text string, values map[string]string) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "$")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		name, after, closed := strings.Cut(strings.TrimPrefix(rest, "("), ")")
		switch value, known := values[name]; {
		case strings.HasPrefix(rest, "$"):
			out.WriteString("$")
			text = rest[1:]
		case !strings.HasPrefix(rest, "(") || !closed:
			out.WriteString("$")
			text = rest
		case known:
			out.WriteString(value)
			text = after
		default:
			out.WriteString("$(" + name + ")")
			text = after
		}
	}
}

var propagations = map[string]runtimeapi.MountPropagation{
	"HostToContainer": runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER,
	"Bidirectional":   runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL,
}

// mounts is makeMounts of pkg/kubelet/kubelet_pods.go.
func (p *Pod) mounts(c *Container) []*runtimeapi.Mount {
	var all []*runtimeapi.Mount
	hosts := true
	for i, m := range c.VolumeMounts {
		hosts = hosts && m.MountPath != "/etc/hosts"
		source, image := p.volume(m.Name)
		if image != "" {
			all = append(all, &runtimeapi.Mount{
				ContainerPath: m.MountPath, Readonly: true, Image: imageSpec(image), ImageSubPath: m.SubPath, Propagation: propagations[m.Propagation],
			})
			continue
		}
		if m.SubPath != "" {
			source = path.Join(p.dir(), "volume-subpaths", m.Name, c.Name, strconv.Itoa(i))
		}
		all = append(all, &runtimeapi.Mount{
			ContainerPath: m.MountPath, HostPath: source, Readonly: m.ReadOnly, Propagation: propagations[m.Propagation],
		})
	}
	if hosts {
		all = append(all, &runtimeapi.Mount{ContainerPath: "/etc/hosts", HostPath: p.dir() + "/etc-hosts", SelinuxRelabel: true})
	}
	message := path.Join(p.dir(), "containers", c.Name, "00000000")
	return append(all, &runtimeapi.Mount{ContainerPath: c.TerminationPath, HostPath: message, SelinuxRelabel: true})
}

// dir is what kubelet has of the Pod on disk.
func (p *Pod) dir() string { return "/var/lib/kubelet/pods/" + p.Metadata.UID }

// kinds are the directories of volumes that kubelet fills, by their keys in a Pod.
var kinds = map[string]string{
	"emptyDir": "kubernetes.io~empty-dir", "configMap": "kubernetes.io~configmap", "secret": "kubernetes.io~secret",
	"projected": "kubernetes.io~projected", "downwardAPI": "kubernetes.io~downward-api",
	"persistentVolumeClaim": "kubernetes.io~csi", "ephemeral": "kubernetes.io~csi", "csi": "kubernetes.io~csi",
}

// volume is where the node has a volume, or the image that it is.
func (p *Pod) volume(name string) (source, image string) {
	for _, v := range p.Spec.Volumes {
		if v["name"] != name {
			continue
		}
		if of, ok := v["image"].(map[string]any); ok {
			image, _ = of["reference"].(string)
		}
		if host, ok := v["hostPath"].(map[string]any); ok {
			source, _ = host["path"].(string)
			return source, image
		}
		for key := range v {
			if kind := kinds[key]; kind != "" {
				return path.Join(p.dir(), "volumes", kind, name), image
			}
		}
	}
	return path.Join(p.dir(), "volumes", name), image
}
