// Package enforce has pods and containers have the values that plugins want: cgroup files in the kernel, and CRI
// fields in the container runtime. A [Ledger] has a [Record] of what plugins and kubelet want of each object, and decides. An
// [Enforcer] compares that with what is, and writes or sends the difference; when no plugin wants a value any more,
// kubelet's comes back. See RATIONALE.md.
//
// It gets objects and changes, and knows of no hook, chain or message: package intercept asks plugins.
package enforce

import (
	"context"
	"time"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/cgroup"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
	"github.com/wasmproxy/wasmproxy/runtime/workqueue"
)

// Enforcer is the parts of a node that values are enforced with. All are required but Cgroups. Its methods are safe
// for concurrent use.
type Enforcer struct {
	Observer observe.Observer
	Store    *pods.Store
	Backend  Backend
	Ledger   *Ledger
	Cgroups  *cgroup.FS                         // nil on a node without a cgroup file system
	Node     interface{ Load() *crifield.Node } // an atomic pointer, or a *crifield.Node that stays
	Queue    *workqueue.Queue
}

// Backend is what is asked of the container runtime besides the calls that pass.
// Every [runtimeapi.RuntimeServiceClient] is one.
type Backend interface {
	pods.Backend
	UpdateContainerResources(
		context.Context, *runtimeapi.UpdateContainerResourcesRequest, ...grpc.CallOption,
	) (*runtimeapi.UpdateContainerResourcesResponse, error)
}

// readTime is how long the runtime may take to tell of a container.
const readTime = 2 * time.Second
