package backend

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

// Handlers returns the runtime handlers that the container runtime has told of, by name. They are the Backend's.
func (b *Backend) Handlers() []status.Handler { return b.handlers.Load().all }

// runtimeHandlers are those that the container runtime has told of.
type runtimeHandlers struct {
	life uint64 // of the connection; 0 if it has not been asked, or has not answered all
	all  []status.Handler
}

// Describe finds out what plugins and operators may know of the node. What the container runtime does not answer stays as it
// was: it may be about to restart.
func (b *Backend) Describe(ctx context.Context) {
	b.describing.Lock()
	defer b.describing.Unlock()
	node, handlers := *b.Node.Load(), runtimeHandlers{life: b.life.Load()}
	machine(&node)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if v, err := b.Client.Version(ctx, &runtimeapi.VersionRequest{}); answered(err) {
		node.RuntimeName, node.RuntimeVersion = v.GetRuntimeName(), v.GetRuntimeVersion()
	} else {
		handlers.life = 0
	}
	if c, err := b.Client.RuntimeConfig(ctx, &runtimeapi.RuntimeConfigRequest{}); answered(err) {
		if node.CgroupDriver = ""; c.GetLinux() != nil {
			node.CgroupDriver = strings.ToLower(c.GetLinux().GetCgroupDriver().String())
		}
	} else {
		handlers.life = 0
	}
	if s, err := b.Client.Status(ctx, &runtimeapi.StatusRequest{}); answered(err) {
		node.RuntimeHandlers = nil
		for _, h := range s.GetRuntimeHandlers() {
			features := h.GetFeatures()
			handlers.all = append(handlers.all, status.Handler{
				Name: h.GetName(), RecursiveReadOnlyMounts: features.GetRecursiveReadOnlyMounts(), UserNamespaces: features.GetUserNamespaces(),
			})
			node.RuntimeHandlers = append(node.RuntimeHandlers, h.GetName())
		}
		slices.Sort(node.RuntimeHandlers)
		slices.SortFunc(handlers.all, func(a, b status.Handler) int { return cmp.Compare(a.Name, b.Name) })
		b.handlers.Store(&handlers)
	}
	b.Node.Store(&node)
}

// answered reports whether a runtime has answered. Older ones do not have every method.
func answered(err error) bool { return err == nil || grpcstatus.Code(err) == codes.Unimplemented }

// DescribeChanged is Describe if the runtime may be another than the one that was asked, has not answered all, or was not asked
// yet, since there is no plugin.
func (b *Backend) DescribeChanged(ctx context.Context) {
	if b.handlers.Load().life != b.life.Load() {
		b.Describe(ctx)
	}
}

// machine notes what the kernel says.
func machine(node *crifield.Node) {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		node.Memory = int64(info.Totalram) * int64(info.Unit) // the fields' types differ between architectures
	}
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		node.Kernel = unix.ByteSliceToString(name.Release[:])
	}
	online, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err == nil {
		node.CPUs = len(rules.Numbers(strings.TrimSpace(string(online))))
	}
}
