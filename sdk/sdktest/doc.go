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
// It knows the tables of the ABI: which field a hook may change, of which type, and with
// which capability. It is not a proxy. Ranges of numbers, names of cgroup files and sizes
// are not checked, and the configuration is not checked against the plugin's schema. Fuel,
// time and memory have no limit. Package variables keep their values from case to case.
// wasmproxy plugin test plays the same fixtures to the built module, loaded anew for each
// case, with the rules of the proxy.
package sdktest
