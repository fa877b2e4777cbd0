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

// Part builds what some tests need, or installs it, into the workspace's Bin.
type Part func(context.Context, *artifact.Builder, isolation.Workspace) error

// Programs is a part of these programs.
func Programs(programs ...artifact.Program) Part {
	return func(ctx context.Context, b *artifact.Builder, w isolation.Workspace) error {
		return b.Programs(ctx, w.Bin(), programs...)
	}
}

// HookServers is the part of tests that start a HookServer or koordlet.
func HookServers(ctx context.Context, b *artifact.Builder, w isolation.Workspace) error {
	return errors.Join(b.Koordinator(ctx, w.Bin()), b.Koordlet(ctx, w.Bin()))
}

// Bundled is a part of plugins that ship with wasmproxy, as they are committed.
func Bundled(names ...string) Part {
	return func(_ context.Context, b *artifact.Builder, w isolation.Workspace) error {
		var errs []error
		for _, name := range names {
			if name == "qos" {
				continue // each run has it
			}
			errs = append(errs, os.Symlink(b.ProjectFile("plugins-wasm/"+name+"/"+name+".wasm"), w.Program(name+".wasm")))
		}
		return errors.Join(errs...)
	}
}

// Whole is the parts of tests that need all that there is.
func Whole() []Part {
	return []Part{Programs(append(artifact.APIServer(), artifact.Kubelet(), artifact.Crictl)...), HookServers, Bundled("image-policy"), Versions}
}

// Raced is the part of tests whose wasmproxy has the race detector.
func Raced(ctx context.Context, b *artifact.Builder, w isolation.Workspace) error {
	return b.Raced(ctx, w.Bin())
}

// Main is the TestMain of tests that need nodes. It builds wasmproxy and its
// plugins, the container runtime, and these parts; then it runs the tests inside.
func Main(m *testing.M, parts ...Part) { MainNamed(RuntimeKind().ID, m, parts...) }

// MainNamed is Main for a run with a name of its own: runs of one name come one after another.
func MainNamed(name string, m *testing.M, parts ...Part) {
	if isolation.OnOwnMachine() {
		os.Exit(m.Run())
	}
	builder, err := artifact.NewBuilder(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	isolation.Main(m, isolation.Stages{
		Name:  name,
		Cache: builder.Cache(),
		Outside: func(ctx context.Context, w isolation.Workspace) error {
			return Prepare(ctx, builder, w, parts...)
		},
		Inside: func(ctx context.Context, w isolation.Workspace) error {
			return image.Serve(ctx, RegistryAddress, w.Bin())
		},
	})
}

// Prepare builds all that into a workspace.
func Prepare(ctx context.Context, b *artifact.Builder, w isolation.Workspace, parts ...Part) error {
	errs := []error{
		artifact.InstallDebianPackages(ctx, artifact.DebianPackages...),
		RuntimeKind().install(b, ctx, w.Bin()),
		b.ImagePrograms(ctx, w.Bin()),
		b.Proxy(ctx, w.Bin()),
		buildPlugins(ctx, b, w),
	}
	for _, part := range parts {
		errs = append(errs, part(ctx, b, w))
	}
	return errors.Join(errs...)
}

// OperationsPage is the document, whose examples a test gives to the API server, among the programs.
const OperationsPage = "operations.md"

// buildPlugins builds the tests' own plugins, and takes the stock one, those of testdata/wat and the document as they are committed.
// Two of them are built by Go: modules so large that an emulated machine takes its 30 s of processor time to compile one.
func buildPlugins(ctx context.Context, b *artifact.Builder, w isolation.Workspace) error {
	for _, plugin := range []string{"noop", "annotate"} {
		if err := b.Plugin(ctx, w.Program(plugin+".wasm"), "./testdata/plugins/"+plugin); err != nil {
			return err
		}
	}
	for _, plugin := range []string{"overhead", "roster", "setter", "witness", "yield"} {
		if err := b.TinyGoPlugin(ctx, w.Program(plugin+".wasm"), "testdata/plugins/"+plugin); err != nil {
			return err
		}
	}
	return errors.Join(
		os.Symlink(b.ProjectFile("plugins-wasm/qos/qos.wasm"), w.Program("qos.wasm")),
		os.Symlink(b.ProjectFile("docs/operations.md"), w.Program(OperationsPage)),
		os.Symlink(b.ProjectFile("testdata/wat/loop.wasm"), w.Program("loop.wasm")),
		os.Symlink(b.ProjectFile("testdata/wat/fail.wasm"), w.Program("fail.wasm")),
	)
}
