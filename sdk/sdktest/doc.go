// Package sdktest calls a plugin that is written with package sdk from a Go
// test, on the machine that builds it and without WebAssembly.
//
// A test describes what the plugin is told as a [Case], and calls the plugin
// that the package under test has registered:
//
//	changes, err := sdktest.Case{
//		Hook: abi.PreCreateContainer,
//		Pod:  sdktest.Fields{"annotations": map[string]string{"example.com/boost": "2x"}},
//		Container: sdktest.Fields{"name": "web", "resources.cpu_quota": 50_000},
//	}.Call(t, sdktest.Native(t, "", nil))
//
// or writes cases and answers down as fixtures, which serve every language and tool:
//
//	sdktest.Run(t, "testdata/boost.json")
//
// What the plugin sets goes through the proxy's own rules (package
// runtime/plugin), so a test sees the refusals that a node would give. A case
// takes any plugin.Plugin: the same cases serve the plugin's .wasm file.
//
// It is not a proxy: there is no chain, no failure policy, no runtime and no
// cgroup behind it. Package variables keep their values from case to case, the
// configuration is not checked against the plugin's schema, and fuel, time and memory
// have no limit: wasmproxy plugin test plays the same fixtures to the built module,
// loaded anew for each case, as the proxy would.
package sdktest
