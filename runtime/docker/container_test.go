package docker

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestWhatAContainerMayDo reads options of security as Docker's clients and dockershim write them, and published ports.
func TestWhatAContainerMayDo(t *testing.T) {
	profile := func(kind runtimeapi.SecurityProfile_ProfileType, name string) *runtimeapi.SecurityProfile {
		return &runtimeapi.SecurityProfile{ProfileType: kind, LocalhostRef: name}
	}
	const own, unconfined, file = runtimeapi.SecurityProfile_RuntimeDefault, runtimeapi.SecurityProfile_Unconfined, runtimeapi.SecurityProfile_Localhost
	for body, want := range map[string]*runtimeapi.LinuxContainerSecurityContext{
		`{}`: {Capabilities: &runtimeapi.Capability{}},
		`{"CapAdd": ["NET_ADMIN"], "CapDrop": ["ALL"]}`: {
			Capabilities: &runtimeapi.Capability{AddCapabilities: []string{"NET_ADMIN"}, DropCapabilities: []string{"ALL"}},
		},
		`{"CapAdd": "NET_ADMIN", "CapDrop": null}`: { // Docker takes a text for a list of one
			Capabilities: &runtimeapi.Capability{AddCapabilities: []string{"NET_ADMIN"}},
		},
		`{"SecurityOpt": ["no-new-privileges", "seccomp=unconfined", "apparmor=docker-default", "label=disable"]}`: {
			Capabilities: &runtimeapi.Capability{}, NoNewPrivs: true, Seccomp: profile(unconfined, ""), Apparmor: profile(own, ""),
		},
		`{"SecurityOpt": ["no-new-privileges:false", "seccomp={\"defaultAction\": \"x\"}", "apparmor=mine"]}`: {
			Capabilities: &runtimeapi.Capability{}, Seccomp: profile(file, ""), Apparmor: profile(file, "mine"),
		},
		`{"SecurityOpt": ["no-new-privileges=true", "seccomp=builtin", "apparmor:unconfined"]}`: {
			Capabilities: &runtimeapi.Capability{}, NoNewPrivs: true, Seccomp: profile(own, ""), Apparmor: profile(unconfined, ""),
		},
	} {
		of := new(container)
		if err := json.Unmarshal([]byte(`{"Image": "web:1", "HostConfig": `+body+`}`), of); err != nil {
			t.Fatal(err)
		}
		got := containerConfig("web", of, standalone)
		if diff := cmp.Diff(want, got.GetLinux().GetSecurityContext(), protocmp.Transform()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
	}
	of := new(container)
	text := `{"HostConfig": {"PortBindings": {"80/tcp": [{"HostIp": "10.0.0.1", "HostPort": "8080"}, {"HostPort": ""}], "53/udp": [{"HostPort": "53"}]}}}`
	if err := json.Unmarshal([]byte(text), of); err != nil {
		t.Fatal(err)
	}
	want := []*runtimeapi.PortMapping{
		{Protocol: runtimeapi.Protocol_UDP, ContainerPort: 53, HostPort: 53}, {ContainerPort: 80, HostPort: 8080, HostIp: "10.0.0.1"}, {ContainerPort: 80},
	}
	if diff := cmp.Diff(want, podConfig("web", of, standalone).GetPortMappings(), protocmp.Transform()); diff != "" {
		t.Errorf("ports (-want +got):\n%s", diff)
	}
}

// TestImageOfARequest: dockershim names an image by its id, and people by a name.
func TestImageOfARequest(t *testing.T) {
	id := "sha256:" + strings.Repeat("1", 64)
	for image, want := range map[string]string{id: "", "web:1": "web:1", "111111111111": "111111111111"} {
		if spec := imageOf(image); spec.GetImage() != image || spec.GetUserSpecifiedImage() != want {
			t.Errorf("%s is %v", image, spec)
		}
	}
}

// TestHandlerOfAPod: the handler docker is the daemon's default runtime, for which Docker has no name of its own.
func TestHandlerOfAPod(t *testing.T) {
	of := &container{HostConfig: hostConfig{Runtime: "nvidia"}}
	was := &runtimeapi.RunPodSandboxRequest{RuntimeHandler: "nvidia"}
	for handler, want := range map[string]string{"nvidia": "nvidia", "kata": "kata", "docker": "", "": ""} {
		e := newChanges([]byte(`{"HostConfig":{"Runtime":"nvidia"}}`))
		e.pod(of, standalone, was, &runtimeapi.RunPodSandboxRequest{RuntimeHandler: handler})
		if got := string(e.text()); e.err != nil || got != `{"HostConfig":{"Runtime":"`+want+`"}}` {
			t.Errorf("the handler %q makes %s, %v", handler, got, e.err)
		}
	}
}

// TestBindThatIsChanged: what CRI cannot say of a bind stays as it was. With Z in the place of z, the volume would be
// relabelled for this container alone, and lost to others. An option of a volume would have Docker refuse a host path.
func TestBindThatIsChanged(t *testing.T) {
	for bind, want := range map[string][2]string{ // made readonly, and then with another host path
		"/srv:/data":                    {"/srv:/data:ro", "/new:/data:ro"},
		"/srv:/data:z":                  {"/srv:/data:ro,z", "/new:/data:ro,z"},
		"/srv:/data:Z,slave":            {"/srv:/data:ro,Z,slave", "/new:/data:ro,Z,slave"},
		"v:/data:rw,nocopy":             {"v:/data:ro,nocopy", "/new:/data:ro"},
		"/srv:/data:rw,rprivate,cached": {"/srv:/data:ro,rprivate,cached", "/new:/data:ro,rprivate"},
	} {
		of := &container{HostConfig: hostConfig{Binds: []string{"/a:/b", bind}}}
		body, err := json.Marshal(map[string]any{"HostConfig": map[string]any{"Binds": of.HostConfig.Binds}})
		if err != nil {
			t.Fatal(err)
		}
		was, is := of.HostConfig.mounts(), of.HostConfig.mounts()
		is[1].Readonly = true
		for i, want := range want {
			e := newChanges(body)
			e.within("HostConfig", func(h *edit) { e.mounts(h, of, was, is) })
			if got := string(e.text()); e.err != nil || got != `{"HostConfig":{"Binds":["/a:/b","`+want+`"]}}` {
				t.Errorf("%d: %s becomes %s, %v; want %s", i, bind, got, e.err, want)
			}
			is[1].HostPath = "/new"
		}
	}
	mount := &runtimeapi.Mount{
		HostPath: "/a", ContainerPath: "/b", SelinuxRelabel: true, Propagation: runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL,
	}
	if got := bindOf(mount, "/a:/b:rslave"); got != "/a:/b:Z,rshared" {
		t.Errorf("a bind that is relabelled and shared becomes %s", got)
	}
}
