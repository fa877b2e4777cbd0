package crifield_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// excluded are fields of CRI's messages that no row has, or all fields below them, with the reason.
var excluded = map[string]string{
	"pod.dns_config":              networking,
	"pod.windows":                 windows,
	"container.windows":           windows,
	"container.stdin":             terminal,
	"container.stdin_once":        terminal,
	"container.tty":               terminal,
	"container.stop_signal":       "kubelet takes it from the pod's spec, and no plugin has asked for it",
	"container.image.annotations": image,
	"container.image.image_ref":   image,

	"container.image.user_specified_image":        "it is read and set as container.image",
	"container.image.runtime_handler":             image,
	"container.mounts.uidMappings":                mount,
	"container.mounts.gidMappings":                mount,
	"container.mounts.image.user_specified_image": "it is read as container.image_volumes",
	"container.mounts.image.annotations":          image,
	"container.mounts.image.image_ref":            image,
	"container.mounts.image.runtime_handler":      image,
	"container.mounts.image_sub_path":             mount,
	"container.mounts.mount_options":              mount,

	"pod.linux.security_context.selinux_options":                       confinement,
	"pod.linux.security_context.seccomp":                               confinement,
	"pod.linux.security_context.seccomp_profile_path":                  confinement,
	"pod.linux.security_context.apparmor":                              confinement,
	"pod.linux.security_context.readonly_rootfs":                       sandboxUser,
	"pod.linux.security_context.run_as_user":                           sandboxUser,
	"pod.linux.security_context.run_as_group":                          sandboxUser,
	"pod.linux.security_context.supplemental_groups":                   sandboxUser,
	"pod.linux.security_context.supplemental_groups_policy":            sandboxUser,
	"pod.linux.security_context.namespace_options.target_id":           namespaces,
	"pod.linux.security_context.namespace_options.userns_options.uids": namespaces,
	"pod.linux.security_context.namespace_options.userns_options.gids": namespaces,

	"container.linux.security_context.namespace_options":          namespaces,
	"container.linux.security_context.selinux_options":            confinement,
	"container.linux.security_context.masked_paths":               confinement,
	"container.linux.security_context.readonly_paths":             confinement,
	"container.linux.security_context.seccomp_profile_path":       older,
	"container.linux.security_context.apparmor_profile":           older,
	"container.linux.security_context.supplemental_groups_policy": "it says whether groups of the image count, which no plugin has asked for",
}

// Reasons that several fields have.
const (
	networking  = "the network of a pod is the CNI plugins' to set up, after the DNS that kubelet chose"
	older       = "another field has replaced it, without which it is read"
	windows     = "the proxy is for Linux"
	terminal    = "a caller attaches to the streams that it asked for: a plugin that changed them would break the attachment"
	image       = "the runtime resolved the image before, and a plugin sets another one by its name"
	mount       = "a record leaves it as the request has it: kubelet made it for this volume"
	confinement = "it confines the container, and a plugin that may relax it could take over the node"
	sandboxUser = "it is of the sandbox's own process, which runs nothing of the pod's"
	namespaces  = "the pod's own modes tell it, and kubelet chose the ids"
)

// samples are values of the fields that do not take the sample of their type.
var samples = map[string]string{
	"pod.network_namespace": "node", "pod.pid_namespace": "node", "pod.ipc_namespace": "node", "pod.user_namespace": "node",
	"container.supplemental_groups": "1", "container.seccomp": "localhost/1", "container.apparmor": "localhost/1",
	"container.image_id": "sha256:" + strings.Repeat("1", 64), "pod.port_mappings": "[::1]:1:1/udp",
}

// change is one that gives a field a value which is not zero.
func change(info abi.FieldInfo) *plugin.Change {
	c := &plugin.Change{Object: info.Object, Field: info.Field, Key: "1", Int: 1, Text: "1"}
	if sample, ok := samples[info.Object.String()+"."+info.Name]; ok {
		c.Text = sample
	}
	switch info.Type {
	case abi.Int64:
		c.Op = plugin.SetInt64
	case abi.String:
		c.Op = plugin.SetText
	case abi.Map:
		c.Op = plugin.SetEntry
	case abi.List:
		c.Op, c.Text = plugin.SetList, string(abi.AppendList(nil, []string{c.Text}))
	case abi.Set:
		c.Op = plugin.AddElement
		if keys := info.RecordKeys(); keys != nil {
			c.Text = string(abi.AppendRecord(nil, keys, func(key string) string {
				return map[string]string{"container_path": "1", "host_path": "1", "permissions": "1", "propagation": "bidirectional"}[key] + map[bool]string{true: "true"}[strings.HasPrefix(key, "re") || key == "selinux_relabel"]
			}))
		}
	}
	return c
}

// message is an event of a call.
type message struct{ req, resp proto.Message }

func (message) Hook() abi.Hook                        { return abi.PreExec }
func (message) Time() time.Time                       { return time.Unix(0, 1) }
func (m message) Messages() (req, resp proto.Message) { return m.req, m.resp }

