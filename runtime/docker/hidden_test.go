package docker_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// TestHiddenHostConfig: what Docker would read where plugins do not see it is refused, of containers
// that have hooks.
func TestHiddenHostConfig(t *testing.T) {
	for body, want := range map[string]string{
		`{"Image":"b","Privileged":true}`:                                  `"Privileged"`,
		`{"Image":"b","memory":5,"HostConfig":{}}`:                         `"memory"`,
		`{"Image":"b","Cpuset":"1","HostConfig":{}}`:                       `"Cpuset"`,
		`{"HostConfig":{"Memory":5},"hostconfig":null}`:                    `more than once`,
		`{"Image":"b","Privileged":false,"Memory":0,"Binds":null}`:         "",
		`{"Image":"b","Volumes":{"/v":{}},"HostConfig":{"Memory":500000}}`: "",
	} {
		n := newNode(t, true, on(abi.PreCreateContainer, func(plugin.Event, *plugin.Adjustment) error { return nil }))
		code, answer := n.do("POST", "/v1.41/containers/create?name=web", body)
		if refused := code == 400; refused != (want != "") || refused && !strings.Contains(answer, strings.ReplaceAll(want, `"`, `\"`)) || refused == (n.engine.made > 0) {
			t.Errorf("%s: answers %d %s", body, code, answer)
		}
		unhooked := newNode(t, true, on(abi.PostPullImage, func(plugin.Event, *plugin.Adjustment) error { return nil }))
		if code, answer := unhooked.do("POST", "/v1.41/containers/create?name=web", body); code != 201 || unhooked.engine.last(t, "POST").body != body {
			t.Errorf("%s without a plugin that hooks it: answers %d %s", body, code, answer)
		}
		if _, containers := unhooked.store.Len(); want != "" && containers != 0 {
			t.Errorf("%s: the store has a container without what plugins do not see", body)
		}
		others := newNode(t, false)
		if code, answer := others.do("POST", "/v1.41/containers/create?name=web", body); code != 201 {
			t.Errorf("%s of a container without hooks: answers %d %s", body, code, answer)
		}
	}
}

// TestUndecodable: a request that cannot be decoded, or is too large to be, is refused if plugins hook it. Without
// them it passes as it is, for Docker to judge.
func TestUndecodable(t *testing.T) {
	const create = "/v1.41/containers/create?name=web"
	large := `{"Image":"b","Labels":{"a":"` + strings.Repeat("a", 8<<20) + `"}}`
	for _, body := range []string{"", "{", "null", "[]", `{"Env":{"A":"1"}}`, `{"Labels":5}`, `{"Labels":{"a":5}}`, `{"HostConfig":{"Memory":"5"}}`, large} {
		n := newNode(t, true, on(abi.PreCreateContainer, func(plugin.Event, *plugin.Adjustment) error { return nil }))
		if code, answer := n.do("POST", create, body); code != 400 || !strings.HasPrefix(answer, `{"message":"wasmproxy: plugins cannot check`) || n.engine.made > 0 {
			t.Errorf("%.40q: answers %d %s", body, code, answer)
		}
		n = newNode(t, true, on(abi.PostStopContainer, func(plugin.Event, *plugin.Adjustment) error { return nil }))
		if code, answer := n.do("POST", create, body); code != 201 || n.engine.last(t, "POST").body != body {
			t.Errorf("%.40q without a hook: answers %d %s", body, code, answer)
		}
	}
	n := newNode(t, false, on(abi.PreCreateContainer, func(plugin.Event, *plugin.Adjustment) error { return nil }))
	if code, answer := n.do("POST", create, `{"Env":{"A":"1"},"Labels":{"a":"b"}}`); code != 201 {
		t.Errorf("of a container that has no hooks: answers %d %s", code, answer)
	}
	n = newNode(t, true, on(abi.PreUpdateContainerResources, func(plugin.Event, *plugin.Adjustment) error { return nil }))
	id := n.create("web", `{"Image":"b"}`)
	if code, answer := n.do("POST", "/containers/"+id+"/update", `{"Memory":"5"}`); code != 400 {
		t.Errorf("an update answers %d %s", code, answer)
	}
}

