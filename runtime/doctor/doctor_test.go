package doctor_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wasmproxy/wasmproxy/deploy/systemd"
	"github.com/wasmproxy/wasmproxy/runtime/admin"
	"github.com/wasmproxy/wasmproxy/runtime/doctor"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

// TestHealthy has nothing to find, and makes every check but one, which needs calls.
func TestHealthy(t *testing.T) {
	n := newNode(t)
	n.start()
	r := doctor.Run(t.Context(), n.options)
	if len(r.Findings) > 0 {
		t.Errorf("a healthy node has findings:\n%s", findings(r))
	}
	if len(r.NotChecked) != 1 || r.NotChecked[0].Check != "plugin-uncalled" || len(r.Passed)+1 != len(doctor.Checks) {
		t.Errorf("not checked: %+v; passed: %q", r.NotChecked, r.Passed)
	}
	facts := []doctor.Fact{{"container runtime", "fakeRuntime 0.1.0"}, {"cgroup driver of the runtime", "systemd"}, {"cgroup version", "2"}}
	if !slices.Equal(r.Facts, facts) {
		t.Errorf("facts %+v", r.Facts)
	}
	n.pods(20)
	if r := doctor.Run(t.Context(), n.options); len(r.Findings)+len(r.NotChecked) > 0 {
		t.Errorf("after calls:\n%s%+v", findings(r), r.NotChecked)
	}
}

// plant is a misconfiguration. before changes a node before its daemon starts, after changes
// it then. want has a line for each finding, in the order of the table: its check, and a part
// of what it says.
type plant struct {
	before, after func(n *node)
	want          []string
}

