package host

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	extraFile  = "/etc/default/kubelet"
	unitFile   = "/usr/lib/systemd/system/kubelet.service"
	dropInFile = "/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf"
	ownDropIn  = "/etc/systemd/system/kubelet.service.d/20-own.conf"
)

// kubeadmUnit are the files of the packages kubelet and kubeadm.
var kubeadmUnit = tree{
	unitFile: "[Service]\nExecStart=/usr/bin/kubelet\nRestart=always\n",
	dropInFile: "[Service]\nEnvironment=\"KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml\"\nEnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env\n" +
		"EnvironmentFile=-/etc/default/kubelet\nExecStart=\nExecStart=/usr/bin/kubelet $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS\n",
}

// TestSpellings: each way to write the flag that systemd and kubelet understand is found, changed in place, and taken
// back. The text has the endpoint as %s.
func TestSpellings(t *testing.T) {
	const start = "[Service]\nExecStart=\n"
	for name, c := range map[string]struct{ path, text string }{
		"plain":                           {extraFile, "KUBELET_EXTRA_ARGS=--v=2 --container-runtime-endpoint=%s\n"},
		"in double quotes":                {extraFile, "KUBELET_EXTRA_ARGS=\"--container-runtime-endpoint=%s --v=2\"\n"},
		"quoted value":                    {extraFile, "KUBELET_EXTRA_ARGS=--v=2 --container-runtime-endpoint=\"%s\"\n"},
		"single-quoted value":             {extraFile, "KUBELET_EXTRA_ARGS=--container-runtime-endpoint='%s' --v=2\n"},
		"quotes in quotes":                {extraFile, "KUBELET_EXTRA_ARGS=\"--v=2 --container-runtime-endpoint='%s'\"\n"},
		"escaped quotes":                  {extraFile, "KUBELET_EXTRA_ARGS=\"--container-runtime-endpoint=\\\"%s\\\"\"\n"},
		"value as a word":                 {extraFile, "KUBELET_EXTRA_ARGS=--container-runtime-endpoint %s\n"},
		"underscores":                     {extraFile, "KUBELET_EXTRA_ARGS=--container_runtime_endpoint=%s\n"},
		"continued in an environment":     {extraFile, "KUBELET_EXTRA_ARGS=\"--v=2 \\\n  --container-runtime-endpoint=%s \\\n  --foo\"\n"},
		"beside a comment with ;":         {extraFile, ";KUBELET_EXTRA_ARGS=--container-runtime-endpoint=unix:///run/old.sock\nKUBELET_EXTRA_ARGS=--container-runtime-endpoint=%s\n"},
		"the last variable counts":        {extraFile, "KUBELET_EXTRA_ARGS=--v=2\nKUBELET_EXTRA_ARGS=--container-runtime-endpoint=%s\n"},
		"carriage returns":                {extraFile, "KUBELET_EXTRA_ARGS=--container-runtime-endpoint=%s\r\n"},
		"continued in a unit":             {ownDropIn, start + "ExecStart=/usr/bin/kubelet --config=/var/lib/kubelet/config.yaml \\\n  # why\n  --container-runtime-endpoint=%s \\\n  --v=2\n"},
		"whole word quoted in a unit":     {ownDropIn, start + "ExecStart=/usr/bin/kubelet --config=/var/lib/kubelet/config.yaml \"--container-runtime-endpoint=%s\"\n"},
		"value quoted in a unit":          {ownDropIn, start + "ExecStart=/usr/bin/kubelet --config=/var/lib/kubelet/config.yaml --container-runtime-endpoint=\"%s\" --v=2\n"},
		"beside a comment in a unit":      {ownDropIn, start + "; ExecStart=/usr/bin/kubelet --container-runtime-endpoint=unix:///run/old.sock\nExecStart=/usr/bin/kubelet --config=/var/lib/kubelet/config.yaml --container-runtime-endpoint=%s\n"},
		"in Environment=":                 {ownDropIn, "[Service]\nEnvironment=\"KUBELET_EXTRA_ARGS=--v=2 --container-runtime-endpoint=%s\" OTHER=x\n"},
		"a word in Environment=":          {ownDropIn, "[Service]\nEnvironment=KUBELET_EXTRA_ARGS=--container-runtime-endpoint=%s\n"},
		"prefixes of the program":         {ownDropIn, start + "ExecStart=-+/usr/bin/kubelet --config=/var/lib/kubelet/config.yaml --container-runtime-endpoint=%s\n"},
		"started through another program": {ownDropIn, start + "ExecStart=/usr/bin/podman run kubelet:1.36 --config=/var/lib/kubelet/config.yaml --container-runtime-endpoint=%s\n"},
	} {
		t.Run(name, func(t *testing.T) {
			with := func(endpoint string) tree {
				return kubeadmUnit.with(tree{configFile: kubeletConfig(""), c.path: fmt.Sprintf(c.text, endpoint)})
			}
			before, installed := with(crio), with(crioListen)
			h, _ := newHost(t, before)
			h.install(t)
			h.sameFor(t, installed)
			proxySettings(t, h, crio, crioListen, "")
			h.install(t)
			h.sameFor(t, installed)
			h.uninstall(t)
			h.same(t, before)
		})
	}
}