// TestHostConfigAtStart is the same of a start, in versions of the API in which it could have a body.
func TestHostConfigAtStart(t *testing.T) {
	n := newNode(t, true, on(abi.PreStartContainer, func(plugin.Event, *plugin.Adjustment) error { return nil }))
	id := n.create("web", `{"Image":"b"}`)
	only := newNode(t, true, on(abi.PreCreateContainer, func(plugin.Event, *plugin.Adjustment) error { return nil }))
	if code, answer := only.do("POST", "/v1.23/containers/"+only.create("web", `{"Image":"b"}`)+"/start", `{"Privileged":true}`); code != 400 {
		t.Errorf("where plugins check creations alone: answers %d %s", code, answer)
	}
	unhooked := newNode(t, true, on(abi.PostPullImage, func(plugin.Event, *plugin.Adjustment) error { return nil }))
	if code, answer := unhooked.do("POST", "/v1.23/containers/"+unhooked.create("web", `{"Image":"b"}`)+"/start", `{"Privileged":true}`); code != 204 {
		t.Errorf("without a plugin that hooks it: answers %d %s", code, answer)
	}
	for _, test := range []struct {
		path, body string
		want       int
	}{
		{"/v1.23", `{"Privileged":true}`, 400}, {"/v1.23", "", 204}, {"/v1.23", "{}", 204}, {"/v1.24", `{"Privileged":true}`, 204}, {"", `{"Privileged":true}`, 204},
	} { // Docker itself refuses the last two
		if code, answer := n.do("POST", test.path+"/containers/"+id+"/start", test.body); code != test.want {
			t.Errorf("%s with %s: answers %d %s", test.path, test.body, code, answer)
		}
	}
}

// TestMounts: plugins see binds of HostConfig.Mounts, which stay there unless plugins take them away.
func TestMounts(t *testing.T) {
	const volume, tmp, etc = `{"Type":"volume","Source":"v","Target":"/v"}`, `{"Type":"bind","Source":"/tmp","Target":"/t"}`, `{"Type":"bind","Source":"/etc","Target":"/e","ReadOnly":true}`
	for _, test := range []struct{ remove, add, want string }{
		{"", "", `"Mounts":[` + tmp + `,` + volume + `,` + etc + `],"Binds":["/a:/b:ro"]`},
		{"/t", "", `"Mounts":[` + volume + `,` + etc + `],"Binds":["/a:/b:ro"]`},
		{"", "/new", `"Mounts":[` + tmp + `,` + volume + `,` + etc + `],"Binds":["/a:/b:ro","/host:/new"]`},
		{"/e", "/new", `"Mounts":[` + tmp + `,` + volume + `],"Binds":["/a:/b:ro","/host:/new"]`},
		{"/b", "", `"Mounts":[` + tmp + `,` + volume + `,` + etc + `],"Binds":[]`},
	} {
		n := newNode(t, true, on(abi.PreCreateContainer, mountsPlugin(t, test.remove, test.add)))
		n.create("web", `{"HostConfig":{"Mounts":[`+tmp+`,`+volume+`,`+etc+`],"Binds":["/a:/b:ro"]}}`)
		if got := n.engine.last(t, "POST /v1.41/containers/create").body; got != `{"HostConfig":{`+test.want+`}}` {
			t.Errorf("without %q and with %q the body is %s", test.remove, test.add, got)
		}
	}
}

// mountsPlugin takes a mount away and adds another one, each if it is not "". It sees those of the request.
func mountsPlugin(t *testing.T, remove, add string) function {
	return func(ev plugin.Event, adj *plugin.Adjustment) error {
		if all, _ := ev.List(abi.Container, abi.ContainerMounts); len(all) != 3 || !strings.Contains(all[2], "/etc") {
			t.Errorf("the plugin sees %q", all)
		}
		if remove != "" {
			if err := adj.DeleteElement(abi.Container, abi.ContainerMounts, remove); err != nil {
				return err
			}
		}
		if add == "" {
			return nil
		}
		return adj.AddElement(abi.Container, abi.ContainerMounts, string(abi.AppendEntries(nil, maps.All(map[string]string{"container_path": add, "host_path": "/host"}))))
	}
}
