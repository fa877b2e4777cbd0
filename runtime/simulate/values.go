package simulate

import (
	"strconv"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/fixture"
)

// values are the fields of a fixture's object. Package fixture has checked them; one
// that is not there is zero.
type values struct{ fixture.Fields }

func (f values) number(name string) int64 {
	n, _ := f.Fields[name].(int64)
	return n
}

func (f values) text(name string) string {
	s, _ := f.Fields[name].(string)
	return s
}

func (f values) entries(name string) map[string]string {
	m, _ := f.Fields[name].(map[string]string)
	return m
}

func (f values) list(name string) []string {
	l, _ := f.Fields[name].([]string)
	return l
}

func (f values) records(name string) []map[string]string {
	r, _ := f.Fields[name].([]map[string]string)
	return r
}

func (f values) flag(name string) bool { return f.number(name) != 0 }

func (f values) ports() (ports []int32) {
	for _, text := range f.list("ports") {
		port, _ := strconv.ParseInt(text, 10, 32) // one that is none is 0, as is none
		ports = append(ports, int32(port))
	}
	return ports
}

func (f values) optional(name string) *runtimeapi.Int64Value {
	n, given := f.Fields[name].(int64)
	if !given {
		return nil
	}
	return &runtimeapi.Int64Value{Value: n}
}

// sandbox is the config of a pod. An id is part of the name of a cgroup that is not given.
func (f values) sandbox(id string) *runtimeapi.PodSandboxConfig {
	return &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{
			Name: f.text("name"), Namespace: f.text("namespace"), Uid: f.text("uid"), Attempt: uint32(f.number("attempt")),
		},
		Hostname: f.text("hostname"), LogDirectory: f.text("log_directory"),
		Labels: f.entries("labels"), Annotations: f.entries("annotations"),
		Linux: &runtimeapi.LinuxPodSandboxConfig{
			CgroupParent: f.cgroupParent(id), Sysctls: f.entries("sysctls"),
			Overhead: f.resources("overhead."), Resources: f.resources("resources."),
			SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{
				Privileged: f.flag("privileged"),
				NamespaceOptions: &runtimeapi.NamespaceOption{
					Network: f.namespace("network_namespace"), Pid: f.namespace("pid_namespace"), Ipc: f.namespace("ipc_namespace"),
					UsernsOptions: &runtimeapi.UserNamespace{Mode: f.namespace("user_namespace")},
				},
			},
		},
	}
}

// cgroupParent is where kubelet would put a pod of the class, which shows the class. A pod
// without one is elsewhere.
func (f values) cgroupParent(id string) string {
	if parent, given := f.Fields["cgroup_parent"].(string); given {
		return parent
	}
	switch f.text("qos") {
	case "Burstable":
		return "/kubepods/burstable/" + id
	case "BestEffort":
		return "/kubepods/besteffort/" + id
	case "Guaranteed":
		return "/kubepods/" + id
	}
	return "/pods/" + id
}

func (f values) namespace(name string) runtimeapi.NamespaceMode {
	return runtimeapi.NamespaceMode(runtimeapi.NamespaceMode_value[strings.ToUpper(f.text(name))])
}

func (f values) resources(prefix string) *runtimeapi.LinuxContainerResources {
	r := &runtimeapi.LinuxContainerResources{
		CpuPeriod: f.number(prefix + "cpu_period"), CpuQuota: f.number(prefix + "cpu_quota"), CpuShares: f.number(prefix + "cpu_shares"),
		MemoryLimitInBytes: f.number(prefix + "memory_limit_in_bytes"), OomScoreAdj: f.number(prefix + "oom_score_adj"),
		CpusetCpus: f.text(prefix + "cpuset_cpus"), CpusetMems: f.text(prefix + "cpuset_mems"),
		Unified: f.entries(prefix + "unified"), MemorySwapLimitInBytes: f.number(prefix + "memory_swap_limit_in_bytes"),
	}
	for size, text := range f.entries(prefix + "hugepage_limits") {
		limit, _ := strconv.ParseUint(text, 10, 64)
		r.HugepageLimits = append(r.HugepageLimits, &runtimeapi.HugepageLimit{PageSize: size, Limit: limit})
	}
	return r
}

func (f values) container() *runtimeapi.ContainerConfig {
	c := &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: f.text("name"), Attempt: uint32(f.number("attempt"))},
		Image:    &runtimeapi.ImageSpec{Image: f.text("image")},
		Command:  f.list("command"), Args: f.list("args"), WorkingDir: f.text("working_dir"), LogPath: f.text("log_path"),
		Labels: f.entries("labels"), Annotations: f.entries("annotations"),
		Linux: &runtimeapi.LinuxContainerConfig{
			Resources: f.resources("resources."),
			SecurityContext: &runtimeapi.LinuxContainerSecurityContext{
				RunAsUser: f.optional("run_as_user"), RunAsGroup: f.optional("run_as_group"), RunAsUsername: f.text("run_as_username"),
				Privileged: f.flag("privileged"), ReadonlyRootfs: f.flag("readonly_rootfs"),
			},
		},
	}
	for _, name := range sortedKeys(f.entries("env")) {
		c.Envs = append(c.Envs, &runtimeapi.KeyValue{Key: name, Value: []byte(f.entries("env")[name])})
	}
	for _, text := range f.list("supplemental_groups") {
		group, _ := strconv.ParseInt(text, 10, 64)
		c.Linux.SecurityContext.SupplementalGroups = append(c.Linux.SecurityContext.SupplementalGroups, group)
	}
	f.attach(c)
	return c
}

// attach gives the container what comes from the node.
func (f values) attach(c *runtimeapi.ContainerConfig) {
	for _, m := range f.records("mounts") {
		propagation := runtimeapi.MountPropagation_value["PROPAGATION_"+strings.ToUpper(m["propagation"])]
		c.Mounts = append(c.Mounts, &runtimeapi.Mount{
			ContainerPath: m["container_path"], HostPath: m["host_path"], Readonly: m["readonly"] == "true",
			Propagation: runtimeapi.MountPropagation(propagation), SelinuxRelabel: m["selinux_relabel"] == "true",
			RecursiveReadOnly: m["recursive_read_only"] == "true",
		})
	}
	for _, d := range f.records("devices") {
		c.Devices = append(c.Devices, &runtimeapi.Device{ContainerPath: d["container_path"], HostPath: d["host_path"], Permissions: d["permissions"]})
	}
	for _, name := range f.list("cdi_devices") {
		c.CDIDevices = append(c.CDIDevices, &runtimeapi.CDIDevice{Name: name})
	}
}