// TestEnvironmentFilePattern: files that EnvironmentFile= names by a pattern are found.
func TestEnvironmentFilePattern(t *testing.T) {
	with := func(endpoint string) tree {
		return kubeadmUnit.with(tree{configFile: kubeletConfig(""), ownDropIn: "[Service]\nEnvironmentFile=-/etc/kubelet.d/*.env\n",
			"/etc/kubelet.d/10-args.env": "KUBELET_EXTRA_ARGS=--container-runtime-endpoint=" + endpoint + "\n"})
	}
	before := with(crio)
	h, _ := newHost(t, before)
	h.install(t)
	h.sameFor(t, with(crioListen))
	h.uninstall(t)
	h.same(t, before)
}

// TestFlagTwice: the last flag counts, and all of those that kubelet gets are changed.
func TestFlagTwice(t *testing.T) {
	with := func(one, other string) tree {
		return kubeadmUnit.with(tree{configFile: kubeletConfig(""), flagsFile: kubeadmFlags("--container-runtime-endpoint=" + one),
			extraFile: "KUBELET_EXTRA_ARGS=--container-runtime-endpoint=" + other + "\nOTHER=--container-runtime-endpoint=" + one + "\n"})
	}
	before := with(containerd, "unix:///run/third.sock")
	h, _ := newHost(t, before)
	h.install(t)
	proxySettings(t, h, "unix:///run/third.sock", ours, "")
	if got, _ := h.readKubelet(); got.runtime != ours || strings.Contains(h.files(t)[flagsFile], containerd) {
		t.Errorf("kubelet has %s, and %s", got.runtime, h.files(t)[flagsFile])
	}
	h.uninstall(t)
	h.same(t, before)
}