// show returns a field as text, and whether the object has it.
func show(o crifield.Object, info abi.FieldInfo) (string, abi.Errno) {
	switch info.Type {
	case abi.Int64:
		n, errno := o.Int64(info.Field)
		return fmt.Sprint(n), errno
	case abi.String:
		return o.Text(info.Field)
	case abi.Map:
		entries, errno := o.Entries(info.Field)
		if errno != abi.OK {
			return "", errno
		}
		all := maps.Collect(entries)
		if v, errno := o.Lookup(info.Field, "1"); errno == abi.OK && v != all["1"] {
			return "", abi.Invalid
		}
		return fmt.Sprint(all), errno
	}
	list, errno := o.List(info.Field)
	return fmt.Sprintf("%q", list), errno
}

// objects returns an object of each kind without any value.
func objects() (map[abi.Object]crifield.Object, *runtimeapi.PodSandboxConfig, *crifield.Container) {
	pod := &crifield.Pod{Config: &runtimeapi.PodSandboxConfig{}}
	container := &crifield.Container{Config: &runtimeapi.ContainerConfig{}}
	return map[abi.Object]crifield.Object{
		abi.Event: {Event: message{&runtimeapi.ExecSyncRequest{}, &runtimeapi.ExecSyncResponse{}}},
		abi.Pod:   {Pod: pod}, abi.Container: {Container: container}, abi.Node: {Node: &crifield.Node{}},
	}, pod.Config, container
}

// TestEveryFieldHasARow: each field of the ABI can be read, each that is writable can be
// set, and what is set is read again.
func TestEveryFieldHasARow(t *testing.T) {
	for _, info := range abi.Fields {
		name := info.Object.String() + "." + info.Name
		t.Run(name, func(t *testing.T) {
			all, _, _ := objects()
			o := all[info.Object]
			if info.Object == abi.Event {
				o = eventWith(o, info)
			}
			before, errno := show(o, info)
			if optional := name == "container.run_as_user" || name == "container.run_as_group"; errno != abi.OK && !(optional && errno == abi.NotFound) {
				t.Fatalf("reading it: %v", errno)
			}
			o.Set(change(info))
			after, errno := show(o, info)
			if errno != abi.OK {
				t.Fatalf("reading it after it was set: %v", errno)
			}
			if info.Writable != 0 && after == before {
				t.Errorf("it is %s before and after it was set", after)
			}
		})
	}
}

// eventWith returns the event of the first call whose messages have the field.
func eventWith(o crifield.Object, info abi.FieldInfo) crifield.Object {
	for _, m := range cri.Methods {
		with := crifield.Object{Event: message{m.NewRequest(), m.NewResponse()}}
		if _, errno := show(with, info); errno == abi.OK {
			return with
		}
	}
	return o
}

// TestEveryCRIFieldHasARow: each field of the configs and resources that CRI sends is in
// the table, or excluded with a reason. A field is in the table if setting a row sets it.
func TestEveryCRIFieldHasARow(t *testing.T) {
	var set []string
	for _, info := range abi.Fields {
		all, pod, container := objects()
		all[info.Object].Set(change(info))
		if p := all[abi.Pod].Pod; p.Overhead.Now != nil || p.Resources.Now != nil {
			pod.Linux = &runtimeapi.LinuxPodSandboxConfig{Overhead: p.Overhead.Now, Resources: p.Resources.Now}
		}
		container.WriteConfig()
		set = append(set, setFields("pod", pod.ProtoReflect())...)
		set = append(set, setFields("container", container.Config.ProtoReflect())...)
	}
	known := slices.Concat(
		fieldsOf("pod", (&runtimeapi.PodSandboxConfig{}).ProtoReflect().Descriptor()),
		fieldsOf("container", (&runtimeapi.ContainerConfig{}).ProtoReflect().Descriptor()))
	used := map[string]bool{}
	for _, path := range known {
		reason, is := exclusion(path)
		used[reason] = true
		switch has := slices.Contains(set, path); {
		case !has && !is:
			t.Errorf("%s has no row in the table, and no reason to be excluded", path)
		case has && is:
			t.Errorf("%s has a row, and is excluded as %s", path, reason)
		}
	}
	for path := range excluded {
		if !used[path] {
			t.Errorf("CRI has no field %s, which is excluded", path)
		}
	}
}

// exclusion returns the entry of excluded that holds for a path.
func exclusion(path string) (entry string, ok bool) {
	for entry := range excluded {
		if path == entry || strings.HasPrefix(path, entry+".") {
			return entry, true
		}
	}
	return "", false
}

// fieldsOf lists the paths of all fields that hold no others.
func fieldsOf(path string, m protoreflect.MessageDescriptor) (paths []string) {
	for i := range m.Fields().Len() {
		field := m.Fields().Get(i)
		at := path + "." + string(field.Name())
		if field.Message() == nil || field.IsMap() {
			paths = append(paths, at)
		} else {
			paths = append(paths, fieldsOf(at, field.Message())...)
		}
	}
	return paths
}

// setFields lists those of them that have a value.
func setFields(path string, m protoreflect.Message) (paths []string) {
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		at := path + "." + string(field.Name())
		switch {
		case field.Message() == nil || field.IsMap():
			paths = append(paths, at)
		case field.IsList():
			for i := range v.List().Len() {
				paths = append(paths, setFields(at, v.List().Get(i).Message())...)
			}
		default:
			paths = append(paths, setFields(at, v.Message())...)
		}
		return true
	})
	return paths
}
