package simulate

import (
	"strings"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// Redact returns the result without the values of environment variables and of registry
// credentials, those of earlier requests included, in what it shows of the requests, and without them
// in what the plugin keeps. Out of what the plugin said package plugin has left them.
func (res Result) Redact(earlier ...proto.Message) Result {
	var secrets []string
	for _, m := range append([]proto.Message{res.Request, res.Sent}, earlier...) {
		if m != nil {
			secrets = append(secrets, intercept.Secrets(m, abi.AllCapabilities)...)
		}
	}
	res.redactor = plugin.NewRedactor(secrets...)
	res.KV, res.KVBefore = redactAll(res.redactor, res.KV), redactAll(res.redactor, res.KVBefore)
	return res
}

func redactAll(r *plugin.Redactor, all map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range all {
		out[r.Text(key)] = r.Text(value)
	}
	return out
}

// Changes returns how the request that the backend got differs from that which came.
func (res Result) Changes() []Difference {
	if res.Sent == nil {
		return nil
	}
	return res.differences(Diff(res.Request, res.Sent))
}

// Fields returns what an update of another container sets.
func (res Result) Fields(u *runtimeapi.UpdateContainerResourcesRequest) []Difference {
	return res.differences(Fields(u))
}

func (res Result) differences(all []Difference) []Difference {
	if res.redactor == nil {
		return all
	}
	for i, d := range all {
		d.rewrite(func(value string) string {
			if strings.HasPrefix(value, `"`) { // a text
				return res.redactor.Text(value)
			}
			return value
		})
		all[i] = d.Redacted()
	}
	return all
}
