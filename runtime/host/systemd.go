package host

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/deploy/systemd"
	"github.com/wasmproxy/wasmproxy/runtime/proxy"
)

const (
	proxyTime   = time.Minute     // for the proxy to serve, and the runtime to answer
	kubeletTime = 2 * time.Minute // for kubelet to connect, or to be gone, after its restart
)

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

// restartKubelet restarts kubelet, and waits until it is connected to one of the sockets, or to
// none any more.
func (h *Host) restartKubelet(ctx context.Context, connected bool, sockets ...string) error {
	h.say("restarting kubelet")
	for _, args := range [][]string{{"daemon-reload"}, {"restart", "kubelet"}} { // its unit may have changed
		if err := h.systemctl(ctx, args...); err != nil {
			return err
		}
	}
	return h.awaitKubelet(ctx, connected, sockets...)
}

// awaitKubelet waits until kubelet is connected to one of the sockets, or to none any more.
func (h *Host) awaitKubelet(ctx context.Context, connected bool, sockets ...string) error {
	for end := time.Now().Add(kubeletTime); ; {
		n, err := connections(sockets...)
		if err != nil || (n > 0) == connected {
			return err
		}
		if time.Now().After(end) {
			return errKubelet(strings.Join(sockets, " or "), connected)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

func errKubelet(socket string, wanted bool) error {
	if wanted {
		return fmt.Errorf("kubelet has its endpoint in its files, and is not connected to %s: run systemctl daemon-reload && systemctl restart kubelet once, since systemd may have its former unit. If that does not help, see systemctl cat kubelet for another endpoint or configuration (--kubelet-config names that), and journalctl -u kubelet", socket)
	}
	return fmt.Errorf("something is still connected to %s, and kubelet was restarted: see ss -xp for who it is, then run the command again", socket)
}

// inUse reports whether a restart of kubelet would change nothing: its files stay, and it is
// connected. The command itself must not be connected yet.
func (h *Host) inUse(p *installation) bool {
	if len(p.kubelet) > 0 || !h.live() {
		return false
	}
	n, err := connections(p.socket)
	return err == nil && n > 0
}

// connections counts those that callers have to sockets.
func connections(endpoints ...string) (n int, err error) {
	table, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return 0, err
	}
	const connected = "03"
	for line := range strings.Lines(string(table)) {
		// Num RefCount Protocol Flags Type St Inode Path
		f := strings.Fields(line)
		if len(f) == 8 && f[5] == connected && slices.ContainsFunc(endpoints, func(e string) bool { return SameEndpoint(e, f[7]) }) {
			n++
		}
	}
	return n, nil
}
