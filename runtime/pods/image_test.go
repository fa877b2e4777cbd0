package pods

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	crioID       = "7079489e321a41e1898320997a55fe343a57ee84d6835793d8ea702339958851"
	containerdID = "sha256:" + crioID
)

// imageService answers from a table. It counts what it was asked, and waits for hold if that is not nil.
type imageService struct {
	mu      sync.Mutex
	digests map[string][]string
	asked   []string
	err     error
	hold    chan struct{}
}

func (s *imageService) ImageStatus(
	ctx context.Context, r *runtimeapi.ImageStatusRequest, _ ...grpc.CallOption,
) (*runtimeapi.ImageStatusResponse, error) {
	if s.hold != nil {
		select {
		case <-s.hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r.GetImage().GetImage())
	digests, ok := s.digests[r.GetImage().GetImage()]
	if !ok || s.err != nil {
		return &runtimeapi.ImageStatusResponse{}, s.err
	}
	return &runtimeapi.ImageStatusResponse{Image: &runtimeapi.Image{Id: r.GetImage().GetImage(), RepoDigests: digests}}, nil
}

// TestRepoDigests: an id is asked for once with each name, since a pull by another name adds digests. What may become another
// image is asked for each time, and so is what has no digests yet or could not be told.
func TestRepoDigests(t *testing.T) {
	service := &imageService{digests: map[string][]string{
		containerdID: {"docker.io/library/busybox@sha256:1", "docker-pullable://quay.io/x/busybox@sha256:1"}, crioID: nil, "busybox:1": {"busybox@sha256:2"},
	}}
	images := NewImages(service)
	for _, test := range []struct {
		image, name string
		want        string
		err         error
	}{
		{containerdID, "busybox:1", "docker.io/library/busybox@sha256:1 quay.io/x/busybox@sha256:1", nil},
		{containerdID, "busybox:1", "docker.io/library/busybox@sha256:1 quay.io/x/busybox@sha256:1", nil},
		{containerdID, "quay.io/x/busybox:1", "docker.io/library/busybox@sha256:1 quay.io/x/busybox@sha256:1", nil},
		{crioID, "", "", nil},
		{crioID, "", "", nil},
		{"busybox:1", "busybox:1", "busybox@sha256:2", nil},
		{"busybox:1", "busybox:1", "busybox@sha256:2", nil},
		{"none", "", "", ErrNoImage},
	} {
		got, err := images.RepoDigests(t.Context(), test.image, test.name)
		if strings.Join(got, " ") != test.want || !errors.Is(err, test.err) {
			t.Errorf("%s %s: %q, %v", test.image, test.name, got, err)
		}
	}
	if want := []string{containerdID, containerdID, crioID, crioID, "busybox:1", "busybox:1", "none"}; !slices.Equal(service.asked, want) {
		t.Errorf("the runtime was asked for %q, want %q", service.asked, want)
	}
	service.err = status.Error(codes.Unavailable, "away")
	if _, err := images.RepoDigests(t.Context(), "other", ""); status.Code(err) != codes.Unavailable {
		t.Errorf("a failure is %v", err)
	}
}

// TestRepoDigestsAreBounded asks for more ids than are kept.
func TestRepoDigestsAreBounded(t *testing.T) {
	service := &imageService{digests: map[string][]string{}}
	images := NewImages(service)
	for i := range maxImages + 10 {
		id := fmt.Sprintf("sha256:%064x", i)
		service.digests[id] = []string{id}
		if _, err := images.RepoDigests(t.Context(), id, ""); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(images.known); n > maxImages {
		t.Errorf("%d images are kept, want at most %d", n, maxImages)
	}
}

// TestRepoDigestsEndWithTheCaller: who asks waits no longer than it may, and the answer is there for the next one.
func TestRepoDigestsEndWithTheCaller(t *testing.T) {
	service := &imageService{digests: map[string][]string{containerdID: {"a@sha256:1"}}, hold: make(chan struct{})}
	images := NewImages(service)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := images.RepoDigests(ctx, containerdID, ""); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a caller whose time is up gets %v", err)
	}
	close(service.hold)
	got, err := images.RepoDigests(t.Context(), containerdID, "")
	if err != nil || len(got) != 1 || len(service.asked) != 1 {
		t.Errorf("the next caller gets %q, %v, and the runtime was asked %d times", got, err, len(service.asked))
	}
}

// TestImageAfterARestart reads from statuses what was a request: an id is an image's id, and never its name. CRI-O
// tells any name that the image has; what the request had stands in an annotation.
func TestImageAfterARestart(t *testing.T) {
	for _, test := range []struct {
		status           *runtimeapi.ContainerStatus
		info             string
		wantID, wantName string
	}{
		{&runtimeapi.ContainerStatus{ImageId: crioID, Image: &runtimeapi.ImageSpec{Image: "quay.io/some/name:1"}},
			`{"runtimeSpec": {"annotations": {"io.kubernetes.cri-o.Image": "` + crioID + `"}, "process": {}}}`, crioID, ""},
		{&runtimeapi.ContainerStatus{ImageId: crioID, Image: &runtimeapi.ImageSpec{Image: "quay.io/some/name:1"}},
			`{"runtimeSpec": {"annotations": {"io.kubernetes.cri-o.Image": "asked:1"}, "process": {}}}`, crioID, "asked:1"},
		{&runtimeapi.ContainerStatus{ImageId: crioID, Image: &runtimeapi.ImageSpec{Image: crioID}}, `{}`, crioID, ""},
		{&runtimeapi.ContainerStatus{Image: &runtimeapi.ImageSpec{Image: containerdID}}, `{}`, containerdID, ""},
		{&runtimeapi.ContainerStatus{Image: &runtimeapi.ImageSpec{Image: "name:1"}}, `{}`, "name:1", ""},
		{&runtimeapi.ContainerStatus{ImageId: containerdID, Image: &runtimeapi.ImageSpec{Image: "name:1"}},
			`{"config": {"image": {"image": "` + containerdID + `", "user_specified_image": "asked:1"}}}`, containerdID, "asked:1"},
	} {
		test.status.Id = "c"
		got, err := readContainerStatus(&runtimeapi.ContainerStatusResponse{Status: test.status, Info: map[string]string{"info": test.info}})
		if image := got.Config.GetImage(); err != nil || image.GetImage() != test.wantID || image.GetUserSpecifiedImage() != test.wantName {
			t.Errorf("%s: the image is %v, %v", test.info, image, err)
		}
	}
}
