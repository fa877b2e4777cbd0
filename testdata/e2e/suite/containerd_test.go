package suite_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/artifact"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// TestContainerd makes sure which containerd it is that all tests run on, and
// that the proxy leaves to it which calls there are: 1.6 has no RuntimeConfig.
func TestContainerd(t *testing.T) {
	debian, err := artifact.DebianContainerd()
	if err != nil {
		t.Fatal(err)
	}
	version, code := "v2.4.", codes.OK
	if debian {
		version, code = "1.6.", codes.Unimplemented
	}
	node.StartContainerd(t)
	node.StartProxy(t)
	client := node.DialCRI(t, node.ProxyEndpoint)
	resp, err := client.Version(t.Context(), &cri.VersionRequest{})
	if err != nil || !strings.HasPrefix(resp.GetRuntimeVersion(), version) {
		t.Errorf("containerd is %s, want %s (%v)", resp.GetRuntimeVersion(), version, err)
	}
	if _, err := client.RuntimeConfig(t.Context(), &cri.RuntimeConfigRequest{}); status.Code(err) != code {
		t.Errorf("RuntimeConfig: %v, want %v", err, code)
	}
}
