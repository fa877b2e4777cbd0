package proxy

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/wasmproxy/wasmproxy/runtime/cri"
)

// What these numbers gave, and what other options did not, is in RATIONALE.md.
const (
	// maxMessage is in bytes. Kubelet and containerd accept 16 MiB; the end
	// points are to enforce their limits, so this one only keeps a broken peer
	// from filling the node's memory.
	maxMessage = 256 << 20

	// window is how many bytes of one call may be under way on one connection
	// before its reader has taken them. A fixed one saves a ping per message.
	window = 1 << 20

	// streamWorkers is how many goroutines wait for calls with a stack that has
	// grown already. More calls than that get a goroutine each.
	streamWorkers = 4

	// connectTime is how long a caller that has connected may take to say that it speaks HTTP/2. One
	// that says nothing delays a shutdown by as much, so it is a part of the drain timeout.
	connectTime = time.Second
)

// frames makes a call to the backend carry *cri.Frame.
var frames = grpc.ForceCodecV2(cri.Codec{})

func serverOptions(c *callers) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(cri.Codec{}),
		grpc.Creds(c),
		grpc.MaxConcurrentStreams(maxStreams),
		//lint:ignore SA1019 A registered compressor would be the whole process's, and those have no bound.
		grpc.RPCDecompressor(gunzip{}),
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxSendMsgSize(maxMessage),
		grpc.StaticStreamWindowSize(window),
		grpc.StaticConnWindowSize(window),
		grpc.NumStreamWorkers(streamWorkers),
		grpc.ConnectionTimeout(connectTime),
		grpc.WaitForHandlers(true), // also of calls that are cut: who serves them closes what they use
		// Whether a caller may ping often is not for a proxy to decide.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
	}
}

func dialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"),
		grpc.WithConnectParams(redial()),
		grpc.WithIdleTimeout(0), // so that a backend's restart is noticed without a call
		grpc.WithStatsHandler(arrivals{}),
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		grpc.WithNoProxy(),
		grpc.WithStaticStreamWindowSize(window),
		grpc.WithStaticConnWindowSize(window),
		grpc.WithDefaultCallOptions(
			frames,
			grpc.MaxCallRecvMsgSize(maxMessage),
			grpc.MaxCallSendMsgSize(maxMessage),
		),
	}
}

// redial has kubelet's delays and its time for one attempt (cri-client,
// pkg/remote_runtime.go).
func redial() grpc.ConnectParams {
	delays := backoff.DefaultConfig
	delays.BaseDelay = 100 * time.Millisecond
	delays.MaxDelay = 3 * time.Second
	return grpc.ConnectParams{Backoff: delays, MinConnectTimeout: 5 * time.Second}
}
