package host_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/doctor"
	"github.com/wasmproxy/wasmproxy/runtime/host"
)

const (
	ours       = "unix:///run/wasmproxy/wasmproxy.sock"
	oursCRIO   = "unix:///run/wasmproxy/run/crio/crio.sock"
	byKubeadm  = "unix:///var/run/containerd/containerd.sock"
	containerd = "unix:///run/containerd/containerd.sock"
	crio       = "unix:///var/run/crio/crio.sock"
	k3s        = "unix:///run/k3s/containerd/containerd.sock"

	configFile = "/var/lib/kubelet/config.yaml: containerRuntimeEndpoint"
	instance   = "/var/lib/kubelet/instance-config.yaml: containerRuntimeEndpoint"
	flagsFile  = "/var/lib/kubelet/kubeadm-flags.env: --container-runtime-endpoint"
)

// layout is what the commands do on a tree of testdata/layouts.
type layout struct {
	backend string   // of kubelet, as its files have it
	counts  string   // the file and the name of the setting that kubelet uses, as doctor writes them; empty if there is none
	others  []string // of those that it does not use, and that name the endpoint, too
	byUnit  string   // that gives kubelet the endpoint where no file has it

	refuses  string // what install says without --backend; empty if it changes kubelet's files
	advice   string // what it says with --backend
	told     files  // by which the operator then does so; nil if another program has to write them
	readOnly string // a directory that cannot be written
}

// files are contents by their paths.
type files map[string]string

func layouts() map[string]layout {
	old := layout{backend: byKubeadm, counts: flagsFile}
	since134 := layout{backend: byKubeadm, counts: configFile, others: []string{instance}}
	eks := layout{
		backend: containerd, counts: "/etc/kubernetes/kubelet/config.json: containerRuntimeEndpoint",
		refuses: "kubelet's files are written by nodeadm of EKS",
		advice:  "set containerRuntimeEndpoint: " + ours + " in spec.kubelet.config of the NodeConfig",
		told:    files{"/etc/kubernetes/kubelet/config.json.d/40-nodeadm.conf": "{\n    \"containerRuntimeEndpoint\": \"" + ours + "\"\n}\n"},
	}
	eksFlagged := eks
	eksFlagged.told = maps.Clone(eks.told)
	eksFlagged.told["/etc/eks/kubelet/environment"] = "NODEADM_KUBELET_ARGS=--config=/etc/kubernetes/kubelet/config.json --config-dir=/etc/kubernetes/kubelet/config.json.d\n"
	eksImage := eks
	eksImage.counts, eksImage.told, eksImage.byUnit = "", nil, "kubelet.service: containerRuntimeEndpoint"
	all := map[string]layout{
		"crio-1.33-deb": {backend: crio, counts: flagsFile},
		"crio-1.36-rpm": {backend: crio, counts: configFile, others: []string{instance}},
		"image-kubeadm-1.36-deb": {
			backend: containerd,
			refuses: "no flag and no file of kubelet has an endpoint, and there is no configuration /var/lib/kubelet/config.yaml to add it to; name it with --kubelet-config, or the runtime with --backend",
			advice:  "give kubeadm criSocket: " + ours + " under nodeRegistration of its InitConfiguration and JoinConfiguration",
		},
		"k3s-1.31":              rancher("k3s", "k3s", "", k3s),
		"k3s-1.33":              rancher("k3s", "k3s", "/var/lib/rancher/k3s/agent/etc/kubelet.conf.d/00-k3s-defaults.conf: containerRuntimeEndpoint", k3s),
		"k3s-1.33-crio":         rancher("k3s", "k3s", "/etc/rancher/k3s/config.yaml: --container-runtime-endpoint", "unix:///run/crio/crio.sock"),
		"rke2-1.33-agent":       rancher("RKE2", "rke2", "/var/lib/rancher/rke2/agent/etc/kubelet.conf.d/00-rke2-defaults.conf: containerRuntimeEndpoint", k3s),
		"rke2-1.33-server":      rancher("RKE2", "rke2", "/var/lib/rancher/rke2/agent/etc/kubelet.conf.d/00-rke2-defaults.conf: containerRuntimeEndpoint", k3s),
		"eks-al2023":            eksFlagged,
		"eks-al2023-nodeconfig": eks,
		"image-eks-al2023":      eksImage,
		"flatcar-opt-bin":       {backend: byKubeadm, counts: flagsFile, readOnly: "/usr"},
		"flatcar-sysext":        {backend: byKubeadm, counts: configFile, others: []string{instance}, readOnly: "/usr"},
		"kops-1.33": {
			backend: containerd, counts: "/var/lib/kubelet/kubelet.conf: containerRuntimeEndpoint",
			refuses: "kubelet's files are written by nodeup of kops",
			advice:  "add a drop-in to kubelet.service whose ExecStart= is that of the unit with --container-runtime-endpoint=" + ours + " at its end",
			told:    files{"/etc/systemd/system/kubelet.service.d/50-wasmproxy.conf": "[Service]\nExecStart=\nExecStart=/usr/local/bin/kubelet \"$DAEMON_ARGS\" --container-runtime-endpoint=" + ours + "\n"},
		},
		"k0s-worker": {
			backend: "unix:///run/k0s/containerd.sock", byUnit: "k0sworker.service or k0scontroller.service: the endpoint that it gives kubelet",
			refuses: "kubelet's files are written by k0s",
			advice:  "add --kubelet-extra-args=--container-runtime-endpoint=" + ours + " to the command of its unit",
			told:    files{"/etc/systemd/system/k0sworker.service": "[Service]\nExecStart=/usr/local/bin/k0s worker --token-file=/etc/k0s/token --kubelet-extra-args=\"--max-pods=200 --container-runtime-endpoint=" + ours + "\"\n"},
		},
		"microk8s": {
			backend: "/var/snap/microk8s/common/run/containerd.sock", counts: "/var/snap/microk8s/current/args/kubelet: --container-runtime-endpoint",
			refuses: "kubelet's files are written by MicroK8s",
			advice:  "write --container-runtime-endpoint=" + ours + " into /var/snap/microk8s/current/args/kubelet",
			told:    files{"/var/snap/microk8s/current/args/kubelet": "--root-dir=${SNAP_COMMON}/var/lib/kubelet\n--container-runtime-endpoint=" + ours + "\n"},
		},
	}
	for _, kind := range []string{"deb", "rpm"} {
		for minor := 31; minor <= 36; minor++ {
			all[fmt.Sprintf("kubeadm-1.%d-%s", minor, kind)] = map[bool]layout{true: old, false: since134}[minor < 34]
		}
	}
	return all
}