var planted = map[string]plant{
	"the settings are wrong": {after: func(n *node) {
		n.options.Settings, n.options.SettingsErr = nil, errors.Join(errors.New(`config file /etc/wasmproxy/wasmproxy.yaml: unknown key "backnd"`), errors.New("drain-timeout: -1s is not greater than 0"))
	}, want: []string{`settings: settings: config file /etc/wasmproxy/wasmproxy.yaml: unknown key "backnd"`, "settings: settings: drain-timeout"}},
	"the settings file is changed": {after: func(n *node) {
		n.put("/etc/wasmproxy/wasmproxy.yaml", "drain-timeout: 4s\n")
	}, want: []string{"settings-active: /etc/wasmproxy/wasmproxy.yaml: it has other settings than the active ones"}},
	"the settings file is bad": {after: func(n *node) {
		n.put("/etc/wasmproxy/wasmproxy.yaml", "drain-timeout: 4\n")
	}, want: []string{"settings-active: /etc/wasmproxy/wasmproxy.yaml: it cannot be used: ", "proxy-ready: the running proxy: the settings file cannot be used: "}},
	"no proxy runs": {after: func(n *node) { n.stop() }, want: []string{"proxy-serves: " + ours}},
	"the runtime does not run": {after: func(n *node) {
		n.runtime.Stop()
		n.await(func(s *status.Status) bool { return len(s.NotReady) == 2 })
	}, want: []string{"proxy-ready: the running proxy: the container runtime does not answer", "proxy-ready: the running proxy: the pods of the container runtime have not been read", "backend-answers: " + containerd}},
	"the backend is the proxy": {after: func(n *node) {
		n.options.Settings.Backend = "unix:///run/b.sock"
		n.link("/run/b.sock", "/run/wasmproxy/wasmproxy.sock")
	}, want: []string{"backend-self: backend: unix:///run/b.sock leads to the proxy's own socket"}},
	"CRI-O by another suffix":    {after: func(n *node) { n.options.Settings.Backend = "unix:///var/run/crio/crio.sock" }, want: []string{"backend-answers: unix:///var/run/crio/crio.sock", "crio-socket: listen: the container runtime is CRI-O"}},
	"containerd's path is ours":  {after: func(n *node) { n.link("/run/containerd/containerd.sock", "/run/wasmproxy/wasmproxy.sock") }, want: []string{"backend-self: backend", "containerd-socket: /run/containerd/containerd.sock: it is the proxy's"}},
	"the bypass was left on":     {after: func(n *node) { n.put("/etc/wasmproxy/bypass", "incident 7\n"); n.settle() }, want: []string{"bypass: /etc/wasmproxy/bypass: plugins are bypassed since .*: incident 7"}},
	"cgroups are not mounted":    {after: func(n *node) { n.options.Settings.CgroupMode = "auto" }, want: []string{"cgroup-root: cgroup-root /sys/fs/cgroup, cgroup-mode auto: open cgroup root /sys/fs/cgroup: no cgroup file system is mounted"}},
	"cgroup-root does not exist": {after: func(n *node) { n.options.Settings.CgroupRoot = "/sys/fs/cgroups" }, want: []string{"cgroup-root: cgroup-root /sys/fs/cgroups"}},

	"kubelet's configuration names containerd": {after: func(n *node) {
		n.put("/var/lib/kubelet/config.yaml", "cgroupDriver: systemd\ncontainerRuntimeEndpoint: unix:/run/containerd/containerd.sock\n")
	}, want: []string{"kubelet-endpoint: /var/lib/kubelet/config.yaml: containerRuntimeEndpoint is unix:/run/containerd/containerd.sock; the proxy listens on " + ours}},
	"no file of kubelet names an endpoint": {after: func(n *node) { n.put("/var/lib/kubelet/config.yaml", "cgroupDriver: systemd\n") },
		want: []string{"kubelet-endpoint: /var/lib/kubelet/config.yaml: containerRuntimeEndpoint is unix:///run/containerd/containerd.sock"}},
	"the running kubelet has a flag": {after: func(n *node) {
		n.put(n.kubeletProc("cmdline"), "/usr/bin/kubelet\x00--container-runtime-endpoint\x00"+containerd+"\x00")
	}, want: []string{"kubelet-endpoint: /proc/.*/cmdline: --container-runtime-endpoint is " + containerd}},
	"a flag of kubeadm wins at the next start": {after: func(n *node) {
		n.must(os.RemoveAll(n.root + "/proc"))
		n.put("/var/lib/kubelet/kubeadm-flags.env", `KUBELET_KUBEADM_ARGS="--container-runtime-endpoint=`+containerd+`"`)
	}, want: []string{"kubelet-endpoint: /var/lib/kubelet/kubeadm-flags.env: --container-runtime-endpoint is " + containerd}},
	"kubeadm upgrade brings containerd back": {after: func(n *node) {
		n.put("/var/lib/kubelet/instance-config.yaml", "containerRuntimeEndpoint: "+containerd+"\n")
	}, want: []string{"kubelet-files: /var/lib/kubelet/instance-config.yaml: containerRuntimeEndpoint is " + containerd}},
	"kubelet has another image service": {after: func(n *node) {
		n.put("/var/lib/kubelet/config.yaml", "cgroupDriver: systemd\ncontainerRuntimeEndpoint: "+ours+"\nimageServiceEndpoint: "+containerd+"\n")
	}, want: []string{"kubelet-image-endpoint: /var/lib/kubelet/config.yaml: imageServiceEndpoint is " + containerd}},
	"kubelet was not restarted": {after: func(n *node) { n.disconnect() }, want: []string{"kubelet-connected: " + ours + ": kubelet, process .*, is not connected to the proxy"}},
	"somebody else is connected": {after: func(n *node) {
		n.must(os.Rename(n.root+filepath.Dir(n.kubeletProc("comm")), n.root+"/proc/999999999"))
		n.put(fmt.Sprintf("/proc/%d/comm", os.Getpid()), "crictl\n")
		n.link(fmt.Sprintf("/proc/%d/exe", os.Getpid()), n.root+"/usr/bin/wasmproxy")
	}, want: []string{"kubelet-connected: " + ours + ": kubelet, process 999999999, is not connected to the proxy; these are: doctor.test (PID "}},
	"a user has a process called kubelet": {after: func(n *node) {
		n.put("/proc/12/comm", "kubelet\n")
		n.put("/proc/12/status", "Name:\tkubelet\nUid:\t1000\t1000\t1000\t1000\n")
		n.put("/proc/12/cmdline", "kubelet\x00--container-runtime-endpoint="+containerd+"\x00")
	}},
	"kubelet of RKE2 restarts again and again": {after: func(n *node) {
		n.rke2()
		n.unitIs("rke2-agent.service", "activating", "auto-restart", 17, 0)
	}, want: []string{"kubelet-restarts: rke2-agent.service: it is activating (auto-restart)"}},
	"RKE2 starts before the proxy": {after: func(n *node) {
		n.rke2()
		n.units[systemd.ServiceName]["Before"] = "shutdown.target kubelet.service"
	}, want: []string{"unit-order: wasmproxy.service: Before= does not name rke2-agent.service"}},
	"kubelet waits for its next restart": {after: func(n *node) { n.unitIs("kubelet.service", "activating", "auto-restart", 17, 0) },
		want: []string{"kubelet-restarts: kubelet.service: it is activating (auto-restart), result exit-code, and systemd has restarted it 17 times"}},
	"kubelet was just restarted again": {after: func(n *node) { n.unitIs("kubelet.service", "active", "running", 17, 5*time.Second) },
		want: []string{"kubelet-restarts: kubelet.service: it is active (running), .*17 times, last 5s ago"}},
	"kubelet was restarted long ago": {after: func(n *node) { n.unitIs("kubelet.service", "active", "running", 17, time.Hour) }},
	"another program was installed": {after: func(n *node) {
		n.put("/usr/bin/wasmproxy (deleted)", "the program before")
		n.link(fmt.Sprintf("/proc/%d/exe", os.Getpid()), n.root+"/usr/bin/wasmproxy (deleted)")
	}, want: []string{"proxy-program: /usr/bin/wasmproxy: process .* runs another program than this file"}},
	"the program was removed": {after: func(n *node) {
		n.must(os.Rename(n.root+"/usr/bin/wasmproxy", n.root+"/usr/bin/wasmproxy (deleted)"))
		n.link(fmt.Sprintf("/proc/%d/exe", os.Getpid()), n.root+"/usr/bin/wasmproxy (deleted)")
	}, want: []string{"proxy-program: /usr/bin/wasmproxy: stat /usr/bin/wasmproxy: no such file or directory"}},
	"the program was renamed before another was installed": {after: func(n *node) {
		n.put("/usr/bin/wasmproxy.old", "the program before")
		n.link(fmt.Sprintf("/proc/%d/exe", os.Getpid()), n.root+"/usr/bin/wasmproxy.old")
	}, want: []string{"proxy-program: /usr/bin/wasmproxy: process .* runs another program than this file"}},
	"a link leads to another version": {after: func(n *node) {
		n.put("/opt/wasmproxy-1/wasmproxy", "version 1")
		n.put("/opt/wasmproxy-2/wasmproxy", "version 2")
		n.link(fmt.Sprintf("/proc/%d/exe", os.Getpid()), n.root+"/opt/wasmproxy-1/wasmproxy")
		n.link("/usr/bin/wasmproxy", "/opt/wasmproxy-2/wasmproxy")
	}, want: []string{"proxy-program: /usr/bin/wasmproxy: process .* runs another program than this file"}},
	"the unit names another program": {after: func(n *node) {
		n.put("/opt/wasmproxy/wasmproxy", "a program")
		n.units[systemd.ServiceName]["ExecStart"] = execStart("/opt/wasmproxy/wasmproxy")
	}, want: []string{"proxy-program: /opt/wasmproxy/wasmproxy: process .* runs another program than this file"}},
	"the program was installed again": {after: func(n *node) {
		n.put("/usr/bin/wasmproxy (deleted)", "the program")
		n.link(fmt.Sprintf("/proc/%d/exe", os.Getpid()), n.root+"/usr/bin/wasmproxy (deleted)")
	}},
	"a shell starts the program": {after: func(n *node) { n.units[systemd.ServiceName]["ExecStart"] = execStart("/bin/sh") }},
	"a shell starts the program, and another was installed": {after: func(n *node) {
		n.units[systemd.ServiceName]["ExecStart"] = execStart("/bin/sh")
		n.put("/usr/bin/wasmproxy (deleted)", "the program before")
		n.link(fmt.Sprintf("/proc/%d/exe", os.Getpid()), n.root+"/usr/bin/wasmproxy (deleted)")
	}, want: []string{"proxy-program: /usr/bin/wasmproxy: process .* runs another program than this file"}},
	"the proxy is not that of the unit": {after: func(n *node) {
		n.units[systemd.ServiceName]["MainPID"] = "1"
		n.put("/usr/bin/wasmproxy (deleted)", "the program before")
		n.link("/proc/1/exe", n.root+"/usr/bin/wasmproxy (deleted)")
	}},
	"kubelet has another cgroup driver": {after: func(n *node) {
		n.put("/var/lib/kubelet/config.yaml", "cgroupDriver: cgroupfs\ncontainerRuntimeEndpoint: "+ours+"\n")
	}, want: []string{"cgroup-driver: /var/lib/kubelet/config.yaml: cgroupDriver is cgroupfs; the container runtime's is systemd"}},

	"everyone may call the proxy":        {after: func(n *node) { n.chmod("/run/wasmproxy/wasmproxy.sock", 0o666) }, want: []string{"socket-permissions: /run/wasmproxy/wasmproxy.sock: its mode is 0666"}},
	"a group may ask the proxy":          {after: func(n *node) { n.chmod("/run/wasmproxy/admin.sock", 0o660) }, want: []string{"socket-permissions: /run/wasmproxy/admin.sock: its mode is 0660"}},
	"everyone may add plugins":           openDirectory("/etc/wasmproxy/plugins.d", "proxy-ready: the running proxy: plugin 10-quota: .* stays active"),
	"a group may register hook servers":  {after: func(n *node) { n.chmod("/etc/wasmproxy/hookserver.d", 0o775) }},
	"everyone may register hook servers": openDirectory("/etc/wasmproxy/hookserver.d"),
	"a group may change settings":        {after: func(n *node) { n.chmod("/etc/wasmproxy/wasmproxy.yaml", 0o664) }, want: []string{"trusted-files: /etc/wasmproxy/wasmproxy.yaml: .*is writable by its group"}},
	"the state is readable":              {after: func(n *node) { n.chmod("/run/wasmproxy/state", 0o755) }, want: []string{"private-directories: /run/wasmproxy/state: its mode is 0755"}},
	"the cache is somebody else's":       {after: func(n *node) { n.must(os.Chown(n.root+"/var/cache/wasmproxy", 65534, 65534)) }, want: []string{"private-directories: /var/cache/wasmproxy: it belongs to user 65534"}},
	"the cache's file system is small":   {after: func(n *node) { n.mountSmall("/var/cache/wasmproxy") }, want: []string{"disk-space: cache-dir /var/cache/wasmproxy: its file system has 1024 KiB left"}},

	"a plugin is no module": {before: func(n *node) { n.put("/etc/wasmproxy/plugins.d/20-bad.wasm", "text") },
		want: []string{"proxy-ready: the running proxy: plugin 20-bad: .*20-bad.wasm: is not a WebAssembly module.*; the plugin is not loaded", "plugin-files: plugin files: .*20-bad", "plugin-state: plugin 20-bad /etc/wasmproxy/plugins.d/20-bad.wasm: it is inactive"}},
	"a plugin that must not be ignored does not load": {before: func(n *node) {
		n.put("/etc/wasmproxy/plugins.d/20-bad.wasm", "text")
		n.put("/etc/wasmproxy/plugins.d/20-bad.json", `{"failure-policy":"Fail"}`)
	}, want: []string{"proxy-ready: the running proxy: plugin 20-bad: .*; the plugin is not loaded", "plugin-files: plugin files: .*20-bad", "plugin-state: plugin 20-bad .*: it is inactive"}},
	"a plugin's JSON file was cut off":               badFile(`{"dry-run": tr`, 0o644, 0, "is not JSON"),
	"a plugin's JSON file is empty":                  badFile("", 0o644, 0, "is empty"),
	"a plugin's JSON file has an unknown key":        badFile(`{"dryrun": true}`, 0o644, 0, `"dryrun"`),
	"a plugin's JSON file is writable for its group": badFile(`{"dry-run": true}`, 0o664, 0, "is writable by its group"),
	"a plugin's JSON file is somebody's":             badFile(`{"dry-run": true}`, 0o644, 65534, "belongs to user 65534"),
	"a plugin lacks a right": {before: func(n *node) { n.plugin("20-puller.wasm", "puller") },
		want: []string{"plugin-reach: plugin 20-puller: .*image"}},
	"a JSON file has no module": {before: func(n *node) { n.put("/etc/wasmproxy/plugins.d/20-gone.json", `{"enabled": false}`) },
		want: []string{"plugin-reach: plugin 20-gone: .*/20-gone.json: describes no plugin"}},
	"a match never fits": {before: func(n *node) {
		n.plugin("20-puller.wasm", "puller")
		n.put("/etc/wasmproxy/plugins.d/20-puller.json", `{"grant":["image"],"match":{"labels":{"app":"web"}}}`)
	}, want: []string{"plugin-reach: plugin 20-puller: plugin is never called in a hook: its match .*PreRemoveImage"}},
	"no pod matches": {before: func(n *node) {
		n.put("/etc/wasmproxy/plugins.d/10-quota.json", `{"match":{"labels":{"nobody":"has"}}}`)
	}, after: func(n *node) { n.pods(20) }, want: []string{"plugin-uncalled: plugin 10-quota: no hook of it was called, and 20 containers were created"}},
	"a hook server does not run": {before: func(n *node) {
		n.put("/etc/wasmproxy/hookserver.d/koordlet.json", `{"remote-endpoint":"/run/koordlet.sock","failure-policy":"Ignore","runtime-hooks":["PreRunPodSandbox"]}`)
	}, want: []string{"hook-servers: /etc/wasmproxy/hookserver.d/koordlet.json: remote-endpoint: dial unix /run/koordlet.sock"}},
	"a plugin fails again and again": {before: func(n *node) { n.plugin("20-trap.wasm", "trap") }, after: func(n *node) { n.pods(6) },
		want: []string{"plugin-breaker: plugin 20-trap: its circuit breaker is open; it failed last in PreRunPodSandbox: .*unreachable", "plugin-calls: plugin 20-trap: .* calls failed; the last one in "}},
	"a plugin fails now and then": {before: func(n *node) {
		n.plugin("20-trap.wasm", "trap")
		n.put("/etc/wasmproxy/plugins.d/20-trap.json", `{"runtime-hooks": ["PreCreateContainer"]}`)
	}, after: func(n *node) { n.pods(2) }, want: []string{"plugin-calls: plugin 20-trap: 2 of its 2 calls failed; the last one in PreCreateContainer: .*unreachable"}},
	"a plugin refuses pods": {before: func(n *node) { n.plugin("20-reject.wasm", "reject") }, after: func(n *node) { n.pods(3) },
		want: []string{"plugin-calls: plugin 20-reject: it refused 3 of the 3 calls that it could refuse"}},
	"two plugins want different values": {before: func(n *node) { n.plugin("20-other.wasm", "conflict") }, after: func(n *node) { n.pods(2) },
		want: []string{"plugin-calls: plugin 20-other: 2 of its 2 calls failed; .*(conflict)", "plugin-conflicts: plugin 20-other: 2 times"}},

	"the unit is not enabled": {after: func(n *node) { n.units[systemd.ServiceName]["WantedBy"] = "" }, want: []string{"unit-enabled: wasmproxy.service: the unit is not enabled"}},
	"the unit is masked":      {after: func(n *node) { n.units[systemd.SocketName] = map[string]string{"LoadState": "masked"} }, want: []string{"unit-enabled: wasmproxy.socket: the unit is masked"}},
	"there is no socket unit": {after: func(n *node) { n.units[systemd.SocketName] = map[string]string{"LoadState": "not-found"} }},
	"kubelet upholds the unit": {after: func(n *node) {
		n.units[systemd.ServiceName]["WantedBy"], n.units[systemd.ServiceName]["UpheldBy"] = "", "kubelet.service"
	}},
	"the unit starts after kubelet": {after: func(n *node) { n.units[systemd.ServiceName]["Before"] = "shutdown.target" },
		want: []string{"unit-order: wasmproxy.service: Before= does not name kubelet.service"}},
	"kubelet's unit has another name": {after: func(n *node) {
		n.units["kubelet.service"]["Id"] = "snap.kubelet.service"
		n.units[systemd.SocketName]["Before"] = "snap.kubelet.service"
	}},
	"the clock is not synchronized": {after: func(n *node) { n.options.Clock = func() (bool, error) { return false, nil } }, want: []string{"clock: kernel"}},
	"crictl calls containerd":       {after: func(n *node) { n.put("/etc/crictl.yaml", "runtime-endpoint: "+containerd+"\n") }, want: []string{"crictl: /etc/crictl.yaml: runtime-endpoint is " + containerd}},
}

