package host

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/runtime/bypass"
	"github.com/wasmproxy/wasmproxy/runtime/config"
)

// TestUninstallWrongSettings: a mistake in the settings does not keep the proxy on the host.
func TestUninstallWrongSettings(t *testing.T) {
	before := nodes()["kubeadm 1.34, instance configuration"].files
	h, out := newHost(t, before)
	h.install(t)
	wrong := "lisssten: " + ours + "\n"
	h.put(SettingsFile, wrong)
	h.uninstall(t)
	h.same(t, before.with(tree{SettingsFile: wrong}))
	if want := `because the settings are wrong: `; !strings.Contains(out.String(), want) || !strings.Contains(out.String(), `unknown key "lisssten"`) {
		t.Errorf("%q is not in\n%s", want, out)
	}
}

// TestInstallAfterRewrite: a file of kubelet that was written again with the runtime's endpoint,
// and then changed by a second installation, comes back as it was written again. One that kept the proxy's endpoint
// somewhere is left to the operator.
func TestInstallAfterRewrite(t *testing.T) {
	images := func(s string) string { return "imageServiceEndpoint: " + s + "\n" }
	docker := "unix:///run/cri-dockerd.sock"
	for name, c := range map[string]struct{ before, rewritten, want, byHand tree }{
		"by kubeadm": {
			before:    tree{configFile: kubeletConfig(containerd), instanceConfig: instance(containerd)},
			rewritten: tree{configFile: kubeletConfig(containerd) + "maxPods: 50\n"},
		},
		"with another runtime": {
			before:    tree{configFile: kubeletConfig(docker), instanceConfig: instance(docker)},
			rewritten: tree{configFile: kubeletConfig(containerd), SettingsFile: "listen: " + ours + "\nbackend: " + containerd + "\n"},
			want:      tree{configFile: kubeletConfig(containerd), instanceConfig: instance(docker), SettingsFile: "listen: " + ours + "\nbackend: " + containerd + "\n"},
		},
		"with another runtime, and a new file has the proxy's endpoint": {
			before: tree{configFile: kubeletConfig(docker)},
			rewritten: tree{configFile: kubeletConfig(containerd), instanceConfig: instance(ours),
				SettingsFile: "listen: " + ours + "\nbackend: " + containerd + "\n"},
			byHand: tree{instanceConfig: instance(containerd)},
			want: tree{configFile: kubeletConfig(containerd), instanceConfig: instance(containerd),
				SettingsFile: "listen: " + ours + "\nbackend: " + containerd + "\n"},
		},
		"one key has the proxy's endpoint": {
			before:    tree{configFile: kubeletConfig(containerd) + images("unix:///run/images.sock")},
			rewritten: tree{configFile: kubeletConfig(containerd) + images(ours) + "maxPods: 50\n"},
			byHand:    tree{configFile: kubeletConfig(containerd) + images("unix:///run/images.sock") + "maxPods: 50\n"},
			want:      tree{configFile: kubeletConfig(containerd) + images("unix:///run/images.sock") + "maxPods: 50\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, out := newHost(t, c.before)
			h.install(t)
			for path, content := range c.rewritten {
				h.put(path, content)
			}
			h.install(t)
			if got, _ := effective(t, h.files(t)); got != ours {
				t.Fatalf("kubelet's endpoint is %s", got)
			}
			for path, content := range c.byHand {
				h.byHand(t, out, "+++ "+path+"\n", "+containerRuntimeEndpoint: ")
				h.put(path, content)
			}
			h.uninstall(t)
			want := c.want
			if want == nil {
				want = c.before.with(c.rewritten)
			}
			h.same(t, want)
		})
	}
}

// TestUninstallBytes: a file that is not UTF-8 comes back byte for byte.
func TestUninstallBytes(t *testing.T) {
	before := tree{configFile: kubeletConfig(""), flagsFile: "# caf\xe9\n" + kubeadmFlags("--container-runtime-endpoint="+containerd)}
	h, _ := newHost(t, before)
	h.install(t)
	h.uninstall(t)
	h.same(t, before)
}

