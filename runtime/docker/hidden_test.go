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
	n = newNode(t, false, on(abi.PreRunPodSandbox, func(plugin.Event, *plugin.Adjustment) error { return nil }))
	if code, answer := n.do("POST", create, `{"Cmd":5,"Labels":{"io.kubernetes.docker.type":"podsandbox"}}`); code != 400 || n.engine.made > 0 {
		t.Errorf("of a pod whose labels come after what cannot be decoded: answers %d %s", code, answer)
	}
	n = newNode(t, true, on(abi.PreUpdateContainerResources, func(plugin.Event, *plugin.Adjustment) error { return nil }))
	id := n.create("web", `{"Image":"b"}`)
	if code, answer := n.do("POST", "/containers/"+id+"/update", `{"Memory":"5"}`); code != 400 {
		t.Errorf("an update answers %d %s", code, answer)
	}
}

// TestOldVersion: a request of a version of the API that plugins are not shown is refused if they hook it, and
// passes as it is otherwise. A start can have a HostConfig then, so that it is refused if they hook the creation, too.
func TestOldVersion(t *testing.T) {
	const body = `{"Image":"b"}`
	old := map[string]bool{"/v1.23": true, "/v1.3": true, "/v0.99": true, "/v1": true, "/v1.23.5": true, "/v1.24": false, "/v1.41.0": false, "/v2.0": false, "": false}
	for _, test := range []struct {
		request string
		hook    abi.Hook
	}{
		{"POST /containers/create", abi.PreCreateContainer}, {"POST /containers/create", abi.PreRunPodSandbox}, {"POST /containers/ID/start", abi.PreStartContainer},
		{"POST /containers/ID/start", abi.PreCreateContainer}, {"POST /containers/ID/restart", abi.PreStartContainer}, {"POST /containers/ID/stop", abi.PreStopContainer},
		{"POST /containers/ID/kill", abi.PostStopContainer}, {"POST /containers/ID/update", abi.PreUpdateContainerResources}, {"DELETE /containers/ID", abi.PreRemovePodSandbox},
	} {
		member := on(test.hook, func(plugin.Event, *plugin.Adjustment) error { return nil })
		hooked, unhooked, notOurs := newNode(t, true, member), newNode(t, true, on(abi.PostPullImage, nil)), newNode(t, false, member)
		for version, isOld := range old {
			for n, refused := range map[*node]bool{hooked: isOld, unhooked: false, notOurs: false} {
				id := n.create("web", body)
				n.engine.inspect[id] = `{"Id":"` + id + `"}`
				method, path, _ := strings.Cut(strings.ReplaceAll(test.request, "ID", id), " ")
				code, answer := n.do(method, version+path, body)
				why := "it is of version " + strings.TrimPrefix(version, "/v") + " of Docker's API, and plugins are shown version 1.24 and newer; use a newer client"
				if refused != (code == 400) || refused && !strings.Contains(answer, why) {
					t.Errorf("%s of %s answers %d %s", test.request, version, code, answer)
				}
				if !refused && n.engine.last(t, method+" "+version+path).body != body {
					t.Errorf("%s of %s does not pass as it is", test.request, version)
				}
			}
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
		if all, _ := ev.List(t.Context(), abi.Container, abi.ContainerMounts); len(all) != 3 || !strings.Contains(all[2], "/etc") {
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
