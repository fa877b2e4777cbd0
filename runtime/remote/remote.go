package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	pb "github.com/wasmproxy/wasmproxy/runtime/remote/runtimehook"
)

// Options say which hook server a plugin is, and what it is told.
type Options struct {
	ID       string      // the plugin's id, for its manifest
	Endpoint string      // absolute path of the server's unix socket
	Hooks    abi.HookSet // the hooks that it is called in; those outside Hooks() are left out
	// ClearUnset takes an empty cpuset and a zero oom_score_adj of a response's
	// resources for what the server wants, always, as koord-runtime-proxy does.
	ClearUnset bool
	// Returned is called when there is a connection, the first and each that was made
	// after one was lost; nil if nobody wants to know. It must return at once.
	Returned func()
}

// Plugin is a hook server as a plugin.
type Plugin struct {
	options  Options
	manifest abi.Manifest
	conn     *grpc.ClientConn
	watching sync.WaitGroup
}

var _ plugin.Plugin = (*Plugin)(nil)

// The hooks that the protocol has a method for, by what the method is sent.
var (
	podHooks       = abi.HookSetOf(abi.PreRunPodSandbox, abi.PostStopPodSandbox)
	containerHooks = abi.HookSetOf(
		abi.PreCreateContainer, abi.PreStartContainer, abi.PostStartContainer, abi.PostStopContainer, abi.PreUpdateContainerResources,
	)
)

// Hooks returns the hooks that the protocol has a method for.
func Hooks() abi.HookSet { return podHooks | containerHooks }

// maxMessage is the largest message either way, in bytes: a request carries
// what kubelet sent, for which the proxy has no smaller limit.
const maxMessage = 64 << 20

// window is how many bytes of one call may be under way before their reader has
// taken them. A fixed one saves a ping per message, a tenth of a hooked call's time.
const window = 1 << 20

// connectTimeout bounds one attempt: a server that accepts and then says
// nothing must not hold up the attempt that would reach its successor.
const connectTimeout = 2 * time.Second

// retry is how long to leave a server alone that did not answer. The jitter is
// part of the promise that one that is back is used again within 500 ms.
var retry = backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 350 * time.Millisecond}

// New returns the hook server as a plugin. It does not wait for the server, nor
// for its socket: both may come and go. The caller closes the plugin.
func New(o Options) (*Plugin, error) {
	var last atomic.Pointer[time.Time] // when the last connection was made
	connect := func(ctx context.Context, _ string) (net.Conn, error) {
		// gRPC's back-off is for connections that do not come up. One that came up and ended it would make again at once.
		if made := last.Load(); made != nil && time.Since(*made) < retry.BaseDelay {
			return nil, errors.New("the last connection ended as soon as it was made")
		}
		conn, err := new(net.Dialer).DialContext(ctx, "unix", o.Endpoint)
		if err == nil {
			last.Store(new(time.Now()))
		}
		return conn, err
	}
	// The connection is made when it is first used, and again when it was lost. A call meanwhile fails at once instead of
	// waiting. Hook servers see the authority that they always saw.
	conn, err := grpc.NewClient("passthrough:///localhost",
		grpc.WithContextDialer(connect),
		grpc.WithAuthority("localhost"),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: retry, MinConnectTimeout: connectTimeout}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		grpc.WithStaticStreamWindowSize(window),
		grpc.WithStaticConnWindowSize(window),
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
	)
	if err != nil {
		return nil, fmt.Errorf("hook server %s: %w", o.Endpoint, err)
	}
	about := abi.Manifest{Name: o.ID, Description: "hook server at " + plugin.Name(o.Endpoint), Hooks: abi.ManifestHooks(o.Hooks & Hooks())}
	p := &Plugin{options: o, manifest: about, conn: conn}
	if o.Returned != nil {
		p.watching.Go(func() { p.watch(o.Returned) })
	}
	return p, nil
}

// watch keeps the connection up, since nobody may be calling, and tells of each
// that is made, until the plugin is closed.
func (p *Plugin) watch(returned func()) {
	for {
		state := p.conn.GetState()
		switch state {
		case connectivity.Ready:
			returned()
		case connectivity.Idle:
			p.conn.Connect()
		case connectivity.Shutdown:
			return
		}
		p.conn.WaitForStateChange(context.Background(), state)
	}
}

// Manifest names the hooks that the operator named for the server: the protocol
// has no way to ask it.
func (p *Plugin) Manifest() abi.Manifest { return p.manifest }

