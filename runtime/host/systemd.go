package host

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/deploy/systemd"
	"github.com/wasmproxy/wasmproxy/runtime/proxy"
)

// proxyTime is how long the proxy may take to serve, and the runtime to answer.
const proxyTime = time.Minute

// errRuns is of a directory that is not an image: units would be enabled and nothing started or stopped, and kubelet would
// have a socket that nobody serves.
func errRuns(root Root) error {
	return fmt.Errorf("nothing was changed: systemd runs on the host whose files are in %s, and --root is for an image in which nothing runs: run the command on that host, or with --enter-host in a privileged pod", root)
}

// systemdRuns reports whether the files are of a host that systemd has started.
func (r Root) systemdRuns() bool { return r.has("/run/systemd/system") }

// now is the flag by which systemctl also starts or stops units, which it does not in an image.
func (r Root) now() string {
	if r.Live() {
		return " --now"
	}
	return ""
}

// systemctl is how the host's systemd is asked and told.
type systemctl struct {
	root  Root
	ask   func(ctx context.Context, name string, properties ...string) (map[string]string, error) // see Host.Unit
	begin func(step string) error
}

func (h *Host) systemctl() systemctl { return systemctl{h.Root, h.Unit, h.begin} }

// do runs a command of systemd. In an image it changes links only.
func (s systemctl) do(ctx context.Context, args ...string) error {
	if !s.root.Live() {
		args = append([]string{"--root=" + string(s.root)}, args...)
	}
	if err := s.begin("systemctl " + strings.Join(args, " ")); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, "systemctl", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("running systemctl %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

// show returns properties of a unit. In an image nothing runs, so that nobody is asked.
func (s systemctl) show(ctx context.Context, name string, properties ...string) (map[string]string, error) {
	switch {
	case s.ask != nil:
		return s.ask(ctx, name, properties...)
	case s.root.Live():
		return SystemdUnit(ctx, name, properties...)
	}
	return nil, nil
}

// mainProcess returns that of a unit, and 0 if it does not run or systemd cannot be asked.
func (s systemctl) mainProcess(ctx context.Context, unit string) int {
	if !s.root.hasUnit(unit) {
		return 0
	}
	p, _ := s.show(ctx, unit, "MainPID")
	process, _ := strconv.Atoi(p["MainPID"])
	return process
}

// disable has systemd stop the proxy's units, if the host has them, and not start them again. The directories that systemd
// has made for the service go, but not its logs.
func (s systemctl) disable(ctx context.Context) error {
	var units []string
	for _, name := range []string{systemd.SocketName, systemd.ServiceName} {
		if s.root.has(filepath.Join(unitDir, name)) || s.root.has(filepath.Join(packagedDir, name)) {
			units = append(units, name)
		}
	}
	if len(units) == 0 {
		return nil
	}
	if !s.root.Live() {
		return s.do(ctx, append([]string{"disable"}, units...)...)
	}
	err := s.do(ctx, append([]string{"disable", "--now"}, units...)...)
	if err != nil || !slices.Contains(units, systemd.ServiceName) {
		return err
	}
	_ = s.do(ctx, "reset-failed", systemd.ServiceName) // a failed unit cannot be cleaned; one that has ended well may be unknown by now
	err = s.do(ctx, "clean", "--what=cache", "--what=runtime", systemd.ServiceName)
	if err == nil {
		_ = os.Remove(s.root.Under(logDir)) // unless it has logs
	}
	return err
}

// start has systemd start the units, now and with the host, and waits until the proxy and the
// container runtime behind it answer.
func (p *installation) start(ctx context.Context) error {
	s := p.host.systemctl()
	if !p.host.Root.Live() {
		return s.do(ctx, "enable", systemd.SocketName, systemd.ServiceName)
	}
	for _, args := range [][]string{{"daemon-reload"}, {"enable", "--now", systemd.SocketName}, {"enable", "--now", systemd.ServiceName}} {
		if err := s.do(ctx, args...); err != nil {
			return errStart(err)
		}
	}
	failed := func(err error) error {
		return errStart(fmt.Errorf("waiting for the proxy to serve on %s: %w", p.socket, err))
	}
	ctx, cancel := context.WithTimeout(ctx, proxyTime)
	defer cancel()
	conn, err := proxy.Dial(p.socket)
	if err != nil {
		return failed(err)
	}
	defer conn.Close()
	for {
		v, err := runtimeapi.NewRuntimeServiceClient(conn).Version(ctx, &runtimeapi.VersionRequest{}, grpc.WaitForReady(true))
		if err == nil {
			p.host.say("the proxy serves %s %s", v.GetRuntimeName(), v.GetRuntimeVersion())
			return nil
		}
		select {
		case <-ctx.Done():
			return failed(err)
		case <-time.After(time.Second):
		}
	}
}

func errStart(err error) error {
	return fmt.Errorf("%w; kubelet's files were not changed: see journalctl -u wasmproxy, then run the command again. After a change of listen, first run systemctl restart %s %s: kubelet has no runtime from then until wasmproxy host install --restart-kubelet", err, systemd.SocketName, systemd.ServiceName)
}

// SystemdUnit asks systemd for properties of a unit.
func SystemdUnit(ctx context.Context, name string, properties ...string) (map[string]string, error) {
	out, err := exec.CommandContext(ctx, "systemctl", "show", "--property="+strings.Join(properties, ","), name).Output()
	if err != nil {
		return nil, fmt.Errorf("running systemctl show %s: %w", name, err)
	}
	all := map[string]string{}
	for line := range strings.Lines(string(out)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		all[key] = value
	}
	return all, nil
}
