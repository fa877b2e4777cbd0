package node

import (
	"context"
	"errors"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/artifact"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/isolation"
)

// The changes of Versions. The second one of qos comes after the first.
var (
	halfBurst = []artifact.Change{
		{File: "plugins-wasm/qos/main.go", From: `wp.Plugin("qos", "1.0.0")`, To: `wp.Plugin("qos", "1.1.0")`},
		{File: "plugins-wasm/qos/main.go", From: `clamped(us, quotaOf(c))`, To: `clamped(us, quotaOf(c))/2`},
	}
	trap = []artifact.Change{
		{File: "plugins-wasm/qos/main.go", From: `"1.1.0"`, To: `"1.2.0"`},
		{File: "plugins-wasm/qos/main.go", From: "func create(c *wp.PreCreateContainer) error {", To: `func create(c *wp.PreCreateContainer) error {
			if _, ok, _ := cpuBurst.of(c.Container); ok {
				panic("planted")
			}`},
	}
	lowerFactor = []artifact.Change{
		{File: "plugins-wasm/memory-qos/main.go", From: `"memory-qos", "1.0.0"`, To: `"memory-qos", "1.1.0"`},
		{File: "plugins-wasm/memory-qos/config.go", From: `parseFactor, whole/10*9)`, To: `parseFactor, whole/10*8)`},
	}
	// crash ends the proxy once it has loaded the version that traps.
	crash = artifact.Change{
		File: "runtime/loader/loader.go", From: "\thave.RefCounted = NewRefCounted(",
		To: "\tif have.Manifest().Version == \"1.2.0\" {\n\t\tgo panic(\"planted\")\n\t\tselect {}\n\t}\n\thave.RefCounted = NewRefCounted(",
	}
)

// Versions is the part of tests that change plugins: qos-next.wasm, which allows half the burst, qos-trap.wasm, which also traps
// when a container is created whose pod asks for a burst, memory-qos.wasm with memory-qos-next.wasm, which throttles earlier,
// and wasmproxy-crashes, which crashes when it loads qos-trap.wasm.
func Versions(ctx context.Context, b *artifact.Builder, w isolation.Workspace) error {
	return errors.Join(
		Bundled("memory-qos")(ctx, b, w),
		b.ChangedPlugin(ctx, w.Program("qos-next.wasm"), "qos", halfBurst...),
		b.ChangedPlugin(ctx, w.Program("qos-trap.wasm"), "qos", append(halfBurst, trap...)...),
		b.ChangedPlugin(ctx, w.Program("memory-qos-next.wasm"), "memory-qos", lowerFactor...),
		b.Planted(ctx, w.Program("wasmproxy-crashes"), crash),
	)
}