func rancher(name, dir, counts, backend string) layout {
	listen := ours
	if strings.HasSuffix(backend, "/crio.sock") {
		listen = oursCRIO
	}
	settings := "/etc/rancher/" + dir + "/config.yaml"
	return layout{
		byUnit:  "k3s.service or k3s-agent.service: the endpoint that it gives kubelet",
		backend: backend, counts: counts, refuses: "kubelet's files are written by " + name,
		advice: "write kubelet-arg: [container-runtime-endpoint=" + listen + "] into " + settings,
		told:   files{settings: "kubelet-arg:\n- max-pods=200\n- container-runtime-endpoint=" + listen + "\n"},
	}
}

// listen is the proxy's endpoint on the node.
func (l layout) listen() string {
	if strings.HasSuffix(l.backend, "/crio.sock") {
		return oursCRIO
	}
	return ours
}

// TestLayouts: on the trees of testdata/layouts, install changes the endpoint in kubelet's files and nothing else of
// them, or says what to do and changes nothing; doctor finds which file leads kubelet past the proxy; and uninstall gives
// back every byte.
func TestLayouts(t *testing.T) {
	paths, err := filepath.Glob("testdata/layouts/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	all := layouts()
	if len(paths) != len(all) {
		t.Errorf("there are %d trees and %d rows for them", len(paths), len(all))
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".txtar")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, has := all[name]
			if !has {
				t.Fatal("there is no row for it")
			}
			n := &node{t: t, layout: l, root: t.TempDir()}
			n.unpack(path)
			n.before = n.read()
			switch {
			case l.readOnly != "":
				n.onlyReads()
			case l.refuses != "":
				n.leavesFiles()
			default:
				n.changesFiles()
			}
			n.must(n.uninstall())
			n.same(n.before)
		})
	}
}

// node is a tree on the disk.
type node struct {
	layout
	t      *testing.T
	root   string
	before files
	out    bytes.Buffer
}

func (n *node) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

