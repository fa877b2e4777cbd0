package daemon_test

import (
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-client/pkg/fake"

	"github.com/wasmproxy/wasmproxy/runtime/daemon"
)

// Pulls that plugins hook go to the image endpoint, where that is another.
func TestImageEndpoint(t *testing.T) {
	n := newNode(t)
	images := fake.NewFakeRemoteRuntime()
	n.config.ImageEndpoint = n.dir + "/images.sock"
	n.must(images.Start("unix://" + n.config.ImageEndpoint))
	t.Cleanup(images.Stop)
	n.put("10-puller.wasm", "puller")
	n.put("10-puller.json", `{"grant": ["image"]}`)
	n.start(daemon.Run)
	n.await("plugins active", "10-puller")
	conn, err := grpc.NewClient("unix://"+n.config.Listen, grpc.WithTransportCredentials(insecure.NewCredentials()))
	n.must(err)
	defer conn.Close()
	client := runtimeapi.NewImageServiceClient(conn)
	_, err = client.PullImage(t.Context(), &runtimeapi.PullImageRequest{Image: &runtimeapi.ImageSpec{Image: "web:1"}})
	n.must(err)
	here, err := client.ListImages(t.Context(), &runtimeapi.ListImagesRequest{})
	n.must(err)
	if calls := images.ImageService.Called; len(here.GetImages()) != 1 || here.GetImages()[0].GetId() != "mirror/web:2" || calls[0] != "PullImage" {
		t.Errorf("images %v after %v", here.GetImages(), calls)
	}
	if calls := n.runtime.ImageService.Called; len(calls) != 0 {
		t.Errorf("the runtime was asked %v", calls)
	}
	_, err = client.RemoveImage(t.Context(), &runtimeapi.RemoveImageRequest{Image: &runtimeapi.ImageSpec{Image: "mirror/web:2"}})
	if status.Code(err) != codes.FailedPrecondition {
		t.Errorf("removing what the plugin keeps: %v", err)
	}
	n.end()
	n.await("msg=served", "hooks.PrePullImage=1", "hooks.PostPullImage=1", "hooks.PreRemoveImage=1")
}
