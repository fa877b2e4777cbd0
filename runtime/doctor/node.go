package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/docker"
	"github.com/wasmproxy/wasmproxy/runtime/host"
	"github.com/wasmproxy/wasmproxy/runtime/proxy"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

// answerTime is how long the proxy, the runtime or a hook server may take to answer.
const answerTime = 5 * time.Second

// node is what several checks need to know. What is not known has an error that says why.
type node struct {
	Options
	root   host.Root
	config *config.Config

	process     *host.Running // nil if it does not run, or cannot be seen
	kubeletUnit string        // that starts kubelet; empty without one
	files       *host.KubeletFiles
	kubeletErr  error

	version    *runtimeapi.VersionResponse
	runtime    *runtimeapi.RuntimeConfigResponse // nil: the runtime does not tell
	handlers   []string
	backendErr error

	status   *status.Status // of the running proxy
	proxyErr error

	pluginLines []string
	pluginErr   error
}

// under returns where a file of the host is. Links in it lead to files of the host.
func (n *node) under(path string) string {
	if n.root.Live() { // whoever may change a link on the way is looked at, too
		return path
	}
	return n.root.Under(path)
}

// socket is under of an endpoint.
func (n *node) socket(endpoint string) string {
	return n.under(strings.TrimPrefix(config.Path(endpoint), "unix:"))
}

// sameSocket reports whether two endpoints lead to one socket, also over links and bind mounts.
func (n *node) sameSocket(a, b string) bool {
	if host.SameEndpoint(a, b) {
		return true
	}
	one, err1 := os.Stat(n.socket(a))
	other, err2 := os.Stat(n.socket(b))
	return err1 == nil && err2 == nil && os.SameFile(one, other)
}

func (n *node) askBackend(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	socket := n.socket(n.config.Backend)
	if n.backendErr = n.answers(ctx, socket); n.backendErr != nil {
		return
	}
	var client runtimeClient
	if n.config.Mode == config.ModeDocker {
		client = docker.NewClient(socket, false)
	} else {
		conn, err := proxy.Dial(socket)
		if err != nil {
			n.backendErr = err
			return
		}
		defer conn.Close()
		client = runtimeapi.NewRuntimeServiceClient(conn)
	}
	if n.version, n.backendErr = client.Version(ctx, &runtimeapi.VersionRequest{}); n.backendErr != nil {
		return
	}
	n.runtime, _ = client.RuntimeConfig(ctx, &runtimeapi.RuntimeConfigRequest{}) // older runtimes do not have it
	if s, err := client.Status(ctx, &runtimeapi.StatusRequest{}); err == nil {
		for _, h := range s.GetRuntimeHandlers() {
			n.handlers = append(n.handlers, h.GetName())
		}
	}
	slices.Sort(n.handlers)
}

// runtimeClient is what is asked of the container runtime.
type runtimeClient interface {
	Version(context.Context, *runtimeapi.VersionRequest, ...grpc.CallOption) (*runtimeapi.VersionResponse, error)
	RuntimeConfig(context.Context, *runtimeapi.RuntimeConfigRequest, ...grpc.CallOption) (*runtimeapi.RuntimeConfigResponse, error)
	Status(context.Context, *runtimeapi.StatusRequest, ...grpc.CallOption) (*runtimeapi.StatusResponse, error)
}

// answers returns why no server of the mode answers on a socket.
func (n *node) answers(ctx context.Context, socket string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socket) // whose error names the cause
	if err != nil {
		return err
	}
	conn.Close()
	if n.config.Mode == config.ModeDocker {
		return docker.Answers(ctx, socket)
	}
	return proxy.Answers(ctx, socket)
}

// loadPlugins loads them beside the running proxy: without its state, and with its cache.
func (n *node) loadPlugins(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	c := *n.config
	for _, path := range []*string{&c.Listen, &c.Backend, &c.ImageEndpoint, &c.PluginDir, &c.HookDir, &c.CacheDir, &c.CgroupRoot} {
		if *path != "" {
			*path = n.socket(*path)
		}
	}
	if _, err := n.cgroupVersion(); err != nil { // which has a check of its own
		c.CgroupRoot = ""
	}
	if _, err := os.ReadDir(c.CacheDir); errors.Is(err, fs.ErrPermission) {
		n.pluginErr = err
		return
	}
	n.pluginLines, n.pluginErr = n.Load(ctx, &c)
	if ctx.Err() != nil { // which is no fault of a plugin
		n.pluginErr = errLate
	}
}

var errLate = fmt.Errorf("the plugins were not loaded within %v", checkTime)

// unloaded says why it is not known whether the plugins load; nil if it is known.
func (n *node) unloaded() error {
	if errors.Is(n.pluginErr, fs.ErrPermission) || n.pluginErr == errLate { // no permission of this user's, and not of the proxy's
		return n.pluginErr
	}
	return nil
}

// each finds several things in one place.
func each(where string, what []string) (all []found) {
	for _, one := range what {
		all = append(all, found{where, one})
	}
	return all
}

// lines are those of an error that joins several.
func lines(err error) []string {
	if err == nil {
		return nil
	}
	return strings.Split(err.Error(), "\n")
}
