package host

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"
)

// tree is the files of a host by their paths; a link is "-> TARGET".
type tree map[string]string

// newHost makes a host with these files below a directory, whose name is no pattern.
func newHost(t *testing.T, files tree) (*Host, *bytes.Buffer) {
	t.Helper()
	root := filepath.Join(t.TempDir(), "image[1]")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	for path, content := range files {
		at := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		err := os.WriteFile(at, []byte(content), 0o640)
		if target, link := strings.CutPrefix(content, "-> "); link {
			err = errors.Join(os.Remove(at), os.Symlink(target, at))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	out := new(bytes.Buffer)
	return &Host{Root: Root(root), KubeletConfig: DefaultKubeletConfig, Program: program, Out: out, patience: 50 * time.Millisecond}, out
}

// files returns what the host has, without empty directories.
func (h *Host) files(t *testing.T) tree {
	t.Helper()
	all := tree{}
	err := filepath.WalkDir(string(h.Root), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name := strings.TrimPrefix(path, string(h.Root))
		if d.Type() == fs.ModeSymlink {
			target, err := os.Readlink(path)
			all[name] = "-> " + target
			return err
		}
		b, err := os.ReadFile(path)
		all[name] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// same requires files that are equal to those.
func (h *Host) same(t *testing.T, want tree) {
	t.Helper()
	if d := cmp.Diff(want, h.files(t)); d != "" {
		t.Errorf("the host's files differ (-want +got):\n%s", d)
	}
}

// make writes a file, with its directory.
func (h *Host) make(t *testing.T, path, content string) {
	t.Helper()
	at := filepath.Join(string(h.Root), path)
	if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(content), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func (h *Host) install(t *testing.T) {
	t.Helper()
	if err := h.Install(t.Context(), Consent{}); err != nil {
		t.Fatal(err)
	}
}

func (h *Host) uninstall(t *testing.T) {
	t.Helper()
	if err := h.Uninstall(t.Context(), Consent{}); err != nil {
		t.Fatal(err)
	}
}

// byHand requires that uninstalling changes nothing and shows these lines, which name what the operator has to change.
func (h *Host) byHand(t *testing.T, out *bytes.Buffer, shown ...string) {
	t.Helper()
	installed := h.files(t)
	out.Reset()
	err := h.Uninstall(t.Context(), Consent{})
	if !errors.As(err, new(ByHand)) {
		t.Errorf("got %v, want an error that says what to do by hand", err)
	}
	for _, want := range shown {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	h.same(t, installed)
}

// with is the tree with other files.
func (a tree) with(others tree) tree {
	b := maps.Clone(a)
	maps.Copy(b, others)
	return b
}

const (
	configFile = DefaultKubeletConfig
	flagsFile  = "/var/lib/kubelet/kubeadm-flags.env"
)

// kubeletConfig is a file as kubeadm writes it: the object as sigs.k8s.io/yaml has it.
func kubeletConfig(endpoint string) string {
	yes := true
	b, err := yaml.Marshal(map[string]any{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"})
	if err != nil {
		panic(err)
	}
	c, err := yaml.Marshal(v1beta1.KubeletConfiguration{
		CgroupDriver: "systemd", ClusterDNS: []string{"10.96.0.10"}, ClusterDomain: "cluster.local", RotateCertificates: true,
		StaticPodPath: "/etc/kubernetes/manifests", FailSwapOn: &yes, ContainerRuntimeEndpoint: endpoint,
		EvictionHard: map[string]string{"memory.available": "100Mi"},
	})
	if err != nil {
		panic(err)
	}
	return string(b) + string(c)
}

// kubeadmFlags is a file as kubeadm writes it.
func kubeadmFlags(flags ...string) string {
	return fmt.Sprintf("KUBELET_KUBEADM_ARGS=%q\n", strings.Join(flags, " "))
}

const (
	containerd = "unix:///var/run/containerd/containerd.sock" // as kubeadm has it
	crio       = "unix:///var/run/crio/crio.sock"
	crioListen = "unix:///run/wasmproxy/run/crio/crio.sock"
	pause      = "--pod-infra-container-image=registry.k8s.io/pause:3.9"
	ours       = "unix:///run/wasmproxy/wasmproxy.sock"
)

func instance(endpoint string) string { return fmt.Sprintf("containerRuntimeEndpoint: %q\n", endpoint) }

// nodes are hosts of kubeadm, with the endpoint that kubelet has and the one that it gets.
func nodes() map[string]struct {
	files              tree
	before, after      string
	imagesBefore       string
	changed, unchanged []string
} {
	type node = struct {
		files              tree
		before, after      string
		imagesBefore       string
		changed, unchanged []string
	}
	return map[string]node{
		"kubeadm 1.28, containerd": {
			files:  tree{configFile: kubeletConfig(""), flagsFile: kubeadmFlags("--container-runtime-endpoint="+containerd, pause)},
			before: containerd, after: ours, changed: []string{flagsFile}, unchanged: []string{configFile},
		},
		"kubeadm 1.31, CRI-O": {
			files:  tree{configFile: kubeletConfig(""), flagsFile: kubeadmFlags("--container-runtime-endpoint="+crio, pause)},
			before: crio, after: crioListen, changed: []string{flagsFile},
		},
		"kubeadm 1.33, cri-dockerd, a hostname": {
			files: tree{configFile: kubeletConfig(""), flagsFile: kubeadmFlags("--container-runtime-endpoint=unix:///run/cri-dockerd.sock", "--hostname-override=node-1", pause),
				"/etc/default/kubelet": "KUBELET_EXTRA_ARGS=\n"},
			before: "unix:///run/cri-dockerd.sock", after: ours, changed: []string{flagsFile}, unchanged: []string{"/etc/default/kubelet"},
		},
		"kubeadm 1.34, instance configuration": {
			files:  tree{configFile: kubeletConfig(containerd), instanceConfig: instance(containerd), flagsFile: kubeadmFlags(pause)},
			before: containerd, after: ours, changed: []string{configFile, instanceConfig}, unchanged: []string{flagsFile},
		},
		"kubeadm 1.36, CRI-O": {
			files:  tree{configFile: kubeletConfig(crio), instanceConfig: instance(crio), flagsFile: kubeadmFlags()},
			before: crio, after: crioListen, changed: []string{configFile, instanceConfig},
		},
		"kubeadm 1.36, a flag of the operator wins": {
			files: tree{configFile: kubeletConfig(containerd), instanceConfig: instance(containerd), flagsFile: kubeadmFlags(),
				"/etc/sysconfig/kubelet": "# --container-runtime-endpoint=unix:///old.sock\nKUBELET_EXTRA_ARGS=\"--v=2 --container-runtime-endpoint unix:///run/other.sock\"\n"},
			before: "unix:///run/other.sock", after: ours, changed: []string{configFile, instanceConfig, "/etc/sysconfig/kubelet"},
		},
		"a flag in a drop-in, without scheme": {
			files:  tree{configFile: kubeletConfig(""), "/etc/systemd/system/kubelet.service.d/20-runtime.conf": "[Service]\nExecStart=\nExecStart=/usr/bin/kubelet --config=/var/lib/kubelet/config.yaml \\\n  --container-runtime-endpoint=/run/containerd/containerd.sock\n"},
			before: "/run/containerd/containerd.sock", after: ours, changed: []string{"/etc/systemd/system/kubelet.service.d/20-runtime.conf"},
		},
		"another image service": {
			files:  tree{configFile: strings.Replace(kubeletConfig(containerd), "kind:", "imageServiceEndpoint: 'unix:///run/images.sock' # lazy\nkind:", 1), flagsFile: kubeadmFlags()},
			before: containerd, after: ours, imagesBefore: "unix:///run/images.sock", changed: []string{configFile},
		},
		"by hand, no endpoint at all": {
			files:  tree{configFile: "kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\n# no newline at the end\ncgroupDriver: systemd"},
			before: DefaultEndpoint, after: ours, changed: []string{configFile},
		},
		"by hand, an empty endpoint": {
			files:  tree{configFile: "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncontainerRuntimeEndpoint: # the default\nfailSwapOn: true\n"},
			before: DefaultEndpoint, after: ours, changed: []string{configFile},
		},
	}
}

// effective returns the endpoint that kubelet uses: by its own decoder, and flags that win.
func effective(t *testing.T, files tree) (runtime, images string) {
	t.Helper()
	var c v1beta1.KubeletConfiguration
	if err := yaml.UnmarshalStrict([]byte(files[configFile]), &c); err != nil {
		t.Fatalf("kubelet cannot read its configuration: %v\n%s", err, files[configFile])
	}
	runtime, images = c.ContainerRuntimeEndpoint, c.ImageServiceEndpoint
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if path == configFile || path == instanceConfig || !strings.Contains(path, "kube") {
			continue
		}
		var words []string
		for line := range strings.Lines(strings.ReplaceAll(files[path], "\\\n", " ")) {
			_, flags, _ := strings.Cut(strings.TrimSpace(line), "=")
			if !strings.HasPrefix(line, "#") {
				words = append(words, strings.Fields(strings.Trim(flags, `"`))...)
			}
		}
		fs := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
		fs.ParseErrorsAllowlist.UnknownFlags = true
		fs.StringVar(&runtime, "container-runtime-endpoint", runtime, "")
		fs.StringVar(&images, "image-service-endpoint", images, "")
		if err := fs.Parse(words); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	if runtime == "" {
		runtime = DefaultEndpoint
	}
	return runtime, images
}
