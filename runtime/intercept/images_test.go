package intercept_test

import (
	"context"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

// imageService tells the digests of images by what requests name them. "down" cannot be told.
type imageService map[string][]string

func (s imageService) ImageStatus(
	_ context.Context, r *runtimeapi.ImageStatusRequest, _ ...grpc.CallOption,
) (*runtimeapi.ImageStatusResponse, error) {
	digests, ok := s[r.GetImage().GetImage()]
	switch {
	case r.GetImage().GetImage() == "down":
		return nil, status.Error(codes.Unavailable, "away")
	case !ok:
		return &runtimeapi.ImageStatusResponse{}, nil
	}
	return &runtimeapi.ImageStatusResponse{Image: &runtimeapi.Image{RepoDigests: digests}}, nil
}

// image is what a plugin reads of a container's image.
type image struct {
	name    string
	named   abi.Errno
	id      string
	digests []string
	told    abi.Errno
}

func imageOf(ctx context.Context, ev plugin.Event, o abi.Object) (i image) {
	i.name, i.named = ev.Text(o, abi.ContainerImage)
	i.id, _ = ev.Text(o, abi.ContainerImageID)
	i.digests, i.told = ev.List(ctx, o, abi.ContainerImageRepoDigests)
	return i
}

// TestImages has plugins read the image of a container that is created: as kubelet asks for it, as kubelet did before it told
// the user's name, and as crictl does. An id is never a name. The digests are those that the runtime has of what is asked for.
func TestImages(t *testing.T) {
	digests := []string{"docker.io/library/web@sha256:aa"}
	for _, test := range []struct {
		title string
		spec  *runtimeapi.ImageSpec
		want  image
	}{
		{"by kubelet", &runtimeapi.ImageSpec{Image: imageID, UserSpecifiedImage: "web:1"}, image{"web:1", abi.OK, imageID, digests, abi.OK}},
		{"by the id alone", &runtimeapi.ImageSpec{Image: imageID}, image{"", abi.NotFound, imageID, digests, abi.OK}},
		{"of CRI-O, by the id alone", &runtimeapi.ImageSpec{Image: imageID[len("sha256:"):]}, image{"", abi.NotFound, imageID[len("sha256:"):], nil, abi.NotFound}},
		{"by a name", &runtimeapi.ImageSpec{Image: "web:1"}, image{"web:1", abi.OK, "", digests, abi.OK}},
		{"that the runtime does not tell", &runtimeapi.ImageSpec{Image: "down"}, image{"down", abi.OK, "", nil, abi.Unsupported}},
		{"that is not said", nil, image{"", abi.OK, "", nil, abi.OK}},
	} {
		t.Run(test.title, func(t *testing.T) {
			var before, later image
			n := newNode(t, []plugin.Member{
				on(abi.PreCreateContainer, func(ctx context.Context, ev plugin.Event, _ *plugin.Adjustment) error {
					before = imageOf(ctx, ev, abi.Container)
					return nil
				}),
				on(abi.PreStartContainer, func(ctx context.Context, ev plugin.Event, _ *plugin.Adjustment) error {
					handle, _ := ev.Find(abi.ByContainerID, "c1", nil)
					later = imageOf(ctx, ev, handle)
					return nil
				}),
			}, func(o *intercept.Options) {
				o.Images = pods.NewImages(imageService{imageID: digests, "web:1": digests})
			})
			request := createRequest()
			request.Config.Image = test.spec
			n.runPodWith(podConfig(), request)
			_, err := n.call(t.Context(), "StartContainer", &runtimeapi.StartContainerRequest{ContainerId: "c1"}, &runtimeapi.StartContainerResponse{})
			n.must(err)
			for when, got := range map[string]image{"before": before, "later": later} {
				same := got.name == test.want.name && got.named == test.want.named && got.id == test.want.id && got.told == test.want.told
				if !same || !slices.Equal(got.digests, test.want.digests) {
					t.Errorf("%s: it is %+v, want %+v", when, got, test.want)
				}
			}
		})
	}
}
