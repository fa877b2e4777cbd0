package pods

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/singleflight"
	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// imageID is a digest of SHA-256, in CRI-O without the algorithm.
var imageID = regexp.MustCompile(`^(sha256:)?[0-9a-f]{64}$`)

// IsImageID reports whether a text is an image's id. No runtime takes such a text for a name.
func IsImageID(text string) bool { return imageID.MatchString(text) }

// imageReported is the image of a container of which the runtime tells an id and a name. A runtime that has lost the name
// tells the id in its place, which is not taken for one.
func imageReported(id, name string) *runtimeapi.ImageSpec {
	switch {
	case id == "" || id == name:
		return &runtimeapi.ImageSpec{Image: name}
	case IsImageID(name):
		name = ""
	}
	return &runtimeapi.ImageSpec{Image: id, UserSpecifiedImage: name}
}

// ImageBackend is what is asked of images. Every [runtimeapi.ImageServiceClient] is one.
type ImageBackend interface {
	ImageStatus(context.Context, *runtimeapi.ImageStatusRequest, ...grpc.CallOption) (*runtimeapi.ImageStatusResponse, error)
}

// Images asks the backend for the digests of images, of an id once. It is safe for concurrent use.
type Images struct {
	from    ImageBackend
	flights singleflight.Group

	mu    sync.Mutex
	known map[asked][]string
}

// asked is an image as the backend is asked for it, and its user's name: the same image may be pulled by another name
// later, and then has more digests.
type asked struct{ image, name string }

// maxImages is how many images are known at a time. A node has some hundred.
const maxImages = 1024

// ErrNoImage is why nothing is known of an image that the backend does not have.
var ErrNoImage = errors.New("the backend does not have the image")

// NewImages returns an Images that knows no image.
func NewImages(from ImageBackend) *Images { return &Images{from: from, known: map[asked][]string{}} }

// RepoDigests returns the digests of an image as its registries name it, in the backend's order. The image is named as in a
// container's request: by its id or otherwise; name is its user's. Callers that ask for one image at the same time share
// one call. An error of the backend is wrapped. The list is not to be changed.
func (i *Images) RepoDigests(ctx context.Context, image, name string) ([]string, error) {
	key := asked{image, name}
	i.mu.Lock()
	digests, ok := i.known[key]
	i.mu.Unlock()
	if ok {
		return digests, nil
	}
	return shared(ctx, &i.flights, "image "+image+" "+name, func(ctx context.Context) (_ []string, err error) {
		defer wrap(&err, "image", image)
		spec := &runtimeapi.ImageSpec{Image: image, UserSpecifiedImage: name}
		resp, err := i.from.ImageStatus(ctx, &runtimeapi.ImageStatusRequest{Image: spec})
		if err != nil {
			return nil, err
		}
		if resp.GetImage() == nil {
			return nil, fmt.Errorf("%w", ErrNoImage)
		}
		digests := slices.Clone(resp.GetImage().GetRepoDigests())
		for n, d := range digests { // cri-dockerd sets a scheme before them
			digests[n] = strings.TrimPrefix(d, "docker-pullable://")
		}
		// What never becomes another image is remembered. An image without digests was not pulled, and may still be.
		fixed := IsImageID(image) || strings.Contains(image, "@sha256:")
		if fixed && len(digests) > 0 {
			i.mu.Lock()
			defer i.mu.Unlock()
			if len(i.known) >= maxImages {
				clear(i.known)
			}
			i.known[key] = digests
		}
		return digests, nil
	})
}
