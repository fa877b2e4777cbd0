package remote

import (
	"context"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
)

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

// dial returns a connection that is made when it is first used and again when
// it was lost. A call meanwhile fails at once instead of waiting. Hook servers
// see the authority that they always saw.
func dial(endpoint string) (*grpc.ClientConn, error) {
	connect := func(ctx context.Context, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", endpoint)
	}
	return grpc.NewClient("passthrough:///localhost",
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
}
