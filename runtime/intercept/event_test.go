package intercept_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// read returns every field of the table as the event has it.
func read(ev plugin.Event) (fields, missing []string) {
	for _, f := range abi.Fields {
		name := f.Object.String() + "." + f.Name
		var value any
		var errno abi.Errno
		switch f.Type {
		case abi.Int64:
			value, errno = ev.Int64(f.Object, f.Field)
		case abi.String:
			value, errno = ev.Text(f.Object, f.Field)
		case abi.Map:
			var text []string
			entries, e := ev.Entries(f.Object, f.Field)
			if errno = e; e == abi.OK {
				for k, v := range entries {
					text = append(text, fmt.Sprintf("%s=%q", k, v))
				}
			}
			value = text
		default:
			value, errno = ev.List(context.Background(), f.Object, f.Field)
			if r := slices.IndexFunc(abi.Records, func(r abi.RecordInfo) bool { return r.Object == f.Object && r.Field == f.Field }); r >= 0 {
				value = readRecords(value.([]string))
			}
		}
		if errno != abi.OK {
			missing = append(missing, name)
			continue
		}
		fields = append(fields, fmt.Sprintf("%s: %v", name, value))
	}
	return fields, missing
}

func readRecords(list []string) (texts []string) {
	for _, element := range list {
		var text []string
		abi.EachEntry(element, func(k, v string) bool {
			text = append(text, k+"="+v)
			return true
		})
		texts = append(texts, strings.Join(text, " "))
	}
	return texts
}

