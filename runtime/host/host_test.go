package host

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/wasmproxy/wasmproxy/runtime/config"
)

// TestInstall: on hosts of several versions of kubeadm, kubelet gets the proxy's socket and
// nothing else changes for it; the proxy gets kubelet's runtime; uninstalling gives back every
// byte and leaves nothing.
func TestInstall(t *testing.T) {
	for name, node := range nodes() {
		t.Run(name, func(t *testing.T) {
			h, _ := newHost(t, node.files)
			if got, images := effective(t, node.files); got != node.before || images != node.imagesBefore {
				t.Fatalf("kubelet's endpoints are %q and %q before", got, images)
			}
			h.install(t)
			files := h.files(t)
			runtime, images := effective(t, files)
			if runtime != node.after || images != "" && images != node.after || node.imagesBefore != "" && images == "" {
				t.Errorf("kubelet's endpoints are %q and %q", runtime, images)
			}
			if n := strings.Count(files[instanceConfig], node.after); files[instanceConfig] != "" && n != 1 {
				t.Errorf("the instance configuration is %q", files[instanceConfig])
			}
			onlyEndpoints(t, node.files[configFile], files[configFile])
			for path, content := range node.files {
				if was := strings.Contains(strings.Join(node.changed, " ")+" ", path+" "); (files[path] != content) != was {
					t.Errorf("%s is\n%s", path, files[path])
				}
				if info, err := os.Stat(filepath.Join(string(h.Root), path)); err != nil || info.Mode() != 0o640 {
					t.Errorf("%s has mode %v, %v", path, info.Mode(), err)
				}
			}
			proxySettings(t, h, node.before, node.after, node.imagesBefore)
			h.uninstall(t)
			h.same(t, node.files)
			for _, dir := range []string{"etc/wasmproxy", "var/lib/wasmproxy"} {
				if _, err := os.Stat(filepath.Join(string(h.Root), dir)); err == nil {
					t.Errorf("%s is left", dir)
				}
			}
		})
	}
}

// onlyEndpoints compares what kubelet reads.
func onlyEndpoints(t *testing.T, before, after string) {
	t.Helper()
	var a, b v1beta1.KubeletConfiguration
	if err := errors.Join(yaml.UnmarshalStrict([]byte(before), &a), yaml.UnmarshalStrict([]byte(after), &b)); err != nil {
		t.Fatal(err)
	}
	a.ContainerRuntimeEndpoint, a.ImageServiceEndpoint = b.ContainerRuntimeEndpoint, b.ImageServiceEndpoint
	one, _ := yaml.Marshal(a)
	other, _ := yaml.Marshal(b)
	if string(one) != string(other) {
		t.Errorf("kubelet's configuration is\n%s\nand was\n%s", other, one)
	}
}

// proxySettings reads the settings and the units as the proxy and systemd do.
func proxySettings(t *testing.T, h *Host, backend, listen, images string) {
	t.Helper()
	c, err := config.With(map[string]string{config.FileFlag: h.Root.Under(SettingsFile)}, config.NoVariables)
	if err != nil || c.Backend != backend || c.Listen != listen || c.ImageEndpoint != images {
		t.Errorf("the settings are %+v, %v", c, err)
	}
	files := h.files(t)
	units := files["/etc/systemd/system/wasmproxy.socket"] + files["/etc/systemd/system/wasmproxy.socket.d/listen.conf"]
	if at := strings.LastIndex(units, "ListenStream="); !strings.HasPrefix(units[at:], "ListenStream="+config.Path(listen)+"\n") {
		t.Errorf("the socket is\n%s", units)
	}
	if !strings.Contains(files["/etc/systemd/system/wasmproxy.service"], "\nExecStart=/usr/local/bin/wasmproxy serve ") {
		t.Error("the unit does not run the program")
	}
	for _, link := range []string{"sockets.target.wants/wasmproxy.socket", "multi-user.target.wants/wasmproxy.service"} {
		if files["/etc/systemd/system/"+link] == "" {
			t.Errorf("%s is not enabled", link)
		}
	}
}

// TestInstallPackaged: a package has brought the program and the units, so neither is written.
func TestInstallPackaged(t *testing.T) {
	before := nodes()["kubeadm 1.34, instance configuration"].files.with(tree{
		"/usr/lib/systemd/system/wasmproxy.service": "[Service]\nExecStart=/usr/bin/wasmproxy serve\n[Install]\nWantedBy=multi-user.target\n",
		"/usr/lib/systemd/system/wasmproxy.socket":  "[Socket]\nListenStream=/run/wasmproxy/wasmproxy.sock\n[Install]\nWantedBy=sockets.target\n",
	})
	h, _ := newHost(t, before)
	h.install(t)
	files := h.files(t)
	for _, path := range []string{"/usr/local/bin/wasmproxy", "/etc/systemd/system/wasmproxy.service", "/etc/systemd/system/wasmproxy.socket"} {
		if _, has := files[path]; has {
			t.Errorf("there is %s", path)
		}
	}
	if files["/etc/systemd/system/sockets.target.wants/wasmproxy.socket"] == "" {
		t.Error("the socket is not enabled")
	}
	h.uninstall(t)
	h.same(t, before)
}

