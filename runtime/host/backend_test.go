package host

import (
	"maps"
	"strings"
	"testing"
	"time"
)

// TestBackendGoldenImage: in an image, no file of kubelet names an endpoint. They stay as they are, and the command says
// what kubeadm is to be given. On a node from the image, kubeadm has written that endpoint, and all commands know it.
func TestBackendGoldenImage(t *testing.T) {
	for name, before := range map[string]tree{
		"without kubelet":             {"/etc/hostname": "image\n"},
		"the packages of kubeadm":     kubeadmUnit.with(tree{extraFile: "KUBELET_EXTRA_ARGS=\n"}),
		"flags for another thing":     kubeadmUnit.with(tree{extraFile: "KUBELET_EXTRA_ARGS=--v=4\n"}),
		"a configuration that is not": kubeadmUnit.with(tree{extraFile: "KUBELET_EXTRA_ARGS=--config=/etc/kubernetes/later.yaml\n"}),
	} {
		t.Run(name, func(t *testing.T) {
			h, out := newHost(t, before)
			if err := h.Install(t.Context(), Consent{}); err == nil || !strings.Contains(err.Error(), "or the runtime with --backend") {
				t.Errorf("without --backend: %v", err)
			}
			h.same(t, before)
			h.Backend = crio
			t.Setenv("WASMPROXY_LISTEN", "unix:///the/callers.sock") // of a shell, which the service never has
			h.install(t)
			h.sameFor(t, before)
			proxySettings(t, h, crio, crioListen, "")
			want := "kubelet's files stay as they are: no file of kubelet names an endpoint yet: give kubeadm criSocket: " + crioListen + " under nodeRegistration of its InitConfiguration and JoinConfiguration"
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q is not in\n%s", want, out)
			}
			h.install(t)
			h.uninstall(t)
			h.same(t, before)
		})
	}
}

// TestBackendAfterKubeadm: on a node from an image, kubeadm has written the proxy's endpoint into its files. Another
// installation changes nothing of them, and uninstalling asks for the runtime that --backend has named.
func TestBackendAfterKubeadm(t *testing.T) {
	for name, files := range map[string]func(endpoint string) tree{
		"kubeadm 1.33": func(e string) tree {
			return tree{configFile: kubeletConfig(""), flagsFile: kubeadmFlags("--container-runtime-endpoint="+e, pause)}
		},
		"kubeadm 1.36": func(e string) tree {
			return tree{configFile: kubeletConfig(e), instanceConfig: instance(e), flagsFile: kubeadmFlags()}
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, _ := newHost(t, kubeadmUnit)
			h.Backend = containerd
			h.install(t)
			node, out := newHost(t, h.files(t).with(files(ours)))
			for _, node.Backend = range []string{"", containerd} { // as a DaemonSet's pod runs it again
				node.install(t)
				node.sameFor(t, files(ours))
				if strings.Contains(out.String(), "criSocket") {
					t.Errorf("it says\n%s", out)
				}
			}
			node.byHand(t, out, "-", containerd)
			for path, content := range files(containerd) {
				node.put(path, content)
			}
			node.uninstall(t)
			node.same(t, kubeadmUnit.with(files(containerd)))
		})
	}
}

