package kubelet

import (
	"slices"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const manifest = `
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: heavy}
handler: kata-qemu
overhead: {podFixed: {cpu: 250m, memory: 120Mi}}
--- # what follows is the Pod
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  runtimeClassName: heavy
  volumes:
    - {name: data, hostPath: {path: /mnt/data}}
    - {name: tmp, emptyDir: {}}
    - {name: conf, configMap: {name: conf}}
  containers:
    - name: app
      image: registry.example/web:1
      command: [/bin/web, --name=$(NAME)]
      args: ["--home=$(HOME)", "$$(NAME)", "$(UNKNOWN)", "100%", "$", "$(HOME"]
      env:
        - {name: HOME, value: /srv}
        - {name: NAME, value: "$(HOME)/web"}
        - {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        - {name: APP, valueFrom: {fieldRef: {fieldPath: "metadata.labels['app']"}}}
        - {name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
        - {name: PASSWORD, valueFrom: {secretKeyRef: {name: s, key: k}}}
      envFrom: [{secretRef: {name: s}}]
      volumeMounts:
        - {name: data, mountPath: /data, readOnly: true, mountPropagation: HostToContainer}
        - {name: tmp, mountPath: /tmp}
        - {name: conf, mountPath: /etc/web, subPath: web.conf}
`

func TestRead(t *testing.T) {
	p, handler, err := Read([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	if handler != "kata-qemu" || p.Spec.Overhead.milli("cpu") != 250 {
		t.Errorf("handler %q, overhead %v", handler, p.Spec.Overhead)
	}
	if again, _, _ := Read([]byte(manifest)); again.Metadata.UID != p.Metadata.UID || len(p.Metadata.UID) != 36 {
		t.Errorf("uid %q, then %q", p.Metadata.UID, again.Metadata.UID)
	}
	if p.Metadata.Namespace != "default" {
		t.Errorf("namespace %q", p.Metadata.Namespace)
	}
}

// TestReadRefuses names what is wrong with a file.
func TestReadRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "there is no Pod in it",
		"kind: Deployment":                    "there is no Pod in it",
		"kind: Pod\nmetadata: {name: x}":      "needs metadata.name and spec.containers",
		"kind: RuntimeClass\n---\nkind: [Pod": "document 2: ",
		"kind: Pod\nmetadata: {name: x}\nspec: {containers: [{name: a, resources: {limits: {cpu: lots}}}]}": "document 1: ",
	} {
		if _, _, err := Read([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q in it", text, err, want)
		}
	}
}

// TestExpansion is that of variables, for which kubelet's fakes have none:
// third_party/forked/golang/expansion has the rules.
func TestExpansion(t *testing.T) {
	p, _, err := Read([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	c, err := p.Container("")
	if err != nil {
		t.Fatal(err)
	}
	r, lacking := Node{CgroupVersion: 2, Memory: 1 << 30}.CreateContainer(p, c, "sandbox")
	if want := []string{"/bin/web", "--name=/srv/web"}; !slices.Equal(r.Config.Command, want) {
		t.Errorf("command %q, want %q", r.Config.Command, want)
	}
	if want := []string{"--home=/srv", "$(NAME)", "$(UNKNOWN)", "100%", "$", "$(HOME"}; !slices.Equal(r.Config.Args, want) {
		t.Errorf("args %q, want %q", r.Config.Args, want)
	}
	var env []string
	for _, v := range r.Config.Envs {
		env = append(env, v.GetKey()+"="+string(v.GetValue()))
	}
	if want := []string{"HOME=/srv", "NAME=/srv/web", "POD=web", "APP=web"}; !slices.Equal(env, want) {
		t.Errorf("env %q, want %q", env, want)
	}
	if want := []string{"all of envFrom", "IP", "PASSWORD"}; !slices.Equal(lacking, want) {
		t.Errorf("lacking %q, want %q", lacking, want)
	}
}

// TestUserNamespace: kubelet says of each Pod whose users it has, for which kubelet's fakes have nothing.
func TestUserNamespace(t *testing.T) {
	for given, want := range map[string]runtimeapi.NamespaceMode{
		"":                   runtimeapi.NamespaceMode_NODE,
		"hostUsers: true, ":  runtimeapi.NamespaceMode_NODE,
		"hostUsers: false, ": runtimeapi.NamespaceMode_POD,
	} {
		p, _, err := Read([]byte("kind: Pod\nmetadata: {name: web}\nspec: {" + given + "containers: [{name: app, image: x}]}"))
		if err != nil {
			t.Fatal(err)
		}
		n := Node{CgroupVersion: 2, Memory: 1 << 30}
		r, _ := n.CreateContainer(p, &p.Spec.Containers[0], "sandbox")
		for _, o := range []*runtimeapi.NamespaceOption{
			n.SandboxConfig(p).Linux.SecurityContext.NamespaceOptions, r.Config.Linux.SecurityContext.NamespaceOptions,
		} {
			own := want == runtimeapi.NamespaceMode_POD
			users := o.GetUsernsOptions()
			if users == nil || users.Mode != want || own != (len(users.Uids) == 1 && len(users.Gids) == 1) {
				t.Errorf("with %q they are %v", given, users)
			}
		}
	}
}

func TestMounts(t *testing.T) {
	p, _, err := Read([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	dir := "/var/lib/kubelet/pods/" + p.Metadata.UID
	got := p.mounts(&p.Spec.Containers[0])
	want := map[string]string{
		"/data": "/mnt/data", "/tmp": dir + "/volumes/kubernetes.io~empty-dir/tmp", "/etc/web": dir + "/volume-subpaths/conf/app/2",
		"/etc/hosts": dir + "/etc-hosts", "/dev/termination-log": dir + "/containers/app/00000000",
	}
	for _, m := range got {
		if want[m.GetContainerPath()] != m.GetHostPath() {
			t.Errorf("%s is %s, want %s", m.GetContainerPath(), m.GetHostPath(), want[m.GetContainerPath()])
		}
	}
	if len(got) != len(want) || !got[0].GetReadonly() || got[0].GetPropagation() != runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER {
		t.Errorf("%d mounts, the first is %v", len(got), got[0])
	}
}

// TestPodCgroup has limits of Pods as kubelet writes them to their cgroups.
func TestPodCgroup(t *testing.T) {
	const limited, unlimited = "{limits: {cpu: 500m, memory: 128Mi}}", "{requests: {cpu: 100m}}"
	for name, tt := range map[string]struct {
		first, second, pod, overhead string // in YAML
		quota, memory                int64
	}{
		"one container":          {limited, "", "", "", 50_000, 128 << 20},
		"two with limits":        {limited, limited, "", "", 100_000, 256 << 20},
		"one of two":             {limited, unlimited, "", "", 0, 0},
		"one of two, CPU of all": {limited, "{limits: {cpu: 250m}}", "", "", 75_000, 0},
		"none":                   {unlimited, "", "", "", 0, 0},
		"the Pod as a whole":     {limited, unlimited, "{limits: {cpu: '2'}}", "", 200_000, 0},
		"overhead":               {limited, "", "", "{cpu: 250m, memory: 120Mi}", 75_000, 248 << 20},
		"overhead alone":         {unlimited, "", "", "{cpu: 250m, memory: 120Mi}", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			text := "kind: Pod\nmetadata: {name: web}\nspec:\n  containers:\n  - {name: a, resources: " + tt.first + "}\n"
			if tt.second != "" {
				text += "  - {name: b, resources: " + tt.second + "}\n"
			}
			if tt.pod != "" {
				text += "  resources: " + tt.pod + "\n"
			}
			if tt.overhead != "" {
				text += "  overhead: " + tt.overhead + "\n"
			}
			p, _, err := Read([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if r := (Node{CgroupVersion: 2}).PodCgroup(p); r.GetCpuQuota() != tt.quota || r.GetMemoryLimitInBytes() != tt.memory {
				t.Errorf("quota %d, memory %d; want %d, %d", r.GetCpuQuota(), r.GetMemoryLimitInBytes(), tt.quota, tt.memory)
			}
		})
	}
}

// A Pod with limits of its own requests what its containers do, and as much as its limits only of what they do not request:
// defaultPodRequests of pkg/apis/core/v1/defaults.go.
func TestRequestsOfThePod(t *testing.T) {
	for containers, want := range map[string]struct {
		class       string
		cpu, memory int64
	}{
		"{name: a, resources: {requests: {cpu: 500m, memory: 1Gi}}}, {name: b, resources: {limits: {cpu: 250m}}}": {Burstable, 750, 1 << 30},
		"{name: a, resources: {requests: {cpu: 500m}}}":                                                           {Burstable, 500, 4 << 30},
		"{name: a}": {Guaranteed, 2000, 4 << 30},
	} {
		spec := `{resources: {limits: {cpu: 2, memory: 4Gi}}, containers: [` + containers + `]}`
		p, _, err := Read([]byte(`{kind: Pod, metadata: {name: p}, spec: ` + spec + `}`))
		if err != nil {
			t.Fatal(err)
		}
		got := p.Spec.Resources.Requests
		if p.QoS() != want.class || got.milli("cpu") != want.cpu || got.value("memory") != want.memory {
			t.Errorf("%s: %s, and the Pod requests %v", containers, p.QoS(), got)
		}
	}
}

// A port of a Pod in the host's network is one of the host: defaultHostNetworkPorts of pkg/apis/core/v1/defaults.go.
func TestPortsOfTheHost(t *testing.T) {
	for network, want := range map[string]int32{"true": 80, "false": 0} {
		spec := `{hostNetwork: ` + network + `, containers: [{name: a, ports: [{containerPort: 80}]}]}`
		p, _, err := Read([]byte(`{kind: Pod, metadata: {name: p}, spec: ` + spec + `}`))
		if err != nil {
			t.Fatal(err)
		}
		mappings := Node{CgroupVersion: 2, Memory: 16 << 30}.SandboxConfig(p).PortMappings
		if len(mappings) != 1 || mappings[0].HostPort != want {
			t.Errorf("hostNetwork %s: %v", network, mappings)
		}
	}
}