// Close ends the connection.
func (p *Plugin) Close(context.Context) error {
	err := p.conn.Close()
	p.watching.Wait()
	if err != nil {
		return fmt.Errorf("closing the connection to hook server %s: %w", p.options.Endpoint, err)
	}
	return nil
}

// Call asks the server once. An error that the server answers with is a fault
// like any other: the protocol has no word for refusing a call.
func (p *Plugin) Call(ctx context.Context, _ *plugin.Budget, ev plugin.Event, adj *plugin.Adjustment) error {
	hook := ev.Hook()
	// What came along with kubelet's call is meant for the runtime.
	ctx = metadata.NewOutgoingContext(ctx, metadata.MD{})
	switch {
	case podHooks.Has(hook):
		sent := &pb.PodSandboxHookRequest{
			PodMeta:        podMeta(ev),
			RuntimeHandler: text(ev, abi.Pod, abi.PodRuntimeHandler),
			Labels:         entries(ev, abi.Pod, abi.PodLabels),
			Annotations:    entries(ev, abi.Pod, abi.PodAnnotations),
			CgroupParent:   text(ev, abi.Pod, abi.PodCgroupParent),
			Overhead:       nonEmpty(resources(ev, abi.Pod, abi.Overhead)),
			Resources:      nonEmpty(resources(ev, abi.Pod, abi.Resources)),
		}
		got := &pb.PodSandboxHookResponse{}
		if err := p.invoke(ctx, hook, sent, got); err != nil {
			return p.fault(ctx, adj, err)
		}
		d := differences{adj: adj, hook: hook} // without those of resources: CRI has no such field to set
		d.entries(abi.Pod, abi.PodLabels, sent.GetLabels(), got.GetLabels())
		d.entries(abi.Pod, abi.PodAnnotations, sent.GetAnnotations(), got.GetAnnotations())
		d.cgroupParent(sent.GetCgroupParent(), got.GetCgroupParent())
		return d.err
	case containerHooks.Has(hook):
		sent := &pb.ContainerResourceHookRequest{
			PodMeta: podMeta(ev),
			ContainerMeta: &pb.ContainerMetadata{
				Name:    text(ev, abi.Container, abi.ContainerName),
				Attempt: uint32(number(ev, abi.Container, abi.ContainerAttempt)),
				Id:      text(ev, abi.Container, abi.ContainerID),
			},
			ContainerAnnotations: entries(ev, abi.Container, abi.ContainerAnnotations),
			ContainerResources:   resources(ev, abi.Container, abi.Resources), // always, as the incumbent: zero where CRI has none
			PodResources:         nonEmpty(resources(ev, abi.Pod, abi.Resources)),
			PodAnnotations:       entries(ev, abi.Pod, abi.PodAnnotations),
			PodLabels:            entries(ev, abi.Pod, abi.PodLabels),
			PodCgroupParent:      text(ev, abi.Pod, abi.PodCgroupParent),
			ContainerEnvs:        entries(ev, abi.Container, abi.ContainerEnv),
		}
		got := &pb.ContainerResourceHookResponse{}
		if err := p.invoke(ctx, hook, sent, got); err != nil {
			return p.fault(ctx, adj, err)
		}
		return p.containerChanges(adj, hook, sent, got)
	}
	return fmt.Errorf("hook servers have no method for %s", hook)
}

// invoke calls the method of a hook: it has the hook's name, with "Hook" behind it.
func (p *Plugin) invoke(ctx context.Context, hook abi.Hook, req, resp proto.Message) error {
	return p.conn.Invoke(ctx, "/runtime.v1alpha1.RuntimeHookService/"+hook.String()+"Hook", req, resp)
}

// maxWords is how many bytes of a server's own words are kept.
const maxWords = 1 << 10

// fault names the server. It carries the server's status as text only, so that
// nobody up the line takes the server's code for the call's.
func (p *Plugin) fault(ctx context.Context, adj *plugin.Adjustment, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("hook server %s: %w", p.options.Endpoint, cause)
	}
	s := status.Convert(err)
	said := adj.Sanitize(s.Message(), maxWords)
	if s.Code() == codes.DeadlineExceeded { // the server's clock was first, or it has waited for something else
		return fmt.Errorf("hook server %s: %w: %s", p.options.Endpoint, context.DeadlineExceeded, said)
	}
	if s.Code() == codes.Unavailable && p.conn.GetState() != connectivity.Ready {
		return fmt.Errorf("hook server %s: %w: %s", p.options.Endpoint, plugin.ErrAway, said)
	}
	return fmt.Errorf("hook server %s: %s: %s", p.options.Endpoint, s.Code(), said)
}
