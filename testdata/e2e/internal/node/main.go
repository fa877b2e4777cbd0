package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/artifact"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/image"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/isolation"
)

// Main is the TestMain of tests that need nodes. It builds wasmproxy and its
// plugins, what every node has, and these programs; then it runs the tests inside.
func Main(m *testing.M, programs ...artifact.Program) {
	builder, err := artifact.NewBuilder(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	isolation.Main(m, isolation.Stages{
		Cache: builder.Cache(),
		Outside: func(ctx context.Context, w isolation.Workspace) error {
			return prepare(ctx, builder, w, programs)
		},
		Inside: func(ctx context.Context, w isolation.Workspace) error {
			return image.Serve(ctx, RegistryAddress, w.Program("multicall"))
		},
	})
}

func prepare(ctx context.Context, b *artifact.Builder, w isolation.Workspace, programs []artifact.Program) error {
	return errors.Join(
		artifact.InstallDebianPackages(ctx, artifact.DebianPackages...),
		b.Programs(ctx, w.Bin(), programs...),
		b.Containerd(ctx, w.Bin()),
		b.Multicall(ctx, w.Bin()),
		b.Project(ctx, w.Bin(), "./cmd/wasmproxy"),
		b.Koordinator(ctx, w.Bin()),
		b.Koordlet(ctx, w.Bin()),
		buildPlugins(ctx, b, w),
	)
}

// buildPlugins builds the tests' own plugins, and takes the stock one as it is committed.
func buildPlugins(ctx context.Context, b *artifact.Builder, w isolation.Workspace) error {
	for _, plugin := range []string{"noop", "annotate", "witness"} {
		if err := b.Plugin(ctx, w.Program(plugin+".wasm"), "./testdata/plugins/"+plugin); err != nil {
			return err
		}
	}
	for _, plugin := range []string{"overhead", "roster", "yield"} {
		if err := b.TinyGoPlugin(ctx, w.Program(plugin+".wasm"), "testdata/plugins/"+plugin); err != nil {
			return err
		}
	}
	return os.Symlink(b.ProjectFile("plugins-wasm/qos/qos.wasm"), w.Program("qos.wasm"))
}
