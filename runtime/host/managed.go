package host

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/wasmproxy/wasmproxy/runtime/unitfile"
)

// manager is a program that has kubelet in a unit of its own, or that writes kubelet's files again and again. To change
// them would be in vain: the operator tells it the endpoint.
type manager struct {
	name      string
	units     []string // any of which shows that the host has it
	inUnit    bool     // these units start kubelet, and there is no unit kubelet.service
	endpoint  string   // kubelet's where none is named; empty for kubelet's own default
	configDir string   // of kubelet's drop-ins
	flag      string   // of the units' command line, with flags for kubelet
	runtime   string   // of the same, with the endpoint of a runtime that is not the manager's own
	settings  string   // a YAML file with a list kubelet-arg, and a directory of such files with .d
	arguments string   // a file of kubelet's flags, in which common stands for ${SNAP_COMMON}
	common    string
	advice    string // on what to do, with the endpoint in the place of %s
}

func rancher(name, dir string, units ...string) manager {
	return manager{
		name: name, units: units, inUnit: true,
		endpoint:  "unix:///run/k3s/containerd/containerd.sock",
		configDir: "/var/lib/rancher/" + dir + "/agent/etc/kubelet.conf.d",
		flag:      "kubelet-arg", runtime: runtimeKey.flag,
		settings: "/etc/rancher/" + dir + "/config.yaml",
		advice:   "write kubelet-arg: [container-runtime-endpoint=%s] into /etc/rancher/" + dir + "/config.yaml (its own key container-runtime-endpoint would turn its containerd off), and restart " + strings.Join(units, " or "),
	}
}

// managers returns those that are known. The first one that a host has counts.
func managers() []manager {
	return []manager{
		rancher("k3s", "k3s", "k3s.service", "k3s-agent.service"),
		rancher("RKE2", "rke2", "rke2-server.service", "rke2-agent.service"),
		{
			name: "k0s", units: []string{"k0sworker.service", "k0scontroller.service"}, inUnit: true,
			endpoint: "unix:///run/k0s/containerd.sock", flag: "kubelet-extra-args", runtime: "cri-socket",
			advice: "add --kubelet-extra-args=--container-runtime-endpoint=%s to the command of its unit (its own flag --cri-socket would turn its containerd off), and restart k0sworker.service or k0scontroller.service",
		},
		{
			name: "MicroK8s", units: []string{"snap.microk8s.daemon-kubelite.service"}, inUnit: true,
			endpoint:  "unix:///var/snap/microk8s/common/run/containerd.sock",
			arguments: "/var/snap/microk8s/current/args/kubelet", common: "/var/snap/microk8s/common",
			advice: "write --container-runtime-endpoint=%s into /var/snap/microk8s/current/args/kubelet, in the place of the one that is there, and restart snap.microk8s.daemon-kubelite.service",
		},
		{
			name: "the snap kubelet-eks", units: []string{"snap.kubelet-eks.daemon.service"}, inUnit: true,
			advice: "run snap set kubelet-eks container-runtime-endpoint=%s, and restart snap.kubelet-eks.daemon.service",
		},
		{
			name: "nodeadm of EKS", units: []string{"nodeadm-run.service"},
			advice: "set containerRuntimeEndpoint: %s in spec.kubelet.config of the NodeConfig, in the instance's user data or in a file of /etc/eks/nodeadm.d, and start the instance again",
		},
		{
			name: "nodeup of kops", units: []string{"kops-configuration.service"},
			advice: "add a drop-in to kubelet.service whose ExecStart= is that of the unit with --container-runtime-endpoint=%s at its end, and restart kubelet",
		},
	}
}

func (m *manager) unitNames() string { return strings.Join(m.units, " or ") }

// findManager returns nil if the host has none. A unit kubelet.service counts more than that of another program.
func findManager(root Root, kubeletService bool) *manager {
	for _, m := range managers() {
		if m.inUnit != kubeletService && slices.ContainsFunc(m.units, root.hasUnit) {
			return &m
		}
	}
	return nil
}

func (m *manager) tell(endpoint string) string { return fmt.Sprintf(m.advice, endpoint) }

// managed reads the flags that a manager gives kubelet: those of its units' command line, its settings and its arguments.
func (r reader) managed(m *manager) (s service, err error) {
	var runtimes []unitfile.Value // over which those of kubelet's own win
	for _, unit := range m.units {
		its, err := r.service(unit)
		if err != nil {
			return s, err
		}
		for _, f := range flagsIn(its.args) {
			switch {
			case len(f.value) == 0:
			case f.name == m.runtime:
				runtimes = append(runtimes, runtimeFlag(f.file, strings.TrimPrefix(f.value.String(), "remote:")))
			case f.name != m.flag:
			case m.settings != "": // each has one flag, without its dashes
				s.args = append(s.args, unitfile.Plain(f.file, "--"+f.value.String()))
			default:
				s.args = append(s.args, f.value.Fields()...)
			}
		}
	}
	if m.arguments != "" {
		t, _, err := r.text(m.arguments, false)
		if err != nil {
			return s, err
		}
		words := unitfile.Plain(m.arguments, strings.ReplaceAll(t.content, "${SNAP_COMMON}", m.common))
		s.args = append(s.args, words.Fields()...)
	}
	if m.settings != "" {
		if s.args, err = r.kubeletArgs(m.settings, s.args); err != nil {
			return s, err
		}
	}
	s.args = append(runtimes, s.args...)
	return s, nil
}

func runtimeFlag(file, endpoint string) unitfile.Value {
	return unitfile.Plain(file, "--"+runtimeKey.flag+"="+endpoint)
}

// kubeletArgs reads the lists kubelet-arg of a file, and of those in its directory. A later file replaces an earlier one,
// and the command line wins over all. A list kubelet-arg+ is added to what there is. Before them is the endpoint of a
// runtime that is not the manager's own.
func (r reader) kubeletArgs(settings string, command []unitfile.Value) (args []unitfile.Value, err error) {
	args = command
	var runtimes []unitfile.Value
	more, _ := fs.Glob(os.DirFS(r.root.Under(settings+".d")), "*.yaml")
	for i, path := range append([]string{settings}, more...) {
		if i > 0 {
			path = filepath.Join(settings+".d", path)
		}
		t, has, err := r.text(path, true)
		if err != nil {
			return nil, err
		}
		if !has {
			continue
		}
		var of struct {
			Runtime string `json:"container-runtime-endpoint"`
			Args    any    `json:"kubelet-arg"`
			More    any    `json:"kubelet-arg+"`
		}
		if err := yaml.Unmarshal([]byte(t.content), &of); err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		if of.Runtime != "" {
			runtimes = append(runtimes, runtimeFlag(path, of.Runtime))
		}
		all := list(of.More)
		if of.Args != nil && len(command) == 0 {
			args, all = nil, append(list(of.Args), all...)
		}
		for _, arg := range all {
			args = append(args, unitfile.Plain(path, "--"+arg))
		}
	}
	return append(runtimes, args...), nil
}

// list returns the texts of a key that has one or several.
func list(value any) (all []string) {
	switch value := value.(type) {
	case string:
		return []string{value}
	case []any:
		for _, v := range value {
			all = append(all, fmt.Sprint(v))
		}
	}
	return all
}
