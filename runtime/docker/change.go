package docker

import (
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// changes edits the body of a request where plugins have changed the CRI message that was made
// of it.
type changes struct {
	edit
	left []string     // fields that plugins changed and that Docker has no place for
	cpus func() int64 // asks how many CPUs the node has, 0 if that is not known; for an update
}

func newChanges(body []byte) *changes { return &changes{edit: newEdit(body)} }

// pod edits the body of ContainerCreate for a sandbox.
func (c *changes) pod(of *container, k kind, was, is *runtimeapi.RunPodSandboxRequest) {
	c.labels("", was.GetConfig().GetLabels(), is.GetConfig().GetLabels())
	c.labels(k.prefix(), was.GetConfig().GetAnnotations(), is.GetConfig().GetAnnotations())
	c.parent(of, was.GetConfig(), is.GetConfig())
	if handler := is.GetRuntimeHandler(); handler != was.GetRuntimeHandler() {
		if handler == defaultHandler { // which Docker has under a name of its own
			handler = ""
		}
		c.within("HostConfig", func(h *edit) { h.set("Runtime", handler) })
	}
}

// container edits the body of ContainerCreate for a container of a pod.
func (c *changes) container(of *container, k kind, was, is *runtimeapi.CreateContainerRequest) {
	a, b := was.GetConfig(), is.GetConfig()
	c.labels(k.prefix(), a.GetAnnotations(), b.GetAnnotations())
	c.parent(of, was.GetSandboxConfig(), is.GetSandboxConfig())
	if a.GetImage().GetImage() != b.GetImage().GetImage() {
		c.set("Image", b.GetImage().GetImage())
	}
	if !slices.Equal(a.GetCommand(), b.GetCommand()) {
		c.set("Entrypoint", b.GetCommand())
	}
	if !slices.Equal(a.GetArgs(), b.GetArgs()) {
		c.set("Cmd", b.GetArgs())
	}
	if a.GetWorkingDir() != b.GetWorkingDir() {
		c.set("WorkingDir", b.GetWorkingDir())
	}
	if !equal(a.GetEnvs(), b.GetEnvs()) {
		c.environment(of, a.GetEnvs(), b.GetEnvs())
	}

	had, has := a.GetLinux().GetSecurityContext(), b.GetLinux().GetSecurityContext()
	before, _ := userOf(had)
	user, ok := userOf(has)
	changed := ok && user != before
	inCRI := has.GetRunAsGroup() != nil || had.GetRunAsGroup() != nil
	if _, group, named := strings.Cut(of.User, ":"); named && changed && !inCRI { // a group that is a name, for which CRI has no field
		user, ok = user+":"+group, user != ""
	}
	switch {
	case !ok:
		c.left = append(c.left, "run_as_group")
	case user != before:
		c.set("User", user)
	}

	c.within("HostConfig", func(h *edit) {
		c.created(h, &of.HostConfig.resources, a.GetLinux().GetResources(), b.GetLinux().GetResources())
		if x := b.GetLinux().GetResources().GetOomScoreAdj(); x != a.GetLinux().GetResources().GetOomScoreAdj() {
			h.set("OomScoreAdj", x)
		}
		if !equal(a.GetMounts(), b.GetMounts()) {
			c.mounts(h, of, a.GetMounts(), b.GetMounts())
		}
		if !equal(a.GetDevices(), b.GetDevices()) {
			h.set("Devices", kept(h, elementsOf(h.value("Devices")), a.GetDevices(), b.GetDevices(), deviceOf))
		}
		if !slices.Equal(had.GetSupplementalGroups(), has.GetSupplementalGroups()) {
			h.set("GroupAdd", groups(of.HostConfig.GroupAdd, has.GetSupplementalGroups()))
		}
		if !equal(a.GetCDIDevices(), b.GetCDIDevices()) {
			c.left = append(c.left, "cdi_devices")
		}
	})
}

// labels sets and deletes entries of Labels. prefix is what Docker's names of them begin with.
func (c *changes) labels(prefix string, was, is map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(was)) {
		if _, stays := is[key]; !stays {
			c.deleteEntry("Labels", prefix+key)
		}
	}
	c.within("Labels", func(labels *edit) {
		for _, key := range slices.Sorted(maps.Keys(is)) {
			if had, ok := was[key]; !ok || had != is[key] {
				labels.setEntry(prefix+key, is[key])
			}
		}
	})
}

func (c *changes) parent(of *container, was, is *runtimeapi.PodSandboxConfig) {
	if parent := is.GetLinux().GetCgroupParent(); parent != was.GetLinux().GetCgroupParent() {
		if strings.HasSuffix(parent, ".slice") && !strings.Contains(of.HostConfig.CgroupParent, "/") { // the form that Docker had
			parent = path.Base(parent)
		}
		c.within("HostConfig", func(h *edit) { h.set("CgroupParent", parent) })
	}
}

// environment keeps the text of variables that are as they were. Lines without a value come first, since
// Docker then removes a variable of the image, and not a plugin's.
func (c *changes) environment(of *container, was, is []*runtimeapi.KeyValue) {
	bare, texts := []json.RawMessage{}, []json.RawMessage{}
	for i, text := range elementsOf(c.value("Env")) {
		if strings.Contains(of.Env[i], "=") {
			texts = append(texts, text)
		} else {
			bare = append(bare, text)
		}
	}
	line := func(kv *runtimeapi.KeyValue) any { return kv.GetKey() + "=" + string(kv.GetValue()) }
	c.set("Env", append(bare, kept(&c.edit, texts, was, is, line)...))
}

// groups keeps groups that are names.
func groups(old []string, is []int64) (all []string) {
	for _, g := range old {
		if _, err := strconv.ParseInt(g, 10, 64); err != nil {
			all = append(all, g)
		}
	}
	for _, id := range is {
		all = append(all, strconv.FormatInt(id, 10))
	}
	return all
}

func deviceOf(d *runtimeapi.Device) any {
	return device{PathOnHost: d.GetHostPath(), PathInContainer: d.GetContainerPath(), CgroupPermissions: d.GetPermissions()}
}

// kept makes the elements of a JSON list of messages. Those that are among the old ones have the
// text that they had.
func kept[M proto.Message](e *edit, texts []json.RawMessage, was, is []M, encode func(M) any) []json.RawMessage {
	all, taken := []json.RawMessage{}, make([]bool, len(was))
	for _, m := range is {
		at := -1
		for i := range was {
			if i < len(texts) && !taken[i] && proto.Equal(was[i], m) {
				at = i
				break
			}
		}
		if at >= 0 {
			taken[at] = true
			all = append(all, texts[at])
			continue
		}
		text, err := textOf(encode(m))
		e.fail(err)
		all = append(all, text)
	}
	return all
}

func equal[M proto.Message](a, b []M) bool {
	return slices.EqualFunc(a, b, func(x, y M) bool { return proto.Equal(x, y) })
}
