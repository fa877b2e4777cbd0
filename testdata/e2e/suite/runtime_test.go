package suite_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// TestRuntime makes sure which runtime it is that all tests run on, and that the
// proxy leaves to it which calls there are: containerd 1.6 has no RuntimeConfig.
func TestRuntime(t *testing.T) {
	runtime := node.StartRuntime(t)
	code := codes.OK
	if runtime.NoRuntimeConfig {
		code = codes.Unimplemented
	}
	node.StartProxy(t)
	client := node.DialCRI(t, runtime.ProxyEndpoint)
	resp, err := client.Version(t.Context(), &cri.VersionRequest{})
	if err != nil || resp.GetRuntimeName() != runtime.Name || !strings.HasPrefix(resp.GetRuntimeVersion(), runtime.Version) {
		t.Errorf("the runtime is %s %s, want %s %s (%v)", resp.GetRuntimeName(), resp.GetRuntimeVersion(), runtime.Name, runtime.Version, err)
	}
	if _, err := client.RuntimeConfig(t.Context(), &cri.RuntimeConfigRequest{}); status.Code(err) != code {
		t.Errorf("RuntimeConfig: %v, want %v", err, code)
	}
}
