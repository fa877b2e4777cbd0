package oci

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/oci"
)

// layoutPrefix marks a place that is a directory: an OCI image layout.
const layoutPrefix = "oci:"

// place is a repository, or a directory in the layout of OCI images.
type place struct {
	oras.GraphTarget
	name      string // without tag and digest
	reference string // a tag or a digest; "": none
}

// Copy copies an artifact with all that refers to it, such as its signatures, and returns where it is then, by digest. A place is a
// reference, or oci:DIRECTORY; from names a digest or a tag.
func (c Client) Copy(ctx context.Context, from, to string) (string, error) {
	src, err := c.place(from, false)
	if err != nil {
		return "", fmt.Errorf("copying %s: %w", from, err)
	}
	desc, err := src.find(ctx)
	if err != nil {
		return "", fmt.Errorf("copying %s: %w", from, err)
	}
	dst, err := c.place(to, true)
	if err != nil {
		return "", fmt.Errorf("copying to %s: %w", to, err)
	}
	if strings.Contains(dst.reference, ":") {
		return "", fmt.Errorf("copying to %s: it names a digest, which is that of the artifact: leave it out", to)
	}
	if err := oras.ExtendedCopyGraph(ctx, src, dst, desc, oras.DefaultExtendedCopyGraphOptions); err != nil {
		return "", fmt.Errorf("copying %s to %s: %w", from, to, err)
	}
	if dst.reference != "" {
		if err := dst.Tag(ctx, desc, dst.reference); err != nil {
			return "", fmt.Errorf("giving %s the tag %s: %w", dst.name, dst.reference, err)
		}
	}
	return dst.name + "@" + desc.Digest.String(), nil
}

// place finds a place. A directory is made if it is to be written.
func (c Client) place(text string, write bool) (p place, err error) {
	dir, isDir := strings.CutPrefix(text, layoutPrefix)
	if !isDir {
		ref, err := parse(text)
		if err != nil {
			return p, err
		}
		repo, err := c.repository(ref)
		return place{repo, ref.Registry + "/" + ref.Repository, ref.Reference}, err
	}
	dir, reference, _ := strings.Cut(dir, "@")
	if dir == "" {
		return p, errors.New("it names no directory, as in oci:DIRECTORY")
	}
	if _, err := os.Stat(filepath.Join(dir, ocispec.ImageLayoutFile)); errors.Is(err, fs.ErrNotExist) && !write {
		return p, fmt.Errorf("the directory %s is not an OCI layout: it has no file %s", dir, ocispec.ImageLayoutFile)
	}
	store, err := oci.New(dir)
	return place{store, layoutPrefix + dir, reference}, err
}

// find returns the artifact that a place names.
func (p place) find(ctx context.Context) (ocispec.Descriptor, error) {
	if p.reference == "" {
		return ocispec.Descriptor{}, errors.New("it names no digest: add @sha256:DIGEST")
	}
	desc, err := p.Resolve(ctx, p.reference)
	if err == nil && desc.MediaType != manifestType { // the layout takes a module for one
		err = fmt.Errorf("%s has the media type %q, not %s", p.reference, desc.MediaType, manifestType)
	}
	return desc, err
}
