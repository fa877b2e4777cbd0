package kubelet

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestImageVolume: a volume that is an image is a mount of it, by its id and its user's name, which nobody can write to.
func TestImageVolume(t *testing.T) {
	p, _, err := Read([]byte(`
kind: Pod
metadata: {name: web, uid: u}
spec:
  volumes: [{name: models, image: {reference: "quay.io/models/a:1"}}]
  containers: [{name: web, image: nginx, volumeMounts: [{name: models, mountPath: /models, subPath: small}]}]
`))
	if err != nil {
		t.Fatal(err)
	}
	r, _ := Node{CgroupVersion: 2}.CreateContainer(p, &p.Spec.Containers[0], "sandbox")
	want := &runtimeapi.Mount{
		ContainerPath: "/models", Readonly: true, ImageSubPath: "small",
		Image: &runtimeapi.ImageSpec{Image: ImageID("quay.io/models/a:1"), UserSpecifiedImage: "quay.io/models/a:1"},
	}
	if diff := cmp.Diff(want, r.GetConfig().GetMounts()[0], protocmp.Transform()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if image := r.GetConfig().GetImage(); image.GetUserSpecifiedImage() != "nginx" || image.GetImage() != ImageID("nginx") {
		t.Errorf("the image is %v", image)
	}
}

// TestPull has kubelet add the tag latest, with which, or by the policy, it pulls an image that is there.
func TestPull(t *testing.T) {
	p := &Pod{}
	p.Metadata.Annotations = map[string]string{"a": "b"}
	for _, c := range []struct {
		image, policy, want string
		always              bool
	}{
		{"nginx", "", "nginx:latest", true}, {"localhost:5000/nginx", "", "localhost:5000/nginx:latest", true},
		{"nginx", "IfNotPresent", "nginx:latest", false}, {"nginx:1", "", "nginx:1", false}, {"nginx:1", "Always", "nginx:1", true},
		{"nginx@sha256:00", "", "nginx@sha256:00", false},
	} {
		r, always := Node{CgroupVersion: 2}.PullImage(p, &Container{Image: c.image, ImagePullPolicy: c.policy})
		if r.Image.Image != c.want || always != c.always || r.Image.Annotations["a"] != "b" {
			t.Errorf("%s, %q: %v, always %v", c.image, c.policy, r.Image, always)
		}
	}
}