// Every field of the ABI's table is there, with what CRI said.
func TestEventHasEveryField(t *testing.T) {
	var fields, missing []string
	n := newNode(t, []plugin.Member{on(abi.PreStartContainer, func(_ context.Context, ev plugin.Event, _ *plugin.Adjustment) error {
		fields, missing = read(ev)
		return nil
	})})
	n.runPod()
	_, err := n.call(t.Context(), "StartContainer", &runtimeapi.StartContainerRequest{ContainerId: "c1"}, &runtimeapi.StartContainerResponse{})
	n.must(err)
	calls := []string{ // what other calls have: see TestEventsOfEveryCall; and what a runtime tells: see TestImages
		"event.image", "event.image_ref", "event.command", "event.tty", "event.stdin", "event.timeout", "event.exit_code", "event.ports", "event.location",
		"container.image_repo_digests",
	}
	if diff := cmp.Diff(calls, missing); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
	resources := func(of string) []string {
		return []string{
			of + ".cpu_period: 100000", of + ".cpu_quota: 50000", of + ".cpu_shares: 512", of + ".memory_limit_in_bytes: 134217728",
			of + ".oom_score_adj: 500", of + ".cpuset_cpus: 0-1", of + ".cpuset_mems: 0", of + `.hugepage_limits: [2MB="4194304"]`,
			of + `.unified: [memory.high="100"]`, of + ".memory_swap_limit_in_bytes: 268435456",
		}
	}
	want := slices.Concat([]string{
		"event.hook: 5", fields[1], "event.method: StartContainer",
		"pod.id: pod1", "pod.name: web", "pod.namespace: prod", "pod.uid: u1", "pod.attempt: 3", "pod.runtime_handler: runc",
		"pod.qos: Burstable", "pod.cgroup_parent: /kubepods/burstable/podu1", `pod.labels: [app="web"]`,
		`pod.annotations: [example.com/tier="gold"]`, "pod.hostname: web",
		"pod.state: ready", `pod.sysctls: [net.core.somaxconn="1024"]`, "pod.log_directory: /var/log/pods/web", "pod.network_namespace: node",
		"pod.pid_namespace: container", "pod.ipc_namespace: pod", "pod.user_namespace: node", "pod.privileged: 1",
		"pod.port_mappings: [10.0.0.1:8080:80/tcp 0:53/udp]",
		"container.id: c1", "container.name: app", "container.attempt: 2", "container.image: web:1", "container.pod_sandbox_id: pod1",
		`container.labels: [l="1"]`, `container.annotations: [a="1"]`,
		`container.env: [Z="1" A="first" BIN="\xff\xfe" A="second"]`,
		"container.state: created", "container.command: [sh -c]", "container.args: [run it]", "container.working_dir: /srv",
		"container.mounts: [container_path=/data host_path=/mnt readonly=true propagation=bidirectional selinux_relabel=true recursive_read_only=true]",
		"container.devices: [container_path=/dev/a host_path=/dev/b permissions=rwm]", "container.cdi_devices: [example.com/gpu=0]",
		"container.run_as_user: 0", "container.run_as_group: 7", "container.run_as_username: web", "container.supplemental_groups: [8 9]",
		"container.privileged: 1", "container.readonly_rootfs: 1", "container.log_path: app/0.log",
		"container.image_id: " + imageID, "container.add_capabilities: [NET_ADMIN]", "container.drop_capabilities: [ALL]",
		"container.add_ambient_capabilities: [CHOWN]", "container.no_new_privs: 1", "container.seccomp: localhost//x.json",
		"container.apparmor: runtime/default", "container.image_volumes: []",
		"node.cgroup_version: 2", "node.runtime_name: containerd", "node.runtime_version: v2",
		"node.cgroup_driver: systemd", "node.cpus: 8", "node.memory: 34359738368", "node.kernel: 6.1", "node.runtime_handlers: [kata runc]",
	}, resources("pod.overhead"), resources("pod.resources"), resources("container.resources"))
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

func TestLookUps(t *testing.T) {
	n := newNode(t, []plugin.Member{on(abi.PreStartContainer, func(_ context.Context, ev plugin.Event, _ *plugin.Adjustment) error {
		if v, errno := ev.Lookup(abi.Container, abi.ContainerEnv, "A"); v != "second" || errno != abi.OK {
			t.Errorf("env A is %q, %v: the last occurrence counts", v, errno)
		}
		if _, errno := ev.Lookup(abi.Pod, abi.PodLabels, "none"); errno != abi.NotFound {
			t.Errorf("a label that is not there: %v", errno)
		}
		for kind, name := range map[int32]string{abi.ByPodID: "pod1", abi.ByPodUID: "u1", abi.ByPodName: "prod/web"} {
			pod, errno := ev.Find(kind, name, nil)
			if errno != abi.OK {
				t.Errorf("pod by %q: %v", name, errno)
				continue
			}
			containers, _, errno := ev.Containers(pod, nil)
			if errno != abi.OK || len(containers) != 1 {
				t.Errorf("containers of %q: %v, %v", name, containers, errno)
				continue
			}
			if id, _ := ev.Text(containers[0], abi.ContainerID); id != "c1" {
				t.Errorf("container %q", id)
			}
		}
		if _, errno := ev.Find(abi.ByContainerID, "none", nil); errno != abi.NotFound {
			t.Errorf("a container that is not there: %v", errno)
		}
		if _, errno := ev.Text(abi.FirstHandle+99, abi.PodName); errno != abi.NotFound {
			t.Errorf("a handle that was not given out: %v", errno)
		}
		return nil
	})})
	n.runPod()
	_, err := n.call(t.Context(), "StartContainer", &runtimeapi.StartContainerRequest{ContainerId: "c1"}, &runtimeapi.StartContainerResponse{})
	n.must(err)
}

func recordOf(keysAndValues ...string) string {
	return string(abi.AppendEntries(nil, func(yield func(k, v string) bool) {
		for i := 0; i < len(keysAndValues); i += 2 {
			yield(keysAndValues[i], keysAndValues[i+1])
		}
	}))
}

// setAll sets every field of the container that the hook may write.
func setAll(adj *plugin.Adjustment, hook abi.Hook, object abi.Object) error {
	texts := map[string]string{
		"resources.cpuset_cpus": "2", "resources.cpuset_mems": "1", "overhead.cpuset_cpus": "2", "overhead.cpuset_mems": "1",
		"cgroup_parent": "/kubepods/burstable/podu1/x", "runtime_handler": "kata", "image": "web:2", "working_dir": "/tmp", "run_as_username": "web",
	}
	keys := map[string]string{
		"resources.hugepage_limits": "1GB", "resources.unified": "pids.max", "overhead.hugepage_limits": "1GB", "overhead.unified": "pids.max",
	}
	elements := map[string]string{
		"mounts": recordOf("container_path", "/set", "host_path", "/mnt", "readonly", "true"), "devices": recordOf("container_path", "/dev/set", "host_path", "/dev/a", "permissions", "rw"),
		"cdi_devices": "example.com/gpu=1", "supplemental_groups": "12",
	}
	for _, f := range abi.Fields {
		if f.Object != object || !f.Writable.Has(hook) {
			continue
		}
		var err error
		switch f.Type {
		case abi.Int64:
			err = adj.SetInt64(object, f.Field, 1000)
		case abi.String:
			err = adj.SetText(object, f.Field, texts[f.Name])
		case abi.Map:
			key := keys[f.Name]
			if key == "" {
				key = "set"
			}
			err = adj.SetEntry(object, f.Field, key, "7")
		case abi.List:
			err = adj.Add(plugin.Change{Op: plugin.SetList, Object: object, Field: f.Field, Text: string(abi.AppendList(nil, []string{f.Name, "2"}))})
		case abi.Set:
			err = adj.AddElement(object, f.Field, elements[f.Name])
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return nil
}

// Every writable field lands in the message that goes to the backend.
func TestEveryWritableFieldLands(t *testing.T) {
	resources := &runtimeapi.LinuxContainerResources{
		CpuPeriod: 1000, CpuQuota: 1000, CpuShares: 1000, MemoryLimitInBytes: 1000, OomScoreAdj: 1000, MemorySwapLimitInBytes: 1000,
		CpusetCpus: "2", CpusetMems: "1", HugepageLimits: []*runtimeapi.HugepageLimit{{PageSize: "1GB", Limit: 7}}, Unified: map[string]string{"pids.max": "7"},
	}
	t.Run("update", func(t *testing.T) {
		n := newNode(t, []plugin.Member{on(abi.PreUpdateContainerResources, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
			return setAll(adj, abi.PreUpdateContainerResources, abi.Container)
		})}, withCgroups(scratch(t, "v2")))
		n.runPod()
		_, err := n.call(t.Context(), "UpdateContainerResources", &runtimeapi.UpdateContainerResourcesRequest{ContainerId: "c1"}, &runtimeapi.UpdateContainerResourcesResponse{})
		n.must(err)
		want := &runtimeapi.UpdateContainerResourcesRequest{ContainerId: "c1", Linux: resources, Annotations: map[string]string{"set": "7"}}
		if diff := cmp.Diff(want, decodeSent[runtimeapi.UpdateContainerResourcesRequest](n), protocmp.Transform()); diff != "" {
			t.Errorf("sent (-want +got):\n%s", diff)
		}
	})
	t.Run("create", func(t *testing.T) {
		n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
			return setAll(adj, abi.PreCreateContainer, abi.Container)
		})}, withCgroups(scratch(t, "v2")))
		_, err := n.call(t.Context(), "CreateContainer", &runtimeapi.CreateContainerRequest{}, &runtimeapi.CreateContainerResponse{ContainerId: "c1"})
		n.must(err)
		got := decodeSent[runtimeapi.CreateContainerRequest](n).Config
		want := &runtimeapi.ContainerConfig{
			Annotations: map[string]string{"set": "7"}, Envs: []*runtimeapi.KeyValue{{Key: "set", Value: []byte("7")}},
			Image: &runtimeapi.ImageSpec{Image: "web:2"}, Command: []string{"command", "2"}, Args: []string{"args", "2"}, WorkingDir: "/tmp",
			Mounts:     []*runtimeapi.Mount{{ContainerPath: "/set", HostPath: "/mnt", Readonly: true}},
			Devices:    []*runtimeapi.Device{{ContainerPath: "/dev/set", HostPath: "/dev/a", Permissions: "rw"}},
			CDIDevices: []*runtimeapi.CDIDevice{{Name: "example.com/gpu=1"}},
			Linux: &runtimeapi.LinuxContainerConfig{Resources: resources, SecurityContext: &runtimeapi.LinuxContainerSecurityContext{
				RunAsUsername: "web", RunAsGroup: &runtimeapi.Int64Value{Value: 1000}, SupplementalGroups: []int64{12}, // the name comes after the number, and takes its place
			}},
		}
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Errorf("sent (-want +got):\n%s", diff)
		}
	})
	t.Run("update of a pod", func(t *testing.T) {
		n := newNode(t, []plugin.Member{on(abi.PreUpdatePodSandboxResources, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
			return setAll(adj, abi.PreUpdatePodSandboxResources, abi.Pod)
		})}, withCgroups(scratch(t, "v2")))
		n.runPod()
		_, err := n.call(t.Context(), "UpdatePodSandboxResources", &runtimeapi.UpdatePodSandboxResourcesRequest{
			PodSandboxId: "pod1", Overhead: &runtimeapi.LinuxContainerResources{},
		}, &runtimeapi.UpdatePodSandboxResourcesResponse{})
		n.must(err)
		known := fullResources() // what the request leaves out is the sum of before
		known.HugepageLimits = append(known.HugepageLimits, resources.HugepageLimits...)
		known.Unified["pids.max"] = "7"
		known.CpuPeriod, known.CpuQuota, known.CpuShares, known.MemoryLimitInBytes, known.OomScoreAdj, known.MemorySwapLimitInBytes = 1000, 1000, 1000, 1000, 1000, 1000
		known.CpusetCpus, known.CpusetMems = "2", "1"
		want := &runtimeapi.UpdatePodSandboxResourcesRequest{PodSandboxId: "pod1", Overhead: resources, Resources: known}
		if diff := cmp.Diff(want, decodeSent[runtimeapi.UpdatePodSandboxResourcesRequest](n), protocmp.Transform()); diff != "" {
			t.Errorf("sent (-want +got):\n%s", diff)
		}
		if record, _ := n.store.Pod("pod1"); !proto.Equal(record.Config.GetLinux().GetResources(), known) {
			t.Errorf("the store has %v", record.Config.GetLinux().GetResources())
		}
	})
	t.Run("pod", func(t *testing.T) {
		n := newNode(t, []plugin.Member{on(abi.PreRunPodSandbox, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
			return setAll(adj, abi.PreRunPodSandbox, abi.Pod)
		})})
		_, err := n.call(t.Context(), "RunPodSandbox", &runtimeapi.RunPodSandboxRequest{Config: &runtimeapi.PodSandboxConfig{
			Linux: &runtimeapi.LinuxPodSandboxConfig{CgroupParent: "/kubepods/burstable/podu1"},
		}}, &runtimeapi.RunPodSandboxResponse{PodSandboxId: "p"})
		n.must(err)
		sent := decodeSent[runtimeapi.RunPodSandboxRequest](n)
		got := sent.Config
		if record, _ := n.store.Pod("p"); sent.RuntimeHandler != "kata" || record.RuntimeHandler != "kata" {
			t.Errorf("handler %q was sent, the store has %q", sent.RuntimeHandler, record.RuntimeHandler)
		}
		if got.GetLinux().GetCgroupParent() != "/kubepods/burstable/podu1/x" || !maps.Equal(got.Labels, map[string]string{"set": "7"}) || !maps.Equal(got.Annotations, got.Labels) {
			t.Errorf("sent %v", got)
		}
	})
}

