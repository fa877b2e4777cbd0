// Package sdk is for authors of wasmproxy plugins in Go. The same source builds
// with TinyGo, to some twenty to forty kilobytes, and with standard Go, to two megabytes.
//
// A plugin is a main package that registers itself in an init function. Its
// handlers are ordinary functions over typed events:
//
//	package main
//
//	import wp "github.com/wasmproxy/wasmproxy/sdk"
//
//	func main() {} // never runs
//
//	func init() {
//		wp.Plugin("cpu-boost", "1.0.0").
//			Needs(wp.CapResources, wp.CapAnnotations).
//			OnPreCreateContainer(boost, wp.Match{Namespaces: []string{"prod-*"}})
//	}
//
//	func boost(c *wp.PreCreateContainer) error {
//		if v, _ := c.Pod().Annotation("example.com/boost"); v != "2x" {
//			return nil
//		}
//		c.Resources().SetCPUQuota(2 * c.Resources().CPUQuota())
//		return c.SetAnnotation("example.com/boosted", "true")
//	}
//
// Build it with one of these, and put the file into the proxy's plugin directory:
//
//	tinygo build -target=wasip1 -buildmode=c-shared -scheduler=none -opt=z -no-debug -o 10-cpu-boost.wasm .
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -ldflags='-s -w' -o 10-cpu-boost.wasm .
//
// # Errors
//
// A setter returns the host's refusal, and also remembers it: a handler that
// ignores it, as boost does, still fails. All changes of a failed handler are
// dropped. A plugin that can do without says so with [Handled]. A getter returns
// nothing for what is not there. If the host refuses a read, the handler fails, too,
// unless the plugin asks [ReadError] for it.
//
// Reads show the event as earlier plugins left it. What this plugin sets is not
// visible to its own getters.
//
// # Capabilities
//
// A plugin can do what it declares with [Registration.Needs] and the operator grants;
// all else is refused with [ErrDenied], reads of the environment too. The methods
// say what they need. Some capabilities are granted by default.
//
// # Other pods
//
// [FindPod], [FindContainer] and [Pods] find what the proxy knows. What they return
// has setters of its own, which take effect after the call: so a control loop, with
// [Registration.OnTick], changes containers that run.
//
// # Tests
//
// On the machine that builds it a plugin is tested with go test and package
// sdktest, which calls the registered handlers over events that the test makes up.
//
// # What it is not
//
// The package does no I/O, and knows no CRI message. What many plugins need besides is in packages of its own:
// [github.com/wasmproxy/wasmproxy/sdk/json], [github.com/wasmproxy/wasmproxy/sdk/glob],
// [github.com/wasmproxy/wasmproxy/sdk/image] and [github.com/wasmproxy/wasmproxy/sdk/quantity].
// It imports nothing that TinyGo makes large: no reflect, encoding/json, fmt,
// time or sync. It keeps package state, because a guest runs one call at a time.
// ABI.md in package abi specifies what it is built on.
package sdk