// openDirectory lets everyone write into one that plugins come from. ofPlugins is what the proxy says of each of its plugins.
func openDirectory(dir string, ofPlugins ...string) plant {
	return plant{after: func(n *node) {
		n.chmod(dir, 0o777)
		n.awaitNotReady(dir)
	}, want: slices.Concat([]string{"proxy-ready: the running proxy: a directory of plugins .*" + dir + ": is writable by everyone"}, ofPlugins, []string{
		"trusted-files: " + dir + ": .*is writable by everyone",
		"plugin-files: plugin files: .*is writable by everyone",
	})}
}

// badFile replaces the JSON file of an active plugin by one that does not count. The version before it stays.
func badFile(content string, mode fs.FileMode, owner int, what string) plant {
	return plant{after: func(n *node) {
		n.put("/new.json", content)
		n.chmod("/new.json", mode)
		n.must(os.Chown(n.root+"/new.json", owner, owner))
		n.must(os.Rename(n.root+"/new.json", n.root+"/etc/wasmproxy/plugins.d/10-quota.json"))
		n.awaitNotReady("10-quota.json")
	}, want: []string{
		"proxy-ready: the running proxy: plugin 10-quota: .*10-quota.json: .*" + what + ".*; version 1.0.0 of .* stays active",
		"plugin-files: plugin files: .*10-quota.json: .*" + what,
	}}
}

