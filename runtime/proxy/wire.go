package proxy

import (
	"time"

	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // for a caller that compresses
	"google.golang.org/grpc/keepalive"

	"github.com/wasmproxy/wasmproxy/runtime/cri"
)

// maxMessage is in bytes. Kubelet and containerd accept 16 MiB; the end points
// are to enforce their limits, so this one only keeps a broken peer from
// filling the node's memory.
const maxMessage = 256 << 20

// frames makes a call to the backend carry *cri.Frame.
var frames = grpc.ForceCodecV2(cri.Codec{})

func serverOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(cri.Codec{}),
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxSendMsgSize(maxMessage),
		// Whether a caller may ping often is not for a proxy to decide.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
	}
}