// A later plugin sees what earlier ones changed, in the message and in the view.
func TestLaterPluginSeesEarlierChanges(t *testing.T) {
	set := func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		return setAll(adj, abi.PreUpdateContainerResources, abi.Container)
	}
	saw := false
	look := func(_ context.Context, ev plugin.Event, _ *plugin.Adjustment) error {
		shares, _ := ev.Int64(abi.Container, abi.Resources+abi.CPUShares)
		note, _ := ev.Lookup(abi.Container, abi.ContainerAnnotations, "set")
		saw = shares == 1000 && note == "7"
		return nil
	}
	n := newNode(t, []plugin.Member{on(abi.PreUpdateContainerResources, set), on(abi.PreUpdateContainerResources, look)}, withCgroups(scratch(t, "v2")))
	n.runPod()
	before, _ := n.store.Container("c1")
	want := before.Config.GetLinux().GetResources().GetCpuShares()
	n.fails = fmt.Errorf("refused")
	_, _ = n.call(t.Context(), "UpdateContainerResources", &runtimeapi.UpdateContainerResourcesRequest{ContainerId: "c1"}, nil)
	after, _ := n.store.Container("c1")
	if !saw || after.Config.GetLinux().GetResources().GetCpuShares() != want || after.Config.GetAnnotations()["set"] != "" {
		t.Errorf("saw earlier changes: %v; the store's record after a failed update: %v", saw, after.Config)
	}
}
