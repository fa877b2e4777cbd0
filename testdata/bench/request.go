package main

import (
	"fmt"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// podKind says what the plugins will do with a pod's containers.
type podKind string

const (
	plain     podKind = "plain"     // read it and leave it as it is
	annotated podKind = "annotated" // change its resources
)

// memoryHigh is the annotation that plugins-wasm/qos turns into a key of `unified`.
const (
	memoryHigh      = "qos.wasmproxy.io/memory-high"
	memoryHighBytes = "100663296"
)

const podUID = "9e107d9d-372b-4f5d-9b6c-3b7c53b1e5a1"

// podConfig is that of a burstable pod as kubelet 1.36 writes it.
func podConfig(kind podKind) *cri.PodSandboxConfig {
	annotations := map[string]string{
		"kubernetes.io/config.seen":   "2026-07-24T09:15:00.000000000Z",
		"kubernetes.io/config.source": "api",
	}
	if kind == annotated {
		annotations[memoryHigh] = memoryHighBytes
	}
	return &cri.PodSandboxConfig{
		Metadata:     &cri.PodSandboxMetadata{Name: "web-" + string(kind), Uid: podUID, Namespace: "production"},
		Hostname:     "web",
		LogDirectory: "/var/log/pods/production_web_" + podUID,
		DnsConfig:    &cri.DNSConfig{Servers: []string{"10.96.0.10"}, Searches: []string{"production.svc.cluster.local", "svc.cluster.local", "cluster.local"}, Options: []string{"ndots:5"}},
		PortMappings: []*cri.PortMapping{{Protocol: cri.Protocol_TCP, ContainerPort: 8080}},
		Labels: map[string]string{
			"app": "web", "tier": "gold", "pod-template-hash": "5d4f8c7b9",
			"io.kubernetes.pod.name": "web", "io.kubernetes.pod.namespace": "production", "io.kubernetes.pod.uid": podUID,
		},
		Annotations: annotations,
		Linux: &cri.LinuxPodSandboxConfig{
			CgroupParent:    "/kubepods/burstable/pod" + podUID,
			SecurityContext: &cri.LinuxSandboxSecurityContext{NamespaceOptions: &cri.NamespaceOption{Pid: cri.NamespaceMode_CONTAINER}, Seccomp: runtimeDefault()},
			Overhead:        &cri.LinuxContainerResources{},
			Resources:       &cri.LinuxContainerResources{CpuPeriod: 100_000, CpuQuota: 50_000, CpuShares: 256, MemoryLimitInBytes: 128 << 20},
		},
	}
}

func runtimeDefault() *cri.SecurityProfile {
	return &cri.SecurityProfile{ProfileType: cri.SecurityProfile_RuntimeDefault}
}

// containerConfig is that of a web server in a namespace with a few services: with its pod, a message of 3 KiB.
func containerConfig() *cri.ContainerConfig {
	return &cri.ContainerConfig{
		Metadata:   &cri.ContainerMetadata{Name: "server"},
		Image:      &cri.ImageSpec{Image: "sha256:c6b9e3d2f4a1e8d7c5b3a2918f7e6d5c4b3a291807f6e5d4c3b2a190f8e7d6c5", UserSpecifiedImage: "registry.example/team/web:v1.2.3"},
		Command:    []string{"/usr/local/bin/server"},
		Args:       []string{"--listen=:8080", "--log-format=json"},
		WorkingDir: "/srv",
		Envs:       envs(),
		Mounts:     mounts(),
		Labels: map[string]string{
			"io.kubernetes.container.name": "server",
			"io.kubernetes.pod.name":       "web", "io.kubernetes.pod.namespace": "production", "io.kubernetes.pod.uid": podUID,
		},
		Annotations: map[string]string{
			"io.kubernetes.container.hash":                     "5fb1a4c5",
			"io.kubernetes.container.ports":                    `[{"name":"http","containerPort":8080,"protocol":"TCP"}]`,
			"io.kubernetes.container.restartCount":             "0",
			"io.kubernetes.container.terminationMessagePath":   "/dev/termination-log",
			"io.kubernetes.container.terminationMessagePolicy": "File",
			"io.kubernetes.pod.terminationGracePeriod":         "30",
		},
		LogPath: "server/0.log",
		Linux: &cri.LinuxContainerConfig{
			Resources: &cri.LinuxContainerResources{CpuPeriod: 100_000, CpuQuota: 50_000, CpuShares: 256, MemoryLimitInBytes: 128 << 20, OomScoreAdj: 992,
				HugepageLimits: []*cri.HugepageLimit{{PageSize: "2MB"}, {PageSize: "1GB"}}},
			SecurityContext: &cri.LinuxContainerSecurityContext{
				NamespaceOptions: &cri.NamespaceOption{Pid: cri.NamespaceMode_CONTAINER},
				RunAsUser:        &cri.Int64Value{Value: 1000},
				MaskedPaths:      []string{"/proc/asound", "/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware"},
				ReadonlyPaths:    []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"},
				NoNewPrivs:       true,
				Seccomp:          runtimeDefault(),
			},
		},
	}
}

// envs are some of the author's and, as kubelet adds them, seven for each service of the namespace.
func envs() []*cri.KeyValue {
	list := []*cri.KeyValue{
		{Key: "GOMEMLIMIT", Value: []byte("100MiB")},
		{Key: "DATABASE_URL", Value: []byte("postgres://web@database.production.svc:5432/web")},
	}
	for i, name := range []string{"KUBERNETES", "WEB", "DATABASE", "CACHE"} {
		address := fmt.Sprintf("10.96.0.%d", i+1)
		for _, env := range [][2]string{
			{"_SERVICE_HOST", address}, {"_SERVICE_PORT", "443"}, {"_PORT", "tcp://" + address + ":443"},
			{"_PORT_443_TCP", "tcp://" + address + ":443"}, {"_PORT_443_TCP_PROTO", "tcp"}, {"_PORT_443_TCP_PORT", "443"}, {"_PORT_443_TCP_ADDR", address},
		} {
			list = append(list, &cri.KeyValue{Key: name + env[0], Value: []byte(env[1])})
		}
	}
	return list
}

func mounts() []*cri.Mount {
	dir := "/var/lib/kubelet/pods/" + podUID
	return []*cri.Mount{
		{ContainerPath: "/etc/web", HostPath: dir + "/volumes/kubernetes.io~configmap/config", Readonly: true},
		{ContainerPath: "/var/run/secrets/kubernetes.io/serviceaccount", HostPath: dir + "/volumes/kubernetes.io~projected/kube-api-access-x7k2p", Readonly: true},
		{ContainerPath: "/etc/hosts", HostPath: dir + "/etc-hosts"},
		{ContainerPath: "/dev/termination-log", HostPath: dir + "/containers/server/5b1c2d3e"},
	}
}