// unpack writes the tree. Each of its files has a line that says which package or program it is from, in which version.
func (n *node) unpack(path string) {
	archive, err := txtar.ParseFile(path)
	n.must(err)
	var sources []string
	for line := range strings.Lines(string(archive.Comment)) {
		if file, from, is := strings.Cut(line, ": "); is && strings.HasPrefix(line, "/") {
			sources = append(sources, file)
			if !strings.ContainsAny(from, "0123456789") && !strings.HasPrefix(from, "of the operator") {
				n.t.Errorf("%s: there is no version in %q", file, from)
			}
		}
	}
	var names []string
	for _, f := range archive.Files {
		names = append(names, f.Name)
		n.write(f.Name, string(f.Data))
	}
	if d := cmp.Diff(names, sources); d != "" || len(names) == 0 {
		n.t.Errorf("the files and the lines on where they are from differ:\n%s", d)
	}
}

func (n *node) write(path, content string) {
	at := n.root + path
	n.must(os.MkdirAll(filepath.Dir(at), 0o755))
	n.must(os.WriteFile(at, []byte(content), 0o640))
}

// read returns all files with their modes.
func (n *node) read() files {
	all := files{}
	n.must(filepath.WalkDir(n.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name := strings.TrimPrefix(path, n.root)
		if d.Type() == fs.ModeSymlink {
			all[name], err = os.Readlink(path)
			return err
		}
		info, err := d.Info()
		b, readErr := os.ReadFile(path)
		all[name] = fmt.Sprintf("%v\n%s", info.Mode(), b)
		return errors.Join(err, readErr)
	}))
	return all
}

func (n *node) same(want files) {
	n.t.Helper()
	if d := cmp.Diff(want, n.read()); d != "" {
		n.t.Errorf("the files differ (-want +got):\n%s", d)
	}
}

func (n *node) host(backend string) *host.Host {
	program := filepath.Join(n.t.TempDir(), "program")
	n.must(os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755))
	n.out.Reset()
	return &host.Host{Root: host.Root(n.root), KubeletConfig: host.DefaultKubeletConfig, Backend: backend, Program: program, Out: &n.out}
}

func (n *node) install(backend string) error {
	return n.host(backend).Install(n.t.Context(), host.Consent{})
}

func (n *node) uninstall() error { return n.host("").Uninstall(n.t.Context(), host.Consent{}) }

// changesFiles: kubelet's files get the proxy's endpoint, and nothing else of them changes.
func (n *node) changesFiles() {
	n.doctor(n.counts, n.others...)
	n.must(n.install(""))
	want := n.installed()
	for _, place := range append(n.others, n.counts) {
		path, _, _ := strings.Cut(place, ": ")
		want[path] = strings.ReplaceAll(want[path], n.backend, n.listen())
	}
	n.same(want)
	n.doctor("")
	n.must(n.install(""))
	n.same(want)
}

// leavesFiles: another program writes kubelet's files, so they stay until the operator tells it the endpoint.
func (n *node) leavesFiles() {
	n.doctorByDefault()
	if err := n.install(""); err == nil || !strings.Contains(err.Error(), n.refuses) {
		n.t.Errorf("without --backend: got %v, want %q", err, n.refuses)
	}
	n.same(n.before)
	n.must(n.install(n.backend))
	if !strings.Contains(n.out.String(), "kubelet's files stay as they are: ") || !strings.Contains(n.out.String(), n.advice) {
		n.t.Errorf("%q is not in\n%s", n.advice, &n.out)
	}
	n.same(n.installed())
	n.doctorByDefault()
	if n.told == nil {
		return
	}
	former := files{}
	for path, content := range n.told {
		b, err := os.ReadFile(n.root + path)
		if err == nil {
			former[path] = string(b)
		}
		n.write(path, content)
	}
	n.doctor("")
	n.must(n.install(""))
	told := n.read()
	if err := n.uninstall(); err == nil || !strings.Contains(err.Error(), "kubelet has the proxy's endpoint "+n.listen()) {
		n.t.Errorf("it is uninstalled while kubelet has its endpoint: %v", err)
	}
	n.same(told)
	for path := range n.told {
		n.must(os.Remove(n.root + path))
		if content, was := former[path]; was {
			n.write(path, content)
		} else {
			_ = os.Remove(filepath.Dir(n.root + path)) // unless there are others
		}
	}
}

// onlyReads: the program cannot be written, so nothing is changed. With a package that has brought program and units, the
// rest can be.
func (n *node) onlyReads() {
	dir := n.root + n.readOnly
	remount := func(flags uintptr) { n.must(unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND|flags, "")) }
	n.must(unix.Mount(dir, dir, "", unix.MS_BIND, ""))
	n.t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	remount(unix.MS_RDONLY)
	err := n.install("")
	for _, want := range []string{"nothing was changed, because a file in /usr/local", "cannot be written: read-only file system"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			n.t.Errorf("got %v, want %q", err, want)
		}
	}
	n.same(n.before)
	remount(0)
	for unit, text := range map[string]string{"service": "[Service]\nExecStart=/usr/bin/wasmproxy serve\n[Install]\nWantedBy=multi-user.target\n", "socket": "[Socket]\nListenStream=/run/wasmproxy/wasmproxy.sock\n[Install]\nWantedBy=sockets.target\n"} {
		n.write("/usr/lib/systemd/system/wasmproxy."+unit, text)
	}
	n.before = n.read()
	remount(unix.MS_RDONLY)
	n.changesFiles()
}

