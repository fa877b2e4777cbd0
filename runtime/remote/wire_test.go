package remote_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/remote"
	pb "github.com/wasmproxy/wasmproxy/runtime/remote/runtimehook"
)

// wire is all of the protocol that is on the wire: names of methods, numbers
// and types of fields. Koordinator has not changed it since 2022.
const wire = `
ContainerMetadata 1 name string
ContainerMetadata 2 attempt uint32
ContainerMetadata 3 id string
ContainerResourceHookRequest 1 pod_meta PodSandboxMetadata
ContainerResourceHookRequest 2 container_meta ContainerMetadata
ContainerResourceHookRequest 3 container_annotations map<string,string>
ContainerResourceHookRequest 4 container_resources LinuxContainerResources
ContainerResourceHookRequest 5 pod_resources LinuxContainerResources
ContainerResourceHookRequest 6 pod_annotations map<string,string>
ContainerResourceHookRequest 7 pod_labels map<string,string>
ContainerResourceHookRequest 8 pod_cgroup_parent string
ContainerResourceHookRequest 9 container_envs map<string,string>
ContainerResourceHookResponse 1 container_annotations map<string,string>
ContainerResourceHookResponse 2 container_resources LinuxContainerResources
ContainerResourceHookResponse 3 pod_cgroup_parent string
ContainerResourceHookResponse 4 container_envs map<string,string>
HugepageLimit 1 page_size string
HugepageLimit 2 limit uint64
LinuxContainerResources 1 cpu_period int64
LinuxContainerResources 10 memory_swap_limit_in_bytes int64
LinuxContainerResources 2 cpu_quota int64
LinuxContainerResources 3 cpu_shares int64
LinuxContainerResources 4 memory_limit_in_bytes int64
LinuxContainerResources 5 oom_score_adj int64
LinuxContainerResources 6 cpuset_cpus string
LinuxContainerResources 7 cpuset_mems string
LinuxContainerResources 8 hugepage_limits repeated HugepageLimit
LinuxContainerResources 9 unified map<string,string>
PodSandboxHookRequest 1 pod_meta PodSandboxMetadata
PodSandboxHookRequest 2 runtime_handler string
PodSandboxHookRequest 3 labels map<string,string>
PodSandboxHookRequest 4 annotations map<string,string>
PodSandboxHookRequest 5 cgroup_parent string
PodSandboxHookRequest 6 overhead LinuxContainerResources
PodSandboxHookRequest 7 resources LinuxContainerResources
PodSandboxHookResponse 1 labels map<string,string>
PodSandboxHookResponse 2 annotations map<string,string>
PodSandboxHookResponse 3 cgroup_parent string
PodSandboxHookResponse 4 resources LinuxContainerResources
PodSandboxMetadata 1 name string
PodSandboxMetadata 2 uid string
PodSandboxMetadata 3 namespace string
PodSandboxMetadata 4 attempt uint32
runtime.v1alpha1.RuntimeHookService.PostStartContainerHook(ContainerResourceHookRequest) ContainerResourceHookResponse
runtime.v1alpha1.RuntimeHookService.PostStopContainerHook(ContainerResourceHookRequest) ContainerResourceHookResponse
runtime.v1alpha1.RuntimeHookService.PostStopPodSandboxHook(PodSandboxHookRequest) PodSandboxHookResponse
runtime.v1alpha1.RuntimeHookService.PreCreateContainerHook(ContainerResourceHookRequest) ContainerResourceHookResponse
runtime.v1alpha1.RuntimeHookService.PreRunPodSandboxHook(PodSandboxHookRequest) PodSandboxHookResponse
runtime.v1alpha1.RuntimeHookService.PreStartContainerHook(ContainerResourceHookRequest) ContainerResourceHookResponse
runtime.v1alpha1.RuntimeHookService.PreUpdateContainerResourcesHook(ContainerResourceHookRequest) ContainerResourceHookResponse
`

// TestWire holds the generated code against that table.
func TestWire(t *testing.T) {
	if diff := cmp.Diff(strings.TrimSpace(wire), describe(pb.File_runtime_remote_runtimehook_api_proto)); diff != "" {
		t.Errorf("the protocol differs (-want +got):\n%s", diff)
	}
}

// TestHooksAreTheMethods wants a hook for each method of the protocol.
func TestHooksAreTheMethods(t *testing.T) {
	var want abi.HookSet
	methods := pb.File_runtime_remote_runtimehook_api_proto.Services().Get(0).Methods()
	for i := range methods.Len() {
		name := strings.TrimSuffix(string(methods.Get(i).Name()), "Hook")
		hook, ok := abi.HookByName(name)
		if !ok {
			t.Errorf("no hook %s", name)
		}
		want |= abi.HookSetOf(hook)
	}
	if got := remote.Hooks(); got != want {
		t.Errorf("hooks are %v, want %v", got.Names(), want.Names())
	}
}

// describe writes a file descriptor in the table's form.
func describe(file protoreflect.FileDescriptor) string {
	var lines []string
	messages := map[protoreflect.FullName]protoreflect.MessageDescriptor{}
	for i := range file.Messages().Len() {
		reach(messages, file.Messages().Get(i))
	}
	for _, m := range messages {
		for j := range m.Fields().Len() {
			f := m.Fields().Get(j)
			lines = append(lines, fmt.Sprint(m.Name(), " ", f.Number(), " ", f.Name(), " ", typeOf(f)))
		}
	}
	for i := range file.Services().Len() {
		s := file.Services().Get(i)
		for j := range s.Methods().Len() {
			m := s.Methods().Get(j)
			if m.IsStreamingClient() || m.IsStreamingServer() {
				lines = append(lines, "stream "+string(m.FullName()))
				continue
			}
			lines = append(lines, fmt.Sprintf("%s(%s) %s", m.FullName(), m.Input().Name(), m.Output().Name()))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// reach adds a message, and those of its fields, which may be in another file.
func reach(all map[protoreflect.FullName]protoreflect.MessageDescriptor, m protoreflect.MessageDescriptor) {
	if m == nil || m.IsMapEntry() || all[m.FullName()] != nil {
		return
	}
	all[m.FullName()] = m
	for i := range m.Fields().Len() {
		reach(all, m.Fields().Get(i).Message())
	}
}

func typeOf(f protoreflect.FieldDescriptor) string {
	switch {
	case f.IsMap():
		return fmt.Sprintf("map<%s,%s>", f.MapKey().Kind(), f.MapValue().Kind())
	case f.IsList():
		return "repeated " + string(f.Message().Name())
	case f.Message() != nil:
		return string(f.Message().Name())
	case f.HasOptionalKeyword():
		return "optional " + f.Kind().String()
	}
	return f.Kind().String()
}