// TestNotUnderstood: where the option is there, and what kubelet makes of it is not sure, nothing is changed.
func TestNotUnderstood(t *testing.T) {
	start := func(command string) tree {
		return tree{configFile: kubeletConfig(containerd), ownDropIn: "[Service]\nExecStart=\nExecStart=" + command + "\n"}
	}
	extra := func(args string) tree {
		return tree{configFile: kubeletConfig(containerd), extraFile: "KUBELET_EXTRA_ARGS=" + args + "\n"}
	}
	for name, c := range map[string]struct {
		files tree
		want  string
	}{
		"one dash":               {extra("-container-runtime-endpoint=" + crio), "kubelet does not start with -container-runtime-endpoint, which has one dash: write two"},
		"one dash, another word": {extra("-container-runtime-endpoint " + crio), "kubelet does not start with -container-runtime-endpoint"},
		"no value":               {extra("--container-runtime-endpoint"), "in /etc/default/kubelet: --container-runtime-endpoint has no value"},
		"in a script":            {start(`/bin/sh -c "exec kubelet --container-runtime-endpoint=` + crio + `"`), "it is not known what kubelet makes of \"exec kubelet --container-runtime-endpoint=" + crio},
		"configuration of one":   {start(`/bin/sh -c "exec kubelet --config /etc/k.yaml"`), "it is not known what kubelet makes of \"exec kubelet --config /etc/k.yaml\""},
		"an open quote":          {start(`/usr/bin/kubelet --container-runtime-endpoint="` + crio), "reading ExecStart= in " + ownDropIn + ": a quote is not closed"},
		"a relative path":        {start(`/usr/bin/kubelet --config=config.yaml`), "--config=config.yaml is not an absolute path"},
		"value in two pieces":    {extra(`--container-runtime-endpoint=unix:///run/"crio"/crio.sock`), "changing kubelet's endpoint in /var/lib/kubelet/config.yaml and /etc/default/kubelet: it is written in a form that this command cannot change"},
		"value elsewhere": {tree{configFile: kubeletConfig(containerd), extraFile: "A=--container-runtime-endpoint\n",
			ownDropIn: "[Service]\nExecStart=\nExecStart=/usr/bin/kubelet $A " + crio + "\nEnvironmentFile=/etc/default/kubelet\n"}, "cannot change"},
		"no configuration":      {start("/usr/bin/kubelet --v=2"), "no flag and no file of kubelet has an endpoint"},
		"no file, but its name": {tree{extraFile: "KUBELET_EXTRA_ARGS=\n"}, "there is no configuration /var/lib/kubelet/config.yaml to add it to"},
	} {
		t.Run(name, func(t *testing.T) {
			before := kubeadmUnit.with(c.files)
			h, _ := newHost(t, before)
			if err := h.Install(t.Context(), Consent{}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			h.same(t, before)
		})
	}
}

// sameFor requires that files which were there before are equal to those.
func (h *Host) sameFor(t *testing.T, want tree) {
	t.Helper()
	got := h.files(t)
	for path, content := range want {
		if got[path] != content {
			t.Errorf("%s is\n%s\nwant\n%s", path, got[path], content)
		}
	}
}

// TestConfigDir: of several configurations, the last one that has the key counts, also with an empty value. Each that
// has an endpoint is changed, and kubelet's default is replaced where it comes from.
func TestConfigDir(t *testing.T) {
	const dir = "/etc/kubernetes/kubelet.conf.d/"
	head := "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
	yaml := func(endpoint string) string { return head + "containerRuntimeEndpoint: " + endpoint + "\n" }
	unit := kubeadmUnit.with(tree{ownDropIn: "[Service]\nExecStart=\nExecStart=/usr/bin/kubelet --config=/var/lib/kubelet/config.yaml --config-dir=" + strings.TrimSuffix(dir, "/") + "\n"})
	for name, c := range map[string]struct {
		before, after tree
		runtime       string
	}{
		"a drop-in wins": {
			tree{configFile: yaml(containerd), dir + "10-a.conf": yaml("unix:///run/a.sock"), dir + "20-b.conf": head + "maxPods: 9\n", dir + "30-c.yaml": yaml("unix:///run/not-read.sock")},
			tree{configFile: yaml(ours), dir + "10-a.conf": yaml(ours), dir + "20-b.conf": head + "maxPods: 9\n", dir + "30-c.yaml": yaml("unix:///run/not-read.sock")}, "unix:///run/a.sock",
		},
		"in a directory of it, by name": {
			tree{configFile: yaml(containerd), dir + "50.conf": yaml("unix:///run/a.sock"), dir + "90/a.conf": yaml(crio)},
			tree{configFile: yaml(crioListen), dir + "50.conf": yaml(crioListen), dir + "90/a.conf": yaml(crioListen)}, crio,
		},
		"JSON": {
			tree{configFile: kubeletConfig(""), dir + "a.conf": "{\n\t\"kind\": \"KubeletConfiguration\",\n\t\"containerRuntimeEndpoint\":\"" + crio + "\"\n}\n"},
			tree{configFile: kubeletConfig(""), dir + "a.conf": "{\n\t\"kind\": \"KubeletConfiguration\",\n\t\"containerRuntimeEndpoint\":\"" + crioListen + "\"\n}\n"}, crio,
		},
		"an empty value": {
			tree{configFile: yaml(crio), dir + "a.conf": yaml(`""`)},
			tree{configFile: yaml(ours), dir + "a.conf": yaml(`"` + ours + `"`)}, DefaultEndpoint,
		},
		"no endpoint at all": {
			tree{configFile: head, dir + "a.conf": head},
			tree{configFile: yaml(ours), dir + "a.conf": head}, DefaultEndpoint,
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := unit.with(c.before)
			h, _ := newHost(t, before)
			h.install(t)
			h.sameFor(t, c.after)
			if k, err := h.readKubelet(); err != nil || !strings.HasPrefix(k.runtime, "unix:///run/wasmproxy/") {
				t.Errorf("kubelet has %+v, %v", k, err)
			}
			if r, err := loadRecord(h.Root); err != nil || r.Runtime != c.runtime {
				t.Errorf("the runtime is %+v, %v", r, err)
			}
			h.uninstall(t)
			h.same(t, before)
		})
	}
}