// TestBackendRefused: a runtime that is not the one that kubelet has would start all pods anew.
func TestBackendRefused(t *testing.T) {
	for want, files := range map[string]tree{
		"kubelet's endpoint is " + containerd + ", and --backend is " + crio + ": leave --backend out":     {configFile: kubeletConfig(containerd)},
		"kubelet's endpoint is " + DefaultEndpoint + " by default, and --backend is " + crio + ": leave":   {configFile: kubeletConfig("")},
		"--backend is " + crio + ", and backend in " + SettingsFile + " is " + containerd:                  kubeadmUnit.with(tree{SettingsFile: "listen: " + crioListen + "\nbackend: " + containerd + "\n"}),
		"--backend is " + crio + ", and backend in " + SettingsFile + " is " + DefaultEndpoint + ": set":   {configFile: kubeletConfig(ours), SettingsFile: "backend: " + DefaultEndpoint + "\n"},
		"kubelet's endpoint is unix:///run/third.sock, and --backend is " + crio + ": leave --backend out": {flagsFile: kubeadmFlags("--container-runtime-endpoint=unix:///run/third.sock")},
	} {
		h, _ := newHost(t, files)
		h.Backend = crio
		if err := h.Install(t.Context(), Consent{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		h.same(t, files)
	}
	h, _ := newHost(t, tree{"/etc/hostname": "image\n"})
	h.Backend = "tcp://127.0.0.1:9"
	if err := h.Install(t.Context(), Consent{}); err == nil || !strings.Contains(err.Error(), `backend: "tcp://127.0.0.1:9" is not unix://`) {
		t.Errorf("got %v", err)
	}
}

// managedHosts are hosts on which another program gives kubelet the endpoint.
var managedHosts = map[string]struct {
	backend string
	files   func(endpoint string) tree // "" where the program is not told one
	name    string                     // of the program in messages
	running []string                   // kubelet's flags by its own choice, if it is a process of its own
	advice  string
}{
	"k3s": {k3sSocket, func(e string) tree {
		return tree{"/etc/systemd/system/k3s.service": "[Service]\nExecStart=/usr/local/bin/k3s server\n", "/etc/rancher/k3s/config.yaml": optional("kubelet-arg: [v=2, container-runtime-endpoint=%s]\n", e)}
	}, "k3s", nil, "write kubelet-arg: [container-runtime-endpoint=" + ours + "] into /etc/rancher/k3s/config.yaml"},
	"k3s by a drop-in of kubelet": {k3sSocket, func(e string) tree {
		return tree{"/etc/systemd/system/k3s-agent.service": "[Service]\nExecStart=/usr/local/bin/k3s agent\n",
			"/var/lib/rancher/k3s/agent/etc/kubelet.conf.d/00-k3s-defaults.conf": "containerRuntimeEndpoint: " + k3sSocket + "\n",
			"/var/lib/rancher/k3s/agent/etc/kubelet.conf.d/50-own.conf":          optional("containerRuntimeEndpoint: %s\n", e)}
	}, "k3s", nil, "restart k3s.service or k3s-agent.service"},
	"RKE2": {k3sSocket, func(e string) tree {
		return tree{"/usr/local/lib/systemd/system/rke2-agent.service": "[Service]\nExecStart=/usr/local/bin/rke2 agent\n", "/etc/rancher/rke2/config.yaml.d/90-proxy.yaml": optional("kubelet-arg+: container-runtime-endpoint=%s\n", e)}
	}, "RKE2", []string{"--container-runtime-endpoint=" + k3sSocket}, "into /etc/rancher/rke2/config.yaml"},
	"k0s": {"unix:///run/k0s/containerd.sock", func(e string) tree {
		return tree{"/etc/systemd/system/k0sworker.service": "[Service]\nExecStart=/usr/local/bin/k0s worker" + optional(` "--kubelet-extra-args=--v=2 --container-runtime-endpoint=%s"`, e) + "\n"}
	}, "k0s", []string{"--container-runtime-endpoint=unix:///run/k0s/containerd.sock"}, "add --kubelet-extra-args=--container-runtime-endpoint=" + ours},
	"MicroK8s": {"/var/snap/microk8s/common/run/containerd.sock", func(e string) tree {
		if e == "" {
			e = "${SNAP_COMMON}/run/containerd.sock"
		}
		return tree{"/etc/systemd/system/snap.microk8s.daemon-kubelite.service": "[Service]\nExecStart=/usr/bin/snap run microk8s.daemon-kubelite\n", "/var/snap/microk8s/current": "-> 8000",
			"/var/snap/microk8s/8000/args/kubelet": "--kubeconfig=${SNAP_DATA}/credentials/kubelet.config\n--container-runtime-endpoint=" + e + "\n"}
	}, "MicroK8s", nil, "write --container-runtime-endpoint=" + ours + " into /var/snap/microk8s/current/args/kubelet"},
	"EKS": {DefaultEndpoint, func(e string) tree {
		files := eksUnits.with(tree{"/etc/eks/kubelet/environment": "NODEADM_KUBELET_ARGS=--config=/etc/kubernetes/kubelet/config.json --config-dir=/etc/kubernetes/kubelet/config.json.d",
			"/etc/kubernetes/kubelet/config.json": `{"containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock"}`})
		if e != "" {
			files["/etc/kubernetes/kubelet/config.json.d/40-nodeadm.conf"] = `{"containerRuntimeEndpoint": "` + e + `"}`
		}
		return files
	}, "nodeadm of EKS", nil, "set containerRuntimeEndpoint: " + ours + " in spec.kubelet.config of the NodeConfig"},
	"EKS, an image": {containerd, func(e string) tree {
		if e == "" {
			return eksUnits
		}
		return eksUnits.with(tree{"/etc/eks/kubelet/environment": "NODEADM_KUBELET_ARGS=--container-runtime-endpoint=" + e})
	}, "nodeadm of EKS", nil, "in spec.kubelet.config of the NodeConfig"},
}

const k3sSocket = "unix:///run/k3s/containerd/containerd.sock"

var eksUnits = tree{
	"/etc/systemd/system/kubelet.service":     "[Service]\nEnvironmentFile=/etc/eks/kubelet/environment\nExecStart=/usr/bin/kubelet $NODEADM_KUBELET_ARGS\n",
	"/etc/systemd/system/nodeadm-run.service": "[Service]\nExecStart=/usr/bin/nodeadm init\n",
}

func optional(format, endpoint string) string {
	if endpoint == "" {
		return ""
	}
	return strings.ReplaceAll(format, "%s", endpoint)
}

// TestBackendManaged: where another program writes kubelet's files, they stay, and the command says what to tell that
// program. It refuses to install without --backend, and to uninstall while kubelet has the proxy's endpoint.
func TestBackendManaged(t *testing.T) {
	for name, c := range managedHosts {
		t.Run(name, func(t *testing.T) {
			before := c.files("")
			if c.running != nil {
				maps.Copy(before, kubeletRuns(time.Now().Add(time.Hour), c.running...))
			}
			h, out := newHost(t, before)
			want := "kubelet's files are written by " + c.name + ", so that to change them is in vain: first run wasmproxy host install --backend "
			if err := h.Install(t.Context(), Consent{}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), c.advice) {
				t.Errorf("without --backend: %v", err)
			}
			h.same(t, before)
			h.Backend = c.backend
			h.install(t)
			h.sameFor(t, before)
			proxySettings(t, h, c.backend, ours, "")
			if !strings.Contains(out.String(), "kubelet's files stay as they are: ") || !strings.Contains(out.String(), c.advice) {
				t.Errorf("%q is not in\n%s", c.advice, out)
			}
			h.uninstall(t)
			h.same(t, before)
			h.install(t)

			told := c.files(ours) // as the operator and that program write them
			for path, content := range told {
				if !strings.HasPrefix(content, "-> ") {
					h.make(t, path, content)
				}
			}
			h.Backend = ""
			h.install(t)
			h.sameFor(t, told)
			installed := h.files(t)
			want = "kubelet has the proxy's endpoint " + ours + " from " + c.name + ", which would write it again: first "
			if err := h.Uninstall(t.Context(), Consent{}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), c.backend) {
				t.Errorf("got %v, want %q", err, want)
			}
			h.same(t, installed)
		})
	}
}

// TestBackendManagedRuns: uninstalling is refused while kubelet runs with the flag, also if the files are others by now.
func TestBackendManagedRuns(t *testing.T) {
	rke2 := managedHosts["RKE2"]
	before := rke2.files("").with(kubeletRuns(time.Now().Add(time.Hour), "--container-runtime-endpoint="+ours))
	h, _ := newHost(t, before)
	h.Backend = rke2.backend
	h.install(t)
	installed := h.files(t)
	if err := h.Uninstall(t.Context(), Consent{}); err == nil || !strings.Contains(err.Error(), "kubelet has the proxy's endpoint") {
		t.Errorf("got %v", err)
	}
	h.same(t, installed)
}