// TestInstallEndsBypass: an installation ends the bypass of an unfinished uninstallation, and
// leaves one of the operator's.
func TestInstallEndsBypass(t *testing.T) {
	for why, stays := range map[string]bool{reason: false, "INC-1": true} {
		h, out := newHost(t, nodes()["kubeadm 1.34, instance configuration"].files)
		h.install(t)
		file := config.Default().BypassFile
		if err := os.MkdirAll(filepath.Dir(h.Root.Under(file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := bypass.Make(h.Root.Under(file), why); err != nil {
			t.Fatal(err)
		}
		out.Reset()
		h.install(t)
		if _, err := os.Stat(h.Root.Under(file)); (err == nil) != stays || strings.Contains(out.String(), "remove "+file) == stays {
			t.Errorf("reason %q: %v, it says\n%s", why, err, out)
		}
	}
}

// TestInstallPackagedAfterPlain: the units and the program of an installation without a package
// would hide the package's. They go, unless they were edited, wherever the installation ends.
func TestInstallPackagedAfterPlain(t *testing.T) {
	before := nodes()["kubeadm 1.34, instance configuration"].files
	packaged := tree{
		packagedDir + "/wasmproxy.service": "[Service]\nExecStart=/usr/bin/wasmproxy serve\n[Install]\nWantedBy=multi-user.target\n",
		packagedDir + "/wasmproxy.socket":  "[Socket]\nListenStream=/run/wasmproxy/wasmproxy.sock\n[Install]\nWantedBy=sockets.target\n",
	}
	for n := 1; ; n++ {
		plain, _ := newHost(t, before)
		plain.install(t)
		h, _ := newHost(t, plain.files(t).with(packaged))
		_, err := h.crashAt(n, h.Install, t.Context())
		h.install(t)
		files := h.files(t)
		for _, path := range []string{programFile, unitDir + "/wasmproxy.service", unitDir + "/wasmproxy.socket"} {
			if _, has := files[path]; has {
				t.Errorf("ended at step %d: there is %s", n, path)
			}
		}
		h.uninstall(t)
		h.same(t, before.with(packaged))
		if err == nil {
			break
		}
	}
	h, _ := newHost(t, before)
	h.install(t)
	edited := h.files(t).with(packaged)
	edited[unitDir+"/wasmproxy.service"] += "# edited\n"
	h, _ = newHost(t, edited)
	h.install(t)
	if h.files(t)[unitDir+"/wasmproxy.service"] != edited[unitDir+"/wasmproxy.service"] {
		t.Error("an edited unit was removed")
	}
}

// fakeSystemctl puts a systemctl before systemd's, on whose units a test must not rely. It
// writes its calls to the file that is returned.
func fakeSystemctl(t *testing.T, script string) (calls string) {
	t.Helper()
	dir := t.TempDir()
	calls = filepath.Join(dir, "calls")
	if err := os.WriteFile(filepath.Join(dir, "systemctl"), []byte("#!/bin/sh\necho \"$*\" >>"+calls+"\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return calls
}

// TestPackageRemovalConnected: without a record, a package is not removed while the socket is
// used.
func TestPackageRemovalConnected(t *testing.T) {
	root := t.TempDir()
	dir, err := os.MkdirTemp("", "wp")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := dir + "/s"
	calls := fakeSystemctl(t, "[ \"$1\" != show ] || echo 'Listen="+path+" (Stream)'\n")
	if err := os.MkdirAll(root+"/run/systemd/system", 0o755); err != nil {
		t.Fatal(err)
	}
	remove := func() (string, error) {
		cmd := exec.CommandContext(t.Context(), "sh", "../../deploy/packages/preremove.sh", "remove")
		cmd.Env = append(os.Environ(), "DPKG_ROOT="+root)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	out, err := remove()
	if got, _ := os.ReadFile(calls); err == nil || !strings.Contains(out, "is connected to "+path) || strings.Contains(string(got), "disable") {
		t.Errorf("error %v, it says %q; systemctl was called with\n%s", err, out, got)
	}
	conn.Close()
	accepted.Close()
	out, err = remove()
	if got, _ := os.ReadFile(calls); err != nil || !strings.Contains(string(got), "disable --now wasmproxy.socket wasmproxy.service") {
		t.Errorf("error %v, it says %q; systemctl was called with\n%s", err, out, got)
	}
}

// TestUninstallRemovesNodeFeatures: the labels that the settings' file gives the node go with the proxy.
func TestUninstallRemovesNodeFeatures(t *testing.T) {
	const file = "/etc/kubernetes/node-feature-discovery/features.d/wasmproxy"
	before := nodes()["kubeadm 1.34, instance configuration"].files
	h, out := newHost(t, before.with(tree{file: "feature.node.kubernetes.io/wasmproxy-handler.runc=true\n"}))
	h.install(t)
	settings := "node-features-file: " + file + "\n"
	h.put(SettingsFile, settings)
	h.uninstall(t)
	h.same(t, before.with(tree{SettingsFile: settings}))
	if want := "remove " + file; !strings.Contains(out.String(), want) {
		t.Errorf("%q is not in\n%s", want, out)
	}
}

// TestChangedMeanwhile: what another program writes into a file while the plan is agreed to, and carried out, stays.
func TestChangedMeanwhile(t *testing.T) {
	before := tree{configFile: kubeletConfig(containerd), flagsFile: kubeadmFlags(pause)}
	edited := kubeletConfig(containerd) + "maxPods: 50\n"
	for name, change := range map[string]func(*Host, context.Context, Consent) error{"install": (*Host).Install, "uninstall": (*Host).Uninstall} {
		t.Run(name, func(t *testing.T) {
			h, _ := newHost(t, before)
			if name == "uninstall" {
				h.install(t)
			}
			err := change(h, t.Context(), Consent{Confirm: func() (bool, error) {
				h.put(configFile, edited)
				return true, nil
			}})
			if err == nil || !strings.Contains(err.Error(), configFile+" was changed after this command had read it") {
				t.Errorf("got %v", err)
			}
			if got := h.files(t)[configFile]; got != edited {
				t.Errorf("the file is\n%s", got)
			}
			if err := change(h, t.Context(), Consent{}); err != nil {
				t.Fatal(err)
			}
			want := map[string]string{"install": ours, "uninstall": containerd}[name]
			if got, _ := effective(t, h.files(t)); got != want || !strings.Contains(h.files(t)[configFile], "maxPods: 50\n") {
				t.Errorf("kubelet's endpoint is %s, in\n%s", got, h.files(t)[configFile])
			}
		})
	}
}

// TestDamagedRecord: the error says what to do, and that ends with the files as they were.
func TestDamagedRecord(t *testing.T) {
	before := nodes()["kubeadm 1.34, instance configuration"].files
	h, out := newHost(t, before)
	h.install(t)
	settings := tree{SettingsFile: h.files(t)[SettingsFile]}
	h.put(RecordFile, `{"version": 1, "listen": "unix`)
	installed := h.files(t)
	for name, do := range map[string]func(context.Context, Consent) error{"install": h.Install, "uninstall": h.Uninstall} {
		err := do(t.Context(), Consent{})
		if err == nil || !strings.Contains(err.Error(), "put back a copy of it if you have one, or else remove it and run wasmproxy host install") {
			t.Errorf("%s: %v", name, err)
		}
		h.same(t, installed)
	}
	if err := os.Remove(h.Root.Under(RecordFile)); err != nil {
		t.Fatal(err)
	}
	h.install(t)
	h.byHand(t, out, containerd)
	for path, content := range before {
		h.put(path, content)
	}
	h.uninstall(t)
	h.sameFor(t, before.with(settings).with(tree{RecordFile: ""}))
}
