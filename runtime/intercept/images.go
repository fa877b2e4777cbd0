package intercept

import (
	"context"
	"errors"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

// repoDigests asks the runtime for the digests of an image, unless it has told them.
func repoDigests(ctx context.Context, images *pods.Images, image *runtimeapi.ImageSpec) ([]string, abi.Errno) {
	switch {
	case image.GetImage() == "":
		return nil, abi.OK
	case images == nil:
		return nil, abi.Unsupported
	}
	ctx, cancel := context.WithTimeout(ctx, imageTime)
	defer cancel()
	digests, err := images.RepoDigests(ctx, image.GetImage(), image.GetUserSpecifiedImage())
	switch {
	case errors.Is(err, pods.ErrNoImage):
		return nil, abi.NotFound
	case err != nil:
		return nil, abi.Unsupported
	case len(digests) > abi.MaxEntries:
		return nil, abi.TooLarge
	}
	return digests, abi.OK
}
