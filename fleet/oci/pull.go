package oci

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/wasmproxy/wasmproxy/abi"
)

// Pull returns the module of an artifact, which is named by its digest, and at most abi.MaxModule bytes long.
func (c Client) Pull(ctx context.Context, reference string) (module []byte, err error) {
	err = c.ask(ctx, reference, func(ctx context.Context, repo *remote.Repository, want digest.Digest) error {
		module, err = pull(ctx, repo, want)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("pulling %s: %w", reference, err)
	}
	return module, nil
}

func pull(ctx context.Context, repo *remote.Repository, want digest.Digest) ([]byte, error) {
	text, err := pullManifest(ctx, repo, want)
	if err != nil {
		return nil, err
	}
	layer, err := moduleOf(text)
	if err != nil {
		return nil, err
	}
	return pullBlob(ctx, repo, layer, abi.MaxModule)
}

func pullManifest(ctx context.Context, repo *remote.Repository, want digest.Digest) ([]byte, error) {
	_, rc, err := repo.Manifests().FetchReference(ctx, want.String())
	if err != nil {
		return nil, err
	}
	defer rc.Close()
	return readAll(rc, want, maxManifest)
}

func pullBlob(ctx context.Context, repo *remote.Repository, layer ocispec.Descriptor, most int64) ([]byte, error) {
	if d := layer.Digest; d.Validate() != nil || d.Algorithm() != digest.SHA256 {
		return nil, fmt.Errorf("%w: its layer of the type %s has the digest %q, which is no SHA-256", ErrContent, layer.MediaType, d)
	}
	rc, err := repo.Blobs().Fetch(ctx, layer)
	if err != nil {
		return nil, err
	}
	defer rc.Close()
	return readAll(rc, layer.Digest, most)
}

// moduleOf finds the one layer that is a module. Others, such as licenses, do not count.
func moduleOf(text []byte) (ocispec.Descriptor, error) {
	var m ocispec.Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return ocispec.Descriptor{}, fmt.Errorf("%w: its manifest is not JSON: %w", ErrContent, err)
	}
	if m.MediaType != manifestType {
		return ocispec.Descriptor{}, fmt.Errorf("%w: its media type is %q, not %s: push it with wasmproxy-fleet push", ErrContent, m.MediaType, manifestType)
	}
	modules := slices.DeleteFunc(m.Layers, func(l ocispec.Descriptor) bool { return l.MediaType != moduleType && l.MediaType != olderType })
	if len(modules) != 1 {
		return ocispec.Descriptor{}, fmt.Errorf("%w: it has %d layers of the type %s, not one: push it with wasmproxy-fleet push",
			ErrContent, len(modules), moduleType)
	}
	return modules[0], nil
}
