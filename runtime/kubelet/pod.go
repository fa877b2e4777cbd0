package kubelet

import (
	"cmp"
	"crypto/sha1"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

// Pod is the part of a Kubernetes Pod that its CRI requests come from. It has the
// defaults that the API server gives.
type Pod struct {
	Kind     string   `json:"kind"`
	Metadata Metadata `json:"metadata"`
	Spec     Spec     `json:"spec"`
}

// Metadata names a Pod.
type Metadata struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace"`
	UID         string            `json:"uid"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// Spec is what a Pod is to be.
type Spec struct {
	Containers            []Container      `json:"containers"`
	InitContainers        []Container      `json:"initContainers"`
	Volumes               []map[string]any `json:"volumes"`
	Resources             *Requirements    `json:"resources"`
	Overhead              Quantities       `json:"overhead"`
	RuntimeClassName      string           `json:"runtimeClassName"`
	PriorityClassName     string           `json:"priorityClassName"`
	NodeName              string           `json:"nodeName"`
	Hostname              string           `json:"hostname"`
	HostNetwork           bool             `json:"hostNetwork"`
	HostPID               bool             `json:"hostPID"`
	HostIPC               bool             `json:"hostIPC"`
	HostUsers             *bool            `json:"hostUsers"`
	ShareProcessNamespace bool             `json:"shareProcessNamespace"`
	ServiceAccountName    string           `json:"serviceAccountName"`
	GracePeriod           *int64           `json:"terminationGracePeriodSeconds"`
	Security              PodSecurity      `json:"securityContext"`
}

// Container is one container of a Pod.
type Container struct {
	Name              string        `json:"name"`
	Image             string        `json:"image"`
	ImagePullPolicy   string        `json:"imagePullPolicy"`
	Command           []string      `json:"command"`
	Args              []string      `json:"args"`
	WorkingDir        string        `json:"workingDir"`
	Env               []EnvVar      `json:"env"`
	EnvFrom           []any         `json:"envFrom"` // elsewhere in the cluster
	Ports             []Port        `json:"ports"`
	Resources         Requirements  `json:"resources"`
	VolumeMounts      []VolumeMount `json:"volumeMounts"`
	RestartPolicy     string        `json:"restartPolicy"`
	Stdin             bool          `json:"stdin"`
	StdinOnce         bool          `json:"stdinOnce"`
	TTY               bool          `json:"tty"`
	TerminationPath   string        `json:"terminationMessagePath"`
	TerminationPolicy string        `json:"terminationMessagePolicy"`
	Security          Security      `json:"securityContext"`
}

// EnvVar is a variable of a container's environment.
type EnvVar struct {
	Name      string `json:"name"`
	Value     string `json:"value"`
	ValueFrom *struct {
		FieldRef *struct {
			FieldPath string `json:"fieldPath"`
		} `json:"fieldRef"`
	} `json:"valueFrom"`
}

// Port is a port of a container, as kubelet writes it into an annotation.
type Port struct {
	Name          string `json:"name,omitempty"`
	HostPort      int32  `json:"hostPort,omitempty"`
	ContainerPort int32  `json:"containerPort"`
	Protocol      string `json:"protocol,omitempty"`
	HostIP        string `json:"hostIP,omitempty"`
}

// Quantities are amounts by the name of the resource, such as "cpu".
type Quantities map[string]resource.Quantity

// Requirements are what a container, or a whole Pod, asks for and may have.
type Requirements struct {
	Requests Quantities `json:"requests"`
	Limits   Quantities `json:"limits"`
}

// VolumeMount is where a container sees a volume.
type VolumeMount struct {
	Name        string `json:"name"`
	MountPath   string `json:"mountPath"`
	SubPath     string `json:"subPath"`
	ReadOnly    bool   `json:"readOnly"`
	Propagation string `json:"mountPropagation"`
}

// PodSecurity is the security context of a Pod.
type PodSecurity struct {
	RunAsUser          *int64  `json:"runAsUser"`
	RunAsGroup         *int64  `json:"runAsGroup"`
	FSGroup            *int64  `json:"fsGroup"`
	SupplementalGroups []int64 `json:"supplementalGroups"`
	Sysctls            []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"sysctls"`
	Seccomp  *Profile `json:"seccompProfile"`
	AppArmor *Profile `json:"appArmorProfile"`
}

// Profile is one of seccomp or AppArmor: RuntimeDefault, Unconfined or Localhost.
type Profile struct {
	Type      string `json:"type"`
	Localhost string `json:"localhostProfile"`
}

