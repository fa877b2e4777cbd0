package suite_test

import (
	"encoding/json"
	"testing"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// record is a line of wasmproxy's log about a plugin.
type record struct {
	Plugin, Hook, Namespace, Pod, Text string
	OtherID                            string `json:"other_id"` // of a pod or container that is not the event's own
}

// records returns the lines with this message, of one plugin.
func records(t *testing.T, proxy *node.Proxy, message, plugin string) (all []record) {
	t.Helper()
	proxy.Records(t, message, func(line []byte) error {
		var r record
		err := json.Unmarshal(line, &r)
		if r.Plugin == plugin {
			all = append(all, r)
		}
		return err
	})
	return all
}
