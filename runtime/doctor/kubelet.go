package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/dialect"
	"github.com/wasmproxy/wasmproxy/runtime/host"
)

// cgroupDriver are the names of kubelet's setting.
var cgroupDriver = [2]string{"cgroup-driver", "cgroupDriver"}

// effective returns the value that kubelet has. A flag of the running one wins over its files,
// of which flags count only for one that does not run: they are those of the next start.
func (n *node) effective(names [2]string) (s host.Setting, err error) {
	if value, ok := n.process.Flag(names[0]); ok {
		return host.Setting{File: fmt.Sprintf("/proc/%d/cmdline", n.process.ID), Name: "--" + names[0], Value: value, Used: true}, nil
	}
	if n.kubeletErr != nil {
		return s, fmt.Errorf("no kubelet runs with --%s, and %w", names[0], n.kubeletErr)
	}
	flagsKnown := n.process != nil && n.process.Args != nil
	for _, of := range n.files.Settings(names) {
		if of.Used && (!flagsKnown || !strings.HasPrefix(of.Name, "--")) {
			s = of
		}
	}
	return s, nil
}

// runtimeEndpoint returns the names of the setting that leads kubelet to the proxy, and its default.
func (n *node) runtimeEndpoint() (names [2]string, byDefault host.Setting) {
	byDefault = host.Setting{
		File:  cmp.Or(n.KubeletConfig, host.DefaultKubeletConfig),
		Name:  host.RuntimeEndpoint[1],
		Value: host.DefaultEndpoint,
	}
	switch {
	case n.config.Mode == config.ModeDocker: // it is a flag alone
		byDefault.Name, byDefault.Value = "--docker-endpoint", "unix:///var/run/docker.sock"
		return [2]string{"docker-endpoint", "--docker-endpoint"}, byDefault
	case n.files != nil:
		byDefault = n.files.Default()
	}
	return host.RuntimeEndpoint, byDefault
}

func findKubeletEndpoint(_ context.Context, n *node) ([]found, error) {
	names, byDefault := n.runtimeEndpoint()
	s, err := n.effective(names)
	if err != nil {
		return nil, err
	}
	if s.Value == "" {
		s = byDefault
	}
	return n.otherSocket(s), nil
}

// otherSocket finds that a setting names another socket than the proxy's.
func (n *node) otherSocket(s host.Setting) []found {
	if n.sameSocket(s.Value, n.config.Listen) {
		return nil
	}
	return []found{{s.File, fmt.Sprintf("%s is %s; the proxy listens on %s", s.Name, s.Value, n.config.Listen)}}
}

func findKubeletImages(_ context.Context, n *node) ([]found, error) {
	s, err := n.effective(host.ImageEndpoint)
	if err != nil || s.Value == "" {
		return nil, err
	}
	return n.otherSocket(s), nil
}

// findKubeletFiles looks at the values that do not count at present.
func findKubeletFiles(_ context.Context, n *node) (all []found, err error) {
	if n.kubeletErr != nil {
		return nil, n.kubeletErr
	}
	endpoint, _ := n.runtimeEndpoint()
	for _, names := range [][2]string{endpoint, host.ImageEndpoint} {
		counts, err := n.effective(names)
		if err != nil {
			return nil, err
		}
		for _, s := range n.files.Settings(names) {
			if s != counts {
				all = append(all, n.otherSocket(s)...)
			}
		}
	}
	return all, nil
}

func findKubeletConnected(_ context.Context, n *node) ([]found, error) {
	if n.process == nil {
		return nil, errors.New("no kubelet of the host is seen: neither the main process of its unit, nor a process of root that has the host's files and process ids")
	}
	if n.proxyErr != nil || n.process.Calls(n.status) {
		return nil, n.proxyErr
	}
	what := fmt.Sprintf("kubelet, process %d, is not connected to the proxy", n.process.ID)
	var peers []string
	for _, p := range n.status.Peers {
		peers = append(peers, fmt.Sprintf("%s (PID %d)", p.Program, p.PID))
	}
	if len(peers) > 0 {
		what += "; these are: " + strings.Join(peers, ", ")
	}
	return []found{{n.config.Listen, what}}, nil
}

// driver is that of the container runtime, "" if it is not known.
func (n *node) driver() string {
	if linux := n.runtime.GetLinux(); linux != nil {
		return strings.ToLower(linux.GetCgroupDriver().String())
	}
	return ""
}

func findCgroupDriver(_ context.Context, n *node) ([]found, error) {
	driver := n.driver()
	if driver == "" {
		return nil, errors.New("the container runtime does not tell its cgroup driver")
	}
	s, err := n.effective(cgroupDriver)
	if err != nil {
		return nil, err
	}
	if s.Value == "" {
		return nil, errors.New("kubelet's files name no cgroup driver: it takes the runtime's, or cgroupfs before Kubernetes 1.31")
	}
	if s.Value == driver {
		return nil, nil
	}
	return []found{{s.File, fmt.Sprintf("%s is %s; the container runtime's is %s", s.Name, s.Value, driver)}}, nil
}

func findBackendAnswers(_ context.Context, n *node) ([]found, error) {
	return unanswered(n.config.Backend, n.backendErr)
}

func findBackendSelf(_ context.Context, n *node) (all []found, err error) {
	for _, of := range []struct{ key, endpoint string }{{"backend", n.config.Backend}, {"image-endpoint", n.config.ImageEndpoint}} {
		if of.endpoint != "" && n.sameSocket(of.endpoint, n.config.Listen) {
			all = append(all, found{of.key, fmt.Sprintf("%s leads to the proxy's own socket %s", of.endpoint, n.config.Listen)})
		}
	}
	return all, nil
}

func findSocketEnd(_ context.Context, n *node) ([]found, error) {
	r := dialect.KnownBy(n.config.Backend)
	if n.version != nil {
		r = dialect.Named(n.version.GetRuntimeName())
	}
	if strings.HasSuffix(n.config.Listen, r.SocketEnd) {
		return nil, nil
	}
	return []found{{"listen", fmt.Sprintf("the container runtime is %s, and %s does not end in %s", r.Title, n.config.Listen, r.SocketEnd)}}, nil
}

func findCadvisorSocket(_ context.Context, n *node) (all []found, err error) {
	for _, r := range dialect.Runtimes {
		_, missing := os.Stat(n.under(r.Cadvisor))
		switch {
		case r.Cadvisor == "":
		case n.sameSocket(r.Cadvisor, n.config.Listen):
			all = append(all, found{r.Cadvisor, "it is the proxy's socket"})
		case missing != nil && n.version.GetRuntimeName() == r.Name:
			all = append(all, found{r.Cadvisor, fmt.Sprintf("the container runtime is %s, whose socket is %s", r.Title, n.config.Backend)})
		}
	}
	return all, nil
}
