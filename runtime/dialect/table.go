package dialect

// Runtime is a row. An empty column means that there is nothing of the kind.
type Runtime struct {
	Name  string // as Version tells it
	Title string // in messages, of one that kubelet calls

	Socket    string // its path
	Unit      string // of systemd, which starts what listens there
	SocketEnd string // by which kubelet knows the runtime: the path of the proxy's socket must end so, too
	Cadvisor  string // the path at which cAdvisor in kubelet dials the runtime, whatever kubelet's endpoint is

	// The cgroup of a container below that of its pod, with the container's id in the place of ID: with the driver
	// cgroupfs, with systemd, and the group that is made below the latter on v2 for the processes. Each value is written
	// to that group, too, and some of the runtime's own to it alone. So a limit that it shows is the container's, and one
	// that is written holds if both have it; of weights, that of the scope counts.
	Cgroup, Scope, Inner string

	// Verbose is the key of a verbose status at which its JSON object is. runtime/pods has the members of it.
	Verbose string
	// Annotations of the runtime spec in that object that have what CRI shows nowhere else, the first one first.
	CgroupParent, RuntimeHandler, PodOverhead, PodResources, Image []string
	// PodLabels are labels that a pod has in its status only.
	PodLabels map[string]string
	// Env are variables that are added to those of containers. They are no secrets: the name of the pod or node is in one.
	Env []string

	// Partners are resources, by their names in CRI, that an update must name if it changes another resource or a cgroup
	// file: otherwise the runtime would lose their values, or refuse the update.
	Partners map[string]string
	// Lost are cgroup files of v2 that an update overwrites, though it does not name them.
	Lost []string
	// Weights are the functions from CPU shares to cpu.weight on v2, of whichever versions.
	Weights []func(shares uint64) uint64
}

// Runtimes is the table. Where a container's cgroup is not found, the first row says where it would be.
var Runtimes = []Runtime{
	{
		Name: "containerd", Title: "containerd",
		Socket: "/run/containerd/containerd.sock", Unit: "containerd.service", Cadvisor: "/run/containerd/containerd.sock",
		Cgroup: "ID", Scope: "cri-containerd-ID.scope",
		Verbose: "info",
		// A limit of memory alone means that there is no swap.
		Partners: map[string]string{"memory_limit_in_bytes": "memory_swap_limit_in_bytes"},
	},
	{
		Name: "cri-o", Title: "CRI-O",
		Socket: "/run/crio/crio.sock", Unit: "crio.service", SocketEnd: "run/crio/crio.sock",
		Cgroup: "crio-ID", Scope: "crio-ID.scope",
		Verbose: "info",
		// See internal/annotations and pkg/annotations/v2 in its source. The last two have had two names.
		CgroupParent: []string{"io.kubernetes.cri-o.CgroupParent"}, RuntimeHandler: []string{"io.kubernetes.cri-o.RuntimeHandler"},
		PodOverhead:  []string{"pod-linux-overhead.crio.io", "io.kubernetes.cri-o.PodLinuxOverhead"},
		PodResources: []string{"pod-linux-resources.crio.io", "io.kubernetes.cri-o.PodLinuxResources"},
		Image:        []string{"io.kubernetes.cri-o.Image"}, // of a container: as its request named it
		PodLabels:    map[string]string{"io.kubernetes.container.name": "POD"},
		Env:          []string{"HOSTNAME", "HOME", "PATH", "TERM"}, // its status has them among kubelet's
		// runc has systemd set properties of the container's unit, for which systemd writes 0 to this file. containerd names
		// it in each update, and CRI-O does not.
		Lost: []string{"memory.oom.group"},
	},
	{
		Name: "docker", Title: "cri-dockerd",
		Socket: "/run/cri-dockerd.sock", Unit: "cri-docker.service",
		Cgroup: "ID", Scope: "docker-ID.scope",
		Verbose: "info",
		// Only what an update names is written, and the kernel gives a container the default share when cpu.idle ends.
		Partners: map[string]string{"cpu.idle": "cpu_shares"},
	},
	{
		Name: "runc",
		// It makes a limit of swap alone of the two.
		Partners: map[string]string{"memory_swap_limit_in_bytes": "memory_limit_in_bytes"},
		Weights:  []func(uint64) uint64{Weight, linearWeight},
	},
	{
		Name:  "crun",
		Inner: "container",
		// A period without a quota means that there is no quota, and a quota of -1 without a period is not written.
		Partners: map[string]string{"cpu_period": "cpu_quota", "cpu_quota": "cpu_period"},
		Weights:  []func(uint64) uint64{linearWeight},
	},
}
