package koord_test

import "testing"

// TestW02UnknownPod creates a container in a pod that the proxy has not seen:
// it was run around the proxy. koord-runtime-proxy panics when it stores the
// container, which the runtime has created by then.
func TestW02UnknownPod(t *testing.T) {
	scenario{incumbent: "proxy has ended: panic: .*nil pointer", run: func(n *node) error {
		server := n.serve("10-a.json", echoing, "Fail", allHooks...)
		n.start()
		n.runtime.mu.Lock() // wasmproxy may be listing them
		n.runtime.pods["around"] = runRequest()
		n.runtime.mu.Unlock()
		_, err := n.create("around", containerConfig(), podConfig())
		if n.well(err) != nil {
			return n.well(err)
		}
		return want("hooks that the server was told of", len(server.toldOf("PreCreateContainer")), 1)
	}}.test(t)
}