// TestPlanted plants each misconfiguration on a healthy node: exactly it is found, where it is.
func TestPlanted(t *testing.T) {
	for name, test := range planted {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			if test.before != nil {
				test.before(n)
			}
			n.start()
			if test.after != nil {
				test.after(n)
			}
			r := doctor.Run(t.Context(), n.options)
			expect(t, r, test.want)
		})
	}
}

// expect compares findings. Each says what it causes and what to do.
func expect(t *testing.T, r *doctor.Report, want []string) {
	t.Helper()
	var got []string
	for _, f := range r.Findings {
		got = append(got, f.Check+": "+f.Where+": "+f.Found)
		if f.Effect == "" || f.Remedy == "" || f.Severity == "" {
			t.Errorf("a finding lacks a text: %+v", f)
		}
	}
	if !slices.EqualFunc(got, want, like) {
		t.Errorf("found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// like reports whether a text begins with the parts of another one, between which .* stands.
func like(text, parts string) bool {
	for i, part := range strings.Split(parts, ".*") {
		at := strings.Index(text, part)
		if at < 0 || i == 0 && at > 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return true
}

// TestWithoutProxy: what a running proxy would tell is not checked, and the reason says so.
func TestWithoutProxy(t *testing.T) {
	n := newNode(t)
	r := doctor.Run(t.Context(), n.options)
	expect(t, r, []string{"proxy-serves: " + ours})
	want := []string{"settings-active", "proxy-ready", "proxy-program", "kubelet-connected", "plugin-state", "plugin-breaker", "plugin-calls", "plugin-uncalled", "plugin-conflicts", "cgroup-fights", "cgroup-writes"}
	var got []string
	for _, c := range r.NotChecked {
		got = append(got, c.Check)
		if !strings.Contains(c.Reason, "there is no admin socket /run/wasmproxy/admin.sock") {
			t.Errorf("%s is not checked since %q", c.Check, c.Reason)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("not checked: %q, want %q", got, want)
	}
}

// TestEmptyHost has neither kubelet nor systemd nor a runtime: nothing of them passes.
func TestEmptyHost(t *testing.T) {
	n := newNode(t)
	for _, path := range []string{"/proc", "/var/lib/kubelet", "/run/systemd"} {
		n.must(os.RemoveAll(n.root + path))
	}
	r := doctor.Run(t.Context(), n.options)
	for _, c := range doctor.Checks {
		if (strings.HasPrefix(c.ID, "kubelet-") || strings.HasPrefix(c.ID, "unit-") || c.ID == "cgroup-driver") && slices.Contains(r.Passed, c.ID) {
			t.Errorf("%s passes on a host without what it examines", c.ID)
		}
	}
}

// TestPathsOfTheHost: paths are told as the host has them. A name that only begins as the root does stays, as hostports.json
// with --root /host.
func TestPathsOfTheHost(t *testing.T) {
	wrong := errors.New("/host/etc/wasmproxy/plugins.d/hostports.json: not valid")
	r := doctor.Run(t.Context(), doctor.Options{Root: "/host", SettingsErr: wrong})
	if len(r.Findings) != 1 || r.Findings[0].Found != "/etc/wasmproxy/plugins.d/hostports.json: not valid" {
		t.Errorf("the findings are %+v", r.Findings)
	}
}

// TestSystemdIsNotAsked: what only systemd knows is not checked, and the reason says so.
func TestSystemdIsNotAsked(t *testing.T) {
	n := newNode(t)
	n.start()
	expectUnchecked := func(reason string) {
		t.Helper()
		var got []string
		for _, c := range doctor.Run(t.Context(), n.options).NotChecked {
			if strings.HasPrefix(c.Reason, reason) {
				got = append(got, c.Check)
			}
		}
		if want := []string{"proxy-program", "kubelet-restarts", "unit-enabled", "unit-order"}; !slices.Equal(got, want) {
			t.Errorf("since %q not checked: %q, want %q", reason, got, want)
		}
	}
	n.options.Unit = nil
	expectUnchecked("systemd of the host is not asked with --root")
	n.must(os.RemoveAll(n.root + "/run/systemd"))
	expectUnchecked("systemd does not run")
}

// TestOtherCgroupDriverIsANote: a kubelet since 1.31 takes the runtime's driver, so the node may be healthy.
func TestOtherCgroupDriverIsANote(t *testing.T) {
	n := newNode(t)
	n.start()
	n.put("/var/lib/kubelet/config.yaml", "cgroupDriver: cgroupfs\ncontainerRuntimeEndpoint: "+ours+"\n")
	r := doctor.Run(t.Context(), n.options)
	expect(t, r, []string{"cgroup-driver: /var/lib/kubelet/config.yaml: cgroupDriver is cgroupfs"})
	for _, f := range r.Findings {
		if f.Severity != doctor.Note {
			t.Errorf("%s is a %s", f.Check, f.Severity)
		}
	}
}

func (n *node) chmod(path string, mode os.FileMode) {
	n.t.Helper()
	n.must(os.Chmod(n.root+path, mode))
}

// rke2 has kubelet started by RKE2, and the proxy before that.
func (n *node) rke2() {
	n.t.Helper()
	n.must(os.RemoveAll(n.root + "/usr/lib/systemd/system/kubelet.service"))
	n.must(os.RemoveAll(n.root + "/usr/lib/systemd/system/kubelet.service.d"))
	n.put("/usr/lib/systemd/system/rke2-agent.service", "[Service]\nExecStart=/usr/bin/rke2 agent\n")
	n.put(n.kubeletProc("cmdline"), "kubelet\x00--container-runtime-endpoint="+ours+"\x00")
	n.put("/etc/rancher/rke2/config.yaml", "kubelet-arg: [container-runtime-endpoint="+ours+"]\n")
	n.units[systemd.ServiceName]["Before"] = "rke2-agent.service"
	n.units["rke2-agent.service"] = map[string]string{"LoadState": "loaded", "Id": "rke2-agent.service"}
	n.unitIs("rke2-agent.service", "active", "running", 1, time.Hour)
}

// disconnect ends the connection of what stands for kubelet.
func (n *node) disconnect() {
	n.t.Helper()
	n.must(n.conn.Close())
	n.await(func(s *status.Status) bool { return s.Connections == 0 })
}

// mountSmall mounts a file system of 1 MiB.
func (n *node) mountSmall(path string) {
	n.t.Helper()
	n.must(unix.Mount("none", n.root+path, "tmpfs", 0, "size=1m,mode=0700"))
	n.t.Cleanup(func() { n.must(unix.Unmount(n.root+path, 0)) })
}

// TestCounts: what a proxy has counted of a plugin is found. Here something stands in for it, since the kernel refuses no plain
// file, and nothing fights for one.
func TestCounts(t *testing.T) {
	n := newNode(t)
	l, err := net.Listen("unix", n.root+"/run/wasmproxy/admin.sock")
	n.must(err)
	counted := func(context.Context) (*status.Status, error) {
		one, other := status.Plugin{ID: "10-a", State: status.Active}, status.Plugin{ID: "20-b", State: status.Active}
		one.Conflicts, one.Fights, one.WriteFailures = 1, 2, 3
		return &status.Status{Plugins: status.Plugins{Plugins: []status.Plugin{one, other}}}, nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- admin.Serve(ctx, l, admin.Sources{Observer: observe.Discard(), Status: counted}) }()
	r := doctor.Run(t.Context(), n.options)
	cancel()
	n.must(<-ended)
	for _, want := range []string{
		"warning plugin-conflicts: plugin 10-a: 1 times since the proxy was started it wanted another value than an earlier plugin\n",
		"warning cgroup-fights: plugin 10-a: 2 of its cgroup files are left alone, since something else overwrites them\n",
		"warning cgroup-writes: plugin 10-a: 3 of its writes to cgroup files failed since the proxy was started\n",
	} {
		if !strings.Contains(findings(r), want) {
			t.Errorf("%q is not in\n%s", want, findings(r))
		}
	}
	if strings.Contains(findings(r), "20-b") {
		t.Errorf("a plugin without counts is in\n%s", findings(r))
	}
}