// installed is the tree with the proxy's files, as they are: settings, record and program, its units, their drop-ins and
// the links that enable them. Another new file is not expected.
func (n *node) installed() files {
	names := []string{host.SettingsFile, host.RecordFile, "/etc/systemd/system/multi-user.target.wants/wasmproxy.service", "/etc/systemd/system/sockets.target.wants/wasmproxy.socket"}
	if n.readOnly == "" {
		names = append(names, "/usr/local/bin/wasmproxy", "/etc/systemd/system/wasmproxy.service", "/etc/systemd/system/wasmproxy.socket")
	}
	if n.listen() != ours {
		names = append(names, "/etc/systemd/system/wasmproxy.socket.d/listen.conf")
	}
	all, now := maps.Clone(n.before), n.read()
	for name := range now {
		if strings.HasPrefix(name, "/etc/systemd/system/wasmproxy.service.d/") {
			names = append(names, name)
		}
	}
	for _, name := range names {
		all[name] = now[name]
	}
	if s := n.settings(); s.Listen != n.listen() || s.Backend != n.backend {
		n.t.Errorf("the proxy listens on %s, and its backend is %s", s.Listen, s.Backend)
	}
	return all
}

// settings are the proxy's, as it reads them, or those that it would have.
func (n *node) settings() *config.Config {
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	config.Flags(flags)
	if _, err := os.Stat(n.root + host.SettingsFile); err == nil {
		n.must(flags.Set(config.FileFlag, n.root+host.SettingsFile))
	} else {
		n.must(errors.Join(flags.Set("listen", n.listen()), flags.Set("backend", n.backend)))
	}
	c, err := config.Load(flags)
	n.must(err)
	return c
}

// doctor requires that kubelet's files have these settings with another endpoint than the proxy's: the one that counts,
// if it is not empty, and those that do not.
func (n *node) doctor(counts string, others ...string) {
	n.t.Helper()
	want := []string{}
	if counts != "" {
		want = append(want, "kubelet-endpoint: "+counts+" is "+n.backend+"; the proxy listens on "+n.listen())
	}
	for _, place := range others {
		want = append(want, "kubelet-files: "+place+" is "+n.backend+"; the proxy listens on "+n.listen())
	}
	n.finds(want)
}

// doctorByDefault does the same where kubelet may have an endpoint that no file names.
func (n *node) doctorByDefault() {
	n.t.Helper()
	const unknown = "finding kubelet's endpoint: there is no /var/lib/kubelet/config.yaml, and no flag names it"
	switch {
	case n.counts != "":
		n.doctor(n.counts)
	case n.byUnit != "":
		n.finds([]string{"kubelet-endpoint: " + n.byUnit + " is " + n.backend + "; the proxy listens on " + n.listen()})
	default:
		n.finds([]string{
			"kubelet-endpoint is not checked: no kubelet runs with --container-runtime-endpoint, and " + unknown,
			"kubelet-image-endpoint is not checked: no kubelet runs with --image-service-endpoint, and " + unknown,
			"kubelet-files is not checked: " + unknown,
		})
	}
}

func (n *node) finds(want []string) {
	n.t.Helper()
	report := doctor.Run(n.t.Context(), doctor.Options{
		Root: n.root, KubeletConfig: host.DefaultKubeletConfig, Settings: n.settings(),
		Load:  func(context.Context, *config.Config) ([]string, error) { return nil, nil },
		Clock: func() (bool, error) { return true, nil },
	})
	got := []string{}
	checks := []string{"kubelet-endpoint", "kubelet-image-endpoint", "kubelet-files"}
	for _, f := range report.Findings {
		if slices.Contains(checks, f.Check) {
			got = append(got, f.Check+": "+f.Where+": "+f.Found)
		}
	}
	for _, c := range report.NotChecked {
		if slices.Contains(checks, c.Check) {
			got = append(got, c.Check+" is not checked: "+c.Reason)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		n.t.Errorf("doctor's findings differ (-want +got):\n%s", d)
	}
}
