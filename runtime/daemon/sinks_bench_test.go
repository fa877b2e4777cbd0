package daemon_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/daemon"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/observe/slogsink"
)

// BenchmarkSinks is CreateContainer with one wasm plugin that changes two fields: with the sinks
// that are always there, with each of the others, and with all. The caller samples each call, and
// the collector runs in the same process.
func BenchmarkSinks(b *testing.B) {
	for _, c := range []struct {
		name          string
		audit, traces bool
	}{{"none", false, false}, {"audit", true, false}, {"traces", false, true}, {"all", true, true}} {
		b.Run(c.name, func(b *testing.B) {
			if c.traces {
				newCollector(b)
			}
			n := newNode(b)
			if c.audit {
				n.config.AuditLog = filepath.Join(n.dir, "audit.json")
			}
			n.put("10-quota.wasm", "quota")
			n.start(func(ctx context.Context, c *config.Config, _ observe.Observer) error { // which logs each hook
				return daemon.Run(ctx, c, slogsink.New(slog.New(slog.NewTextHandler(n.log, nil))))
			})
			n.awaitActive("10-quota")
			pod, err := n.kubelet.RunPodSandbox(b.Context(), &runtimeapi.RunPodSandboxRequest{Config: podNamed("web")})
			n.must(err)
			ctx := tracedBy(b.Context(), sampled)
			b.ReportAllocs()
			for b.Loop() {
				_, err := n.createContainer(ctx, pod.PodSandboxId, "main")
				n.must(err)
			}
		})
	}
}
