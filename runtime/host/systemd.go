package host

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/deploy/systemd"
	"github.com/wasmproxy/wasmproxy/runtime/proxy"
)

// proxyTime is how long the proxy may take to serve, and the runtime to answer.
const proxyTime = time.Minute

// systemctl runs a command of systemd. In an image it changes links only.
func (h *Host) systemctl(ctx context.Context, args ...string) error {
	if !h.live() {
		args = append([]string{"--root=" + h.Root}, args...)
	}
	if err := h.begin("systemctl " + strings.Join(args, " ")); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, "systemctl", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("running systemctl %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

// start has systemd start the units, now and with the host, and waits until the proxy and the
// container runtime behind it answer.
func (h *Host) start(ctx context.Context, socket string) error {
	if !h.live() {
		return h.systemctl(ctx, "enable", systemd.SocketName, systemd.ServiceName)
	}
	for _, args := range [][]string{{"daemon-reload"}, {"enable", "--now", systemd.SocketName}, {"enable", "--now", systemd.ServiceName}} {
		if err := h.systemctl(ctx, args...); err != nil {
			return errStart(err)
		}
	}
	name, err := runtimeBehind(ctx, socket)
	if err != nil {
		return errStart(fmt.Errorf("waiting for the proxy to serve on %s: %w", socket, err))
	}
	h.say("the proxy serves %s", name)
	return nil
}

func errStart(err error) error {
	return fmt.Errorf("%w; kubelet's files were not changed: see journalctl -u wasmproxy, then run the command again. After a change of listen, first run systemctl restart %s %s: kubelet has no runtime from then until wasmproxy host install --restart-kubelet", err, systemd.SocketName, systemd.ServiceName)
}

// disable has systemd stop the units that there are, and not start them again.
func (h *Host) disable(ctx context.Context) error {
	units := h.units(systemd.SocketName, systemd.ServiceName)
	if len(units) == 0 {
		return nil
	}
	args := []string{"disable"}
	if h.live() {
		args = append(args, "--now")
	}
	return h.systemctl(ctx, append(args, units...)...)
}

// clean removes the directories that systemd has made for the service, but not its logs.
func (h *Host) clean(ctx context.Context) error {
	if !h.live() || len(h.units(systemd.ServiceName)) == 0 {
		return nil
	}
	if err := h.systemctl(ctx, "clean", "--what=cache", "--what=runtime", systemd.ServiceName); err != nil {
		return err
	}
	_ = os.Remove(h.under(logDir)) // unless it has logs
	return nil
}

// units returns those of the units that the host has.
func (h *Host) units(names ...string) (have []string) {
	for _, name := range names {
		if len(h.missing(filepath.Join(unitDir, name))) == 0 || len(h.missing(filepath.Join(packagedDir, name))) == 0 {
			have = append(have, name)
		}
	}
	return have
}

// runtimeBehind asks the proxy for the name and version of the container runtime.
func runtimeBehind(ctx context.Context, socket string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, proxyTime)
	defer cancel()
	conn, err := proxy.Dial(socket)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	for {
		v, err := runtimeapi.NewRuntimeServiceClient(conn).Version(ctx, &runtimeapi.VersionRequest{}, grpc.WaitForReady(true))
		if err == nil {
			return v.GetRuntimeName() + " " + v.GetRuntimeVersion(), nil
		}
		select {
		case <-ctx.Done():
			return "", err
		case <-time.After(time.Second):
		}
	}
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

// unit asks the systemd of the host. In an image nothing runs, so that nobody is asked.
func (h *Host) unit(ctx context.Context, name string, properties ...string) (map[string]string, error) {
	switch {
	case h.Unit != nil:
		return h.Unit(ctx, name, properties...)
	case h.live():
		return SystemdUnit(ctx, name, properties...)
	}
	return nil, nil
}
