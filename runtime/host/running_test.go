package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/config"
)

// kubeletRuns are files of /proc: a kubelet with these flags, which started at this time.
func kubeletRuns(started time.Time, flags ...string) tree {
	return tree{
		"/proc/7/comm":     "kubelet\n",
		"/proc/7/cmdline":  strings.Join(append([]string{"/usr/bin/kubelet"}, flags...), "\x00") + "\x00",
		"/proc/7/stat":     "7 (kube let) S 1 7 7 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 500 0 0\n", // 5 s after the boot
		"/proc/stat":       fmt.Sprintf("cpu 1 2\nbtime %d\nprocesses 9\n", started.Unix()-5),
		"/proc/7/status":   "Name:\tkubelet\nUid:\t0\t0\t0\t0\n",
		"/proc/7/ns/pid":   "-> pid:[1]",
		"/proc/7/root":     "-> /",
		"/proc/1/ns/pid":   "-> pid:[1]",
		"/proc/1/root":     "-> /",
		"/proc/12345/comm": "bash\n",
	}
}

// TestInstallRefusesOtherFiles: the kubelet that runs has its endpoint from a file that the command does not know. It
// changes nothing, since a restart of kubelet would not help.
func TestInstallRefusesOtherFiles(t *testing.T) {
	old := tree{configFile: kubeletConfig(containerd), flagsFile: kubeadmFlags(pause)}
	flagged := tree{configFile: kubeletConfig(""), flagsFile: kubeadmFlags("--container-runtime-endpoint="+containerd, pause)}
	const config, endpoint = "--config=/var/lib/kubelet/config.yaml", "--container-runtime-endpoint="
	for name, c := range map[string]struct {
		files tree
		flags []string
		want  string
	}{
		"flag of another file":      {old, []string{config, endpoint + crio}, "kubelet runs with --container-runtime-endpoint=" + crio + ", which none of the files has that this command changes"},
		"other flag than the files": {flagged, []string{config, endpoint + crio}, "install the proxy by hand first, then change the flag"},
		"another configuration":     {old, []string{"--config", "/etc/kubernetes/kubelet.yaml"}, "kubelet runs with --config /etc/kubernetes/kubelet.yaml, and this command would change /var/lib/kubelet/config.yaml: give --kubelet-config /etc/kubernetes/kubelet.yaml"},
		"the configuration":         {old, []string{config}, ""},
		"the flag":                  {flagged, []string{config, endpoint + "unix:///run/containerd/containerd.sock"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.files.with(kubeletRuns(time.Now(), c.flags...))
			h, _ := newHost(t, before)
			err := h.Install(t.Context(), Consent{})
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %q", err, c.want)
				}
				h.same(t, before)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			h.install(t) // before kubelet was restarted
			h.uninstall(t)
			h.same(t, before)
		})
	}
}

// TestKubeletIsNotRestartedForEver: kubelet has started since its files have the proxy's endpoint, and is not connected.
// Another restart would not help.
func TestKubeletIsNotRestartedForEver(t *testing.T) {
	for name, c := range map[string]struct {
		started time.Time
		read    bool
	}{
		"before its files": {time.Now().Add(-time.Hour), false},
		"since":            {time.Now().Add(time.Hour), true},
	} {
		t.Run(name, func(t *testing.T) {
			h, out := newHost(t, nodes()["kubeadm 1.34, instance configuration"].files.with(kubeletRuns(c.started)))
			p := &installation{host: h}
			if err := p.plan(t.Context()); err != nil || p.read {
				t.Fatalf("kubelet has read what the command has not written: %v, error %v", p.read, err)
			}
			h.install(t)
			p = &installation{host: h, consent: Consent{RestartKubelet: true}}
			if err := p.plan(t.Context()); err != nil || p.read != c.read {
				t.Fatalf("read is %v, error %v", p.read, err)
			}
			h.Root, p.settings = "/", &config.Config{AdminSocket: t.TempDir() + "/admin.sock"}
			called := false
			h.step = func(step string) error {
				called = called || strings.HasPrefix(step, "systemctl")
				return errCrash
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // so that it does not wait
			if err := p.useEndpoint(ctx); err == nil || called == c.read {
				t.Errorf("error %v, systemctl was called: %v\n%s", err, called, out)
			}
		})
	}
}

// TestInstallAfterUninstall: kubelet's files have the runtime's endpoint again, and the kubelet that runs still has the
// proxy's. Another installation gives the files the proxy's.
func TestInstallAfterUninstall(t *testing.T) {
	before := nodes()["kubeadm 1.28, containerd"].files
	h, _ := newHost(t, before.with(kubeletRuns(time.Now().Add(-time.Hour), "--container-runtime-endpoint="+ours)))
	h.install(t)
	h.step = func(step string) error {
		if strings.Contains(step, "disable") { // kubelet is connected, and the service stays
			return errCrash
		}
		return nil
	}
	if err := h.Uninstall(t.Context(), Consent{}); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	h.step = nil
	if got, _ := effective(t, h.files(t)); got != containerd {
		t.Fatalf("uninstalling gave kubelet %s", got)
	}
	h.install(t)
	if got, _ := effective(t, h.files(t)); got != ours {
		t.Errorf("kubelet's endpoint is %s", got)
	}
}

// TestFlagChangedByHand: a file that the command does not know has the flag, and the operator has given it the proxy's
// endpoint. kubelet's other files stay as they are, and uninstalling asks for that flag before it changes anything.
func TestFlagChangedByHand(t *testing.T) {
	settings := tree{SettingsFile: "listen: " + ours + "\nbackend: " + crio + "\n"}
	for name, files := range map[string]tree{
		"no flag in the files":    {"/etc/systemd/system/kubelet.service": "[Service]\nEnvironmentFile=/etc/kubernetes/kubelet.env\nExecStart=/usr/bin/kubelet $KUBELET_ARGS\n"},
		"a flag that is not read": nodes()["kubeadm 1.28, containerd"].files,
	} {
		t.Run(name, func(t *testing.T) {
			before := files.with(settings).with(kubeletRuns(time.Now().Add(time.Hour), "--container-runtime-endpoint="+ours))
			h, _ := newHost(t, before)
			for range 2 {
				h.install(t)
				if got := h.files(t); got[flagsFile] != before[flagsFile] || got[configFile] != before[configFile] {
					t.Errorf("the files are %q", got)
				}
			}
			installed := h.files(t)
			want := "kubelet runs with --container-runtime-endpoint=" + ours + ", which none of the files has that this command changes: give the flag " + crio
			if err := h.Uninstall(t.Context(), Consent{}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
			h.same(t, installed)
			h.put("/proc/7/cmdline", "kubelet\x00--container-runtime-endpoint="+crio+"\x00")
			h.uninstall(t)
			h.same(t, before.with(tree{"/proc/7/cmdline": "kubelet\x00--container-runtime-endpoint=" + crio + "\x00"}))
		})
	}
}

// TestFlagWithoutSettings: nobody knows the runtime behind the endpoint that the operator has given the flag.
func TestFlagWithoutSettings(t *testing.T) {
	before := nodes()["kubeadm 1.28, containerd"].files.with(kubeletRuns(time.Now().Add(time.Hour), "--container-runtime-endpoint="+ours))
	h, _ := newHost(t, before)
	want := "kubelet's endpoint is the proxy's already, " + ours + ", and there is no " + SettingsFile
	if err := h.Install(t.Context(), Consent{}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	h.same(t, before)
}
