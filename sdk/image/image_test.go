package image_test

import (
	"testing"

	"github.com/wasmproxy/wasmproxy/sdk/image"
	"github.com/wasmproxy/wasmproxy/sdk/internal/vectors"
)

func TestVectors(t *testing.T) {
	for _, v := range vectors.Load(t, "..").Image {
		got, err := image.Parse(v.Name)
		if err != nil && err.Error() != v.Error || err == nil && v.Error != "" {
			t.Errorf("%q: error %v, want %s", v.Name, err, v.Error)
		}
		if want := (image.Reference{Registry: v.Registry, Repository: v.Repository, Tag: v.Tag, Digest: v.Digest, Short: v.Short}); got != want {
			t.Errorf("%q: got %+v", v.Name, got)
		}
		if image.IsID(v.Name) != v.ID {
			t.Errorf("%q: an id is %v", v.Name, !v.ID)
		}
		if err != nil {
			continue
		}
		if again, err := image.Parse(got.String()); err != nil || again.String() != got.String() || again.Short {
			t.Errorf("%q: %s is read as %+v, %v", v.Name, got, again, err)
		}
	}
}