// TestDryRun: it shows each change and makes none; nor does an answer of no.
func TestDryRun(t *testing.T) {
	before := nodes()["kubeadm 1.28, containerd"].files
	h, out := newHost(t, before)
	for _, c := range []Consent{{DryRun: true}, {Confirm: func() (bool, error) { return false, nil }}} {
		out.Reset()
		if err := h.Install(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			`-KUBELET_KUBEADM_ARGS="--container-runtime-endpoint=` + containerd, `+KUBELET_KUBEADM_ARGS="--container-runtime-endpoint=` + ours,
			"+backend: " + containerd, "make directory /etc/wasmproxy/plugins.d\n", "write /usr/local/bin/wasmproxy: the program, 10 bytes\n", "systemctl enable wasmproxy.socket wasmproxy.service\n", "othing was changed",
		} {
			if !strings.Contains(strings.ReplaceAll(out.String(), "Nothing", "othing"), want) {
				t.Errorf("%q is not in\n%s", want, out)
			}
		}
		h.same(t, before)
	}
}

// TestInstallAgain: a second installation, with a newer program, changes that alone, and the
// first one's record stays what uninstalling goes by.
func TestInstallAgain(t *testing.T) {
	before := nodes()["kubeadm 1.36, CRI-O"].files
	h, out := newHost(t, before)
	h.install(t)
	first := h.files(t)
	if err := os.WriteFile(h.Program, []byte("#!/bin/sh\n# newer\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	h.install(t)
	second := h.files(t)
	if !strings.Contains(out.String(), "until it restarts: systemctl restart wasmproxy.service") || second["/usr/local/bin/wasmproxy"] == first["/usr/local/bin/wasmproxy"] || strings.Contains(out.String(), "@@") {
		t.Errorf("the second installation says\n%s", out)
	}
	for path := range before {
		if first[path] != second[path] {
			t.Errorf("%s was changed again", path)
		}
	}
	h.uninstall(t)
	h.same(t, before)
}

var errCrash = errors.New("crash")

// crashAt makes the host end before its nth step, and returns how many steps it began.
func (h *Host) crashAt(n int, do func(context.Context, Consent) error, ctx context.Context) (steps int, err error) {
	h.step = func(string) error {
		steps++
		if steps == n {
			return errCrash
		}
		return nil
	}
	defer func() { h.step = nil }()
	return steps, do(ctx, Consent{})
}

// TestInterrupted: wherever an installation ends, kubelet has one endpoint that answers or
// will, uninstalling takes all of it back, and so does a second installation that is
// uninstalled. Uninstalling, too, may end anywhere and be run again.
func TestInterrupted(t *testing.T) {
	before := nodes()["kubeadm 1.36, CRI-O"].files
	for n := 1; ; n++ {
		again, _ := newHost(t, before)
		if _, err := again.crashAt(n, again.Install, t.Context()); err == nil {
			if n < 8 {
				t.Errorf("the installation has only %d steps", n-1)
			}
			break
		} else if !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
		if r, err := loadRecord(again.Root); err != nil {
			t.Fatal(err)
		} else if r != nil {
			back, _ := newHost(t, again.files(t))
			back.uninstall(t)
			back.same(t, before)
		} else {
			again.same(t, before)
		}
		again.install(t)
		again.uninstall(t)
		again.same(t, before)
	}
	for n := 1; ; n++ {
		h, _ := newHost(t, before)
		h.install(t)
		_, err := h.crashAt(n, h.Uninstall, t.Context())
		if err == nil {
			if n < 6 {
				t.Errorf("uninstalling has only %d steps", n-1)
			}
			break
		}
		h.uninstall(t)
		h.same(t, before)
	}
}

// TestUninstallEdited: a file of kubelet that was edited since the installation, and has the proxy's endpoint, is left to
// the operator, with all others. The change that is shown is what is needed. Other edited files stay.
func TestUninstallEdited(t *testing.T) {
	old := nodes()["kubeadm 1.28, containerd"].files
	upgraded := func(h *Host) { // kubeadm upgrade to 1.34 moves the flag's value
		h.put(flagsFile, kubeadmFlags(pause))
		h.put(instanceConfig, instance(ours))
		h.put(configFile, kubeletConfig(ours))
	}
	for name, c := range map[string]struct {
		before tree
		edit   func(*Host)
		want   tree
		says   string
		byHand tree // which the operator makes of files that have the proxy's endpoint
	}{
		"a flag was added": {old, func(h *Host) {
			h.put(flagsFile, kubeadmFlags("--container-runtime-endpoint="+ours, pause, "--v=4"))
		}, old.with(tree{flagsFile: kubeadmFlags("--container-runtime-endpoint="+containerd, pause, "--v=4")}), "", tree{flagsFile: kubeadmFlags("--container-runtime-endpoint="+containerd, pause, "--v=4")}},
		"the endpoint is another already": {old, func(h *Host) {
			h.put(flagsFile, kubeadmFlags("--container-runtime-endpoint=unix:///run/third.sock"))
		}, old.with(tree{flagsFile: kubeadmFlags("--container-runtime-endpoint=unix:///run/third.sock")}), "", nil},
		"kubeadm upgrade": {old, upgraded, tree{
			flagsFile: kubeadmFlags(pause), instanceConfig: instance(containerd), configFile: kubeletConfig(containerd),
		}, "", tree{instanceConfig: instance(containerd), configFile: kubeletConfig(containerd)}},
		"the configuration had no endpoint": {tree{configFile: "cgroupDriver: systemd\n"}, func(h *Host) {
			h.put(configFile, "containerRuntimeEndpoint: \""+ours+"\" # edited\ncgroupDriver: cgroupfs\n")
		}, tree{configFile: "containerRuntimeEndpoint: \"" + DefaultEndpoint + "\" # edited\ncgroupDriver: cgroupfs\n"}, "", tree{configFile: "containerRuntimeEndpoint: \"" + DefaultEndpoint + "\" # edited\ncgroupDriver: cgroupfs\n"}},
		"a file of kubelet is gone": {nodes()["kubeadm 1.34, instance configuration"].files, func(h *Host) {
			os.Remove(filepath.Join(string(h.Root), instanceConfig))
		}, tree{configFile: kubeletConfig(containerd), flagsFile: kubeadmFlags(pause)}, "", nil},
		"the settings were edited": {old, func(h *Host) { h.put(SettingsFile, "listen: "+ours+"\nlog-level: debug\n") },
			old.with(tree{SettingsFile: "listen: " + ours + "\nlog-level: debug\n"}), "leave " + SettingsFile + ": it was changed", nil},
		"a plugin is there": {old, func(h *Host) { h.put("/etc/wasmproxy/plugins.d/10-a.wasm", "a") },
			old.with(tree{"/etc/wasmproxy/plugins.d/10-a.wasm": "a"}), "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			h, out := newHost(t, c.before)
			h.install(t)
			c.edit(h)
			for path, content := range c.byHand {
				h.byHand(t, out, "+++ "+path+"\n", changed(h.files(t)[path], content))
			}
			for path, content := range c.byHand {
				h.put(path, content)
			}
			out.Reset()
			h.uninstall(t)
			h.same(t, c.want)
			if !strings.Contains(out.String(), c.says) {
				t.Errorf("%q is not in\n%s", c.says, out)
			}
		})
	}
}

// changed returns the one line that differs, as a diff has it.
func changed(before, after string) string {
	was, is := strings.Split(before, "\n"), strings.Split(after, "\n")
	for i := range was {
		if was[i] != is[i] {
			return "-" + was[i] + "\n+" + is[i] + "\n"
		}
	}
	return "no line"
}

func (h *Host) put(path, content string) {
	if err := os.WriteFile(filepath.Join(string(h.Root), path), []byte(content), 0o644); err != nil {
		panic(err)
	}
}

// TestRefused: what cannot be changed safely is an error that names the file, and nothing is
// changed.
func TestRefused(t *testing.T) {
	node := nodes()["kubeadm 1.34, instance configuration"].files
	for want, files := range map[string]tree{
		"finding kubelet's endpoint: there is neither /var/lib/kubelet/config.yaml nor":                                                 {"/etc/hostname": "node\n"},
		"changing containerRuntimeEndpoint in /var/lib/kubelet/config.yaml: it is written in a form that this command cannot change":    {configFile: "containerRuntimeEndpoint: &a unix:///run/a.sock\nproviderID: *a\n"},
		"reading /var/lib/kubelet/config.yaml: ":                                                                                        {configFile: "a: [\n"},
		"kubelet's endpoint is " + containerd + ", and backend in /etc/wasmproxy/wasmproxy.yaml is unix:///run/other.sock: set backend": node.with(tree{SettingsFile: "backend: unix:///run/other.sock\n"}),
		"kubelet's image service is unix:///run/images.sock, and the proxy would ask " + containerd + " for images":                     nodes()["another image service"].files.with(tree{SettingsFile: "backend: " + containerd + "\n"}),
		"mode in /etc/wasmproxy/wasmproxy.yaml is docker, and this command changes kubelet's CRI endpoint only: start":                  node.with(tree{SettingsFile: "mode: docker\nbackend: unix:///run/docker.sock\n"}),
		`wasmproxy.yaml: unknown key "backnd"`:                                                                                          node.with(tree{SettingsFile: "backnd: unix:///run/other.sock\n"}),
		"kubelet's endpoint is the proxy's already, " + ours + ", and there is no /etc/wasmproxy/wasmproxy.yaml":                        {configFile: kubeletConfig(ours)},
		"backend: \"tcp://127.0.0.1:9\" is not unix://":                                                                                 {configFile: kubeletConfig("tcp://127.0.0.1:9")},
		"its version is 9, this program knows 1":                                                                                        node.with(tree{RecordFile: `{"version": 9}`}),
	} {
		h, _ := newHost(t, files)
		if err := h.Install(t.Context(), Consent{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		h.same(t, files)
	}
}

// TestUninstallWithoutRecord: a host without the proxy stays as it is, however often it is asked.
// Without a record, nothing is known about one whose kubelet has the proxy's endpoint.
func TestUninstallWithoutRecord(t *testing.T) {
	const by = ": change kubelet's endpoint by hand"
	for want, files := range map[string]tree{
		"":                                       {configFile: kubeletConfig(containerd)},
		"kubelet's endpoint is the proxy's" + by: {configFile: kubeletConfig(ours)},
		"unknown key \"lisssten\"":               {configFile: kubeletConfig(containerd), SettingsFile: "lisssten: " + ours + "\n"},
		"there is neither " + configFile:         {"/etc/hostname": "node\n"},
		"the proxy's" + by:                       {configFile: kubeletConfig("unix:///run/my.sock"), SettingsFile: "listen: unix:///run/my.sock\n"},
	} {
		h, out := newHost(t, files)
		err := h.Uninstall(t.Context(), Consent{})
		switch {
		case want == "" && (err != nil || !strings.Contains(out.String(), "wasmproxy is not installed on this host")):
			t.Errorf("error %v, it says %s", err, out)
		case want != "" && (err == nil || !strings.Contains(err.Error(), "there is no record of an installation, "+RecordFile) || !strings.Contains(err.Error(), want)):
			t.Errorf("got %v, want %q", err, want)
		}
		h.same(t, files)
	}
}

// TestInstalledByHand: the proxy is in kubelet's way already. Nothing of kubelet's changes, and uninstalling asks for the
// runtime of the proxy's settings.
func TestInstalledByHand(t *testing.T) {
	before := tree{configFile: kubeletConfig(ours), SettingsFile: "listen: " + ours + "\nbackend: " + containerd + "\n"}
	h, out := newHost(t, before)
	h.install(t)
	if got := h.files(t); got[configFile] != before[configFile] || got[SettingsFile] != before[SettingsFile] {
		t.Errorf("the files are %q", got)
	}
	h.byHand(t, out, "+containerRuntimeEndpoint: "+containerd+"\n")
	h.put(configFile, kubeletConfig(containerd))
	h.uninstall(t)
	h.same(t, before.with(tree{configFile: kubeletConfig(containerd)}))
}

// TestRootOfARunningHost: the files of a host that runs are not taken for an image.
func TestRootOfARunningHost(t *testing.T) {
	files := nodes()["kubeadm 1.34, instance configuration"].files
	h, _ := newHost(t, files)
	h.install(t)
	h.make(t, "/run/systemd/system/of-a-manager", "")
	before := h.files(t)
	for _, change := range []func(*Host, context.Context, Consent) error{(*Host).Install, (*Host).Uninstall} {
		if err := change(h, t.Context(), Consent{}); err == nil || !strings.Contains(err.Error(), "--enter-host") {
			t.Errorf("got %v", err)
		}
		h.same(t, before)
	}
}

// TestInstallWithAnyUmask: the proxy's group can read the settings, and nobody else the record.
func TestInstallWithAnyUmask(t *testing.T) {
	h, _ := newHost(t, nodes()["kubeadm 1.34, instance configuration"].files)
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	h.install(t)
	for dir, want := range map[string]fs.FileMode{"/etc/wasmproxy": 0o755, "/etc/wasmproxy/plugins.d": 0o755, "/usr/local/bin": 0o755, recordDir: 0o700} {
		info, err := os.Stat(h.Root.Under(dir))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s: mode %v, want %v", dir, got, want)
		}
	}
}