// Security is the security context of a container.
type Security struct {
	Privileged     bool   `json:"privileged"`
	RunAsUser      *int64 `json:"runAsUser"`
	RunAsGroup     *int64 `json:"runAsGroup"`
	ReadOnlyRootFS bool   `json:"readOnlyRootFilesystem"`

	AllowEscalation *bool    `json:"allowPrivilegeEscalation"`
	Seccomp         *Profile `json:"seccompProfile"`
	AppArmor        *Profile `json:"appArmorProfile"`
	Capabilities    *struct {
		Add  []string `json:"add"`
		Drop []string `json:"drop"`
	} `json:"capabilities"`
}

// runtimeClass is a RuntimeClass, whose overhead the API server adds to its Pods.
type runtimeClass struct {
	Kind     string   `json:"kind"`
	Metadata Metadata `json:"metadata"`
	Handler  string   `json:"handler"`
	Overhead struct {
		PodFixed Quantities `json:"podFixed"`
	} `json:"overhead"`
}

var separator = regexp.MustCompile(`(?m)^---([ \t]+#.*|[ \t]*\r?)$`)

// Read reads the first Pod of a YAML or JSON file, and the RuntimeClass that it names
// if the file has it. handler is the runtime handler: the RuntimeClass's, or its
// name if it is not there, which is what such classes are called more often than not.
func Read(file []byte) (p *Pod, handler string, err error) {
	classes := map[string]runtimeClass{}
	for i, document := range separator.Split(string(file), -1) {
		if strings.TrimSpace(document) == "" {
			continue
		}
		var class runtimeClass
		err := yaml.Unmarshal([]byte(document), &class)
		switch {
		case err != nil:
		case class.Kind == "RuntimeClass":
			classes[class.Metadata.Name] = class
		case class.Kind == "Pod" && p == nil:
			p = &Pod{}
			err = yaml.Unmarshal([]byte(document), p)
		}
		if err != nil {
			return nil, "", fmt.Errorf("document %d: %w", i+1, err)
		}
	}
	if p == nil {
		return nil, "", errors.New("there is no Pod in it")
	}
	handler = p.Spec.RuntimeClassName
	if class, ok := classes[handler]; ok {
		handler = class.Handler
		if p.Spec.Overhead == nil {
			p.Spec.Overhead = class.Overhead.PodFixed
		}
	}

	// The defaults of the API server.
	if p.Metadata.Name == "" || len(p.Spec.Containers) == 0 {
		return nil, "", errors.New("the Pod needs metadata.name and spec.containers")
	}
	m := &p.Metadata
	m.Namespace = cmp.Or(m.Namespace, "default")
	if m.UID == "" {
		sum := sha1.Sum([]byte(m.Namespace + "/" + m.Name)) // no secret: an id that stays the same
		m.UID = fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
	}
	if p.Spec.GracePeriod == nil {
		seconds := int64(30)
		p.Spec.GracePeriod = &seconds
	}
	for _, list := range [][]Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			list[i].complete(p.Spec.HostNetwork)
		}
	}
	if r := p.Spec.Resources; r != nil && len(r.Limits) > 0 {
		r.request(p.containers(requests))
		r.request(r.Limits)
	}
	return p, handler, nil
}

func (c *Container) complete(hostNetwork bool) {
	c.TerminationPath = cmp.Or(c.TerminationPath, "/dev/termination-log")
	c.TerminationPolicy = cmp.Or(c.TerminationPolicy, "File")
	for i := range c.Ports {
		port := &c.Ports[i]
		port.Protocol = cmp.Or(port.Protocol, "TCP")
		if hostNetwork {
			port.HostPort = cmp.Or(port.HostPort, port.ContainerPort)
		}
	}
	c.Resources.request(c.Resources.Limits)
}

// request makes amounts requests, but for what is requested already.
func (r *Requirements) request(amounts Quantities) {
	for name, amount := range amounts {
		if _, requested := r.Requests[name]; requested {
			continue
		}
		if r.Requests == nil {
			r.Requests = Quantities{}
		}
		r.Requests[name] = amount
	}
}

// Container finds a container by its name, the first one if it is "".
func (p *Pod) Container(name string) (*Container, error) {
	if name == "" {
		return &p.Spec.Containers[0], nil
	}
	var names []string
	for _, list := range [][]Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i], nil
			}
			names = append(names, list[i].Name)
		}
	}
	return nil, fmt.Errorf("the Pod has no container %q; it has %s", name, strings.Join(names, ", "))
}
