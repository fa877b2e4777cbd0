package sdk

import "github.com/wasmproxy/wasmproxy/abi"

// PrePullImage comes before an image is pulled.
type PrePullImage struct {
	image
	puller
	refusal
}

// SetImage sets the image to pull. It needs [CapImage].
func (*PrePullImage) SetImage(image string) error {
	return setText("SetImage", abi.Event, abi.EventImage, image)
}

// PostPullImage comes after an image was pulled.
type PostPullImage struct {
	image
	puller
}

// ImageRef returns what the runtime calls the image that it pulled.
func (*PostPullImage) ImageRef() string { return readText("ImageRef", abi.Event, abi.EventImageRef) }

// PreRemoveImage comes before an image is removed.
type PreRemoveImage struct {
	image
	refusal
}

// PostRemoveImage comes after an image was removed.
type PostRemoveImage struct{ image }

// image is what a hook of images embeds.
type image struct{}

// Image returns the image as the request names it.
func (image) Image() string { return readText("Image", abi.Event, abi.EventImage) }

// puller is what a hook of PullImage embeds.
type puller struct{}

// Pod returns the pod that the image is pulled for. Its name is "" if the request
// does not say.
func (puller) Pod() Pod { return Pod{} }