// TestConfigurationForms: the endpoint is changed in place or added, in YAML and in JSON.
func TestConfigurationForms(t *testing.T) {
	for name, c := range map[string]struct{ before, after string }{
		"JSON without it":      {"{\n    \"kind\": \"K\"\n}", "{\n    \"containerRuntimeEndpoint\": \"" + ours + "\",\n    \"kind\": \"K\"\n}"},
		"JSON on a line":       {`{"maxPods":9}`, `{"containerRuntimeEndpoint": "` + ours + `", "maxPods":9}`},
		"JSON, empty value":    {`{"containerRuntimeEndpoint":"","maxPods":9}`, `{"containerRuntimeEndpoint":"` + ours + `","maxPods":9}`},
		"JSON, null":           {`{"containerRuntimeEndpoint":null,"maxPods":9}`, `{"containerRuntimeEndpoint":"` + ours + `","maxPods":9}`},
		"JSON, nested key too": {`{"a":{"containerRuntimeEndpoint":"x"},"containerRuntimeEndpoint":"` + containerd + `"}`, `{"a":{"containerRuntimeEndpoint":"x"},"containerRuntimeEndpoint":"` + ours + `"}`},
		"YAML in braces":       {"{maxPods: 9, containerRuntimeEndpoint: '" + containerd + "'} # c\n", "{maxPods: 9, containerRuntimeEndpoint: '" + ours + "'} # c\n"},
		"a quoted key":         {"\"containerRuntimeEndpoint\" : " + containerd + " # ü\n", "\"containerRuntimeEndpoint\" : " + ours + " # ü\n"},
		"a marker before it":   {"# x\n---\ncontainerRuntimeEndpoint: \"" + containerd + "\"\nfoo: bar", "# x\n---\ncontainerRuntimeEndpoint: \"" + ours + "\"\nfoo: bar"},
		"a list before it":     {"a:\n- 1\n- containerRuntimeEndpoint: x\ncontainerRuntimeEndpoint: " + containerd + "\n", "a:\n- 1\n- containerRuntimeEndpoint: x\ncontainerRuntimeEndpoint: " + ours + "\n"},
		"a comment before it":  {"# containerRuntimeEndpoint: x\ncontainerRuntimeEndpoint: " + containerd + "\n", "# containerRuntimeEndpoint: x\ncontainerRuntimeEndpoint: " + ours + "\n"},
		"an alias":             {"providerID: &a " + containerd + "\ncontainerRuntimeEndpoint: *a\n", "providerID: &a " + containerd + "\ncontainerRuntimeEndpoint: " + ours + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			h, _ := newHost(t, tree{configFile: c.before})
			h.install(t)
			h.sameFor(t, tree{configFile: c.after})
			h.uninstall(t)
			h.same(t, tree{configFile: c.before})
		})
	}
}

// TestConfigurationRefused: forms in which the endpoint cannot be changed alone.
func TestConfigurationRefused(t *testing.T) {
	for name, content := range map[string]string{
		"a block of text":   "containerRuntimeEndpoint: |-\n  " + containerd + "\n",
		"on the next line":  "containerRuntimeEndpoint:\n  " + containerd + "\nfoo: [\n",
		"two documents":     "maxPods: 9\n---\nmaxPods: 8\n",
		"escapes":           "containerRuntimeEndpoint: \"unix:\\/\\/\\/run/a.sock\"\n",
		"a tag and a value": "containerRuntimeEndpoint: !!str " + containerd + "\nfoo: [\n",
	} {
		before := tree{configFile: content}
		h, _ := newHost(t, before)
		if err := h.Install(t.Context(), Consent{}); err == nil {
			t.Errorf("%s: no error", name)
		}
		h.same(t, before)
	}
}

// TestReadOnly: a host whose /usr or /etc cannot be written stays as it is, and so do its units.
func TestReadOnly(t *testing.T) {
	before := nodes()["kubeadm 1.34, instance configuration"].files.with(kubeadmUnit).with(tree{"/usr/local/bin/x": "", "/etc/x": ""})
	for _, dir := range []string{"/etc", "/var/lib"} {
		h, _ := newHost(t, before)
		readOnly(t, string(h.Root)+dir)
		if err := h.Install(t.Context(), Consent{}); err == nil || !strings.Contains(err.Error(), "nothing was changed, because a file in "+dir) || !strings.Contains(err.Error(), "read-only file system") {
			t.Errorf("%s: got %v", dir, err)
		}
		h.same(t, before)
	}
}

// readOnly mounts a directory over itself, so that it cannot be written.
func readOnly(t *testing.T, dir string) {
	t.Helper()
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
}
