package oci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
)

// Cosign 3 attaches a signature as a referrer of the artifact, whose one layer is a bundle. Attestations, which say something else of
// the artifact, are attached in the same way.
const (
	bundleType   = "application/vnd.dev.sigstore.bundle.v0.3+json"
	predicateKey = "dev.sigstore.bundle.predicateType" // an annotation
)

// PredicateType is that of the statement which is a signature of cosign 3.
const PredicateType = "https://sigstore.dev/cosign/sign/v1"

// MaxBundle is how large the bundle of a signature is at the most, in bytes.
const MaxBundle = 1 << 20

// maxReferrers is how many referrers of an artifact are looked at.
const maxReferrers = 100

// Signature returns the first bundle of an artifact's signatures that accept takes. Mirrors are asked before the registry, so that an
// artifact whose signatures a mirror does not have is signed all the same. An error of accept is one that another try brings again.
func (c Client) Signature(ctx context.Context, reference string, accept func(bundle []byte) error) (bundle []byte, err error) {
	err = c.ask(ctx, reference, func(ctx context.Context, repo *remote.Repository, want digest.Digest) error {
		bundle, err = signature(ctx, repo, want, accept)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("looking for a signature of %s: %w", reference, err)
	}
	return bundle, nil
}

func signature(ctx context.Context, repo *remote.Repository, want digest.Digest, accept func([]byte) error) ([]byte, error) {
	referrers, err := referrersOf(ctx, repo, want)
	if err != nil {
		return nil, err
	}
	var wrong []string
	var lacking error // of a signature that could not be read: another try may find that it counts
	for _, r := range referrers {
		bundle, err := pullBundle(ctx, repo, r)
		if err == nil && bundle != nil {
			if err = accept(bundle); err == nil {
				return bundle, nil
			}
			err = fmt.Errorf("%w: %w", ErrContent, err)
		}
		switch {
		case err == nil:
		case !errors.Is(err, ErrContent):
			lacking = err
		default:
			wrong = append(wrong, strings.TrimPrefix(err.Error(), ErrContent.Error()+": "))
		}
	}
	if lacking != nil {
		return nil, lacking
	}
	switch len(wrong) {
	case 0:
		return nil, unsigned(ctx, repo, want)
	case 1:
		return nil, fmt.Errorf("%w: its signature does not count: %s", ErrContent, wrong[0])
	}
	return nil, fmt.Errorf("%w: none of its %d signatures counts: %s", ErrContent, len(wrong), strings.Join(wrong, "; "))
}

// referrersOf lists what refers to an artifact and may be a signature, by the registry's API or by the tag that stands for it.
func referrersOf(ctx context.Context, repo *remote.Repository, want digest.Digest) (all []ocispec.Descriptor, err error) {
	err = repo.Referrers(ctx, ocispec.Descriptor{MediaType: manifestType, Digest: want}, "", func(some []ocispec.Descriptor) error {
		for _, r := range some {
			if predicate := r.Annotations[predicateKey]; predicate == "" || predicate == PredicateType {
				all = append(all, r)
			}
		}
		if len(all) > maxReferrers {
			return fmt.Errorf("%w: more than %d artifacts refer to it, of which each may be its signature: remove some", ErrContent, maxReferrers)
		}
		return nil
	})
	return all, err
}

// pullBundle reads the bundle that a referrer is; nil if it is something else.
func pullBundle(ctx context.Context, repo *remote.Repository, r ocispec.Descriptor) ([]byte, error) {
	if d := r.Digest; d.Validate() != nil || d.Algorithm() != digest.SHA256 {
		return nil, fmt.Errorf("%w: a referrer has the digest %q, which is no SHA-256", ErrContent, d)
	}
	text, err := pullManifest(ctx, repo, r.Digest)
	if err != nil {
		return nil, err
	}
	var m ocispec.Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("%w: the referrer %s is not JSON: %w", ErrContent, r.Digest, err)
	}
	if len(m.Layers) != 1 || m.Layers[0].MediaType != bundleType {
		return nil, nil
	}
	return pullBlob(ctx, repo, m.Layers[0], MaxBundle)
}

// unsigned says that an artifact has no signature, or only one of a layout that Signature does not read.
func unsigned(ctx context.Context, repo *remote.Repository, want digest.Digest) error {
	tag := fmt.Sprintf("%s-%s.sig", want.Algorithm(), want.Encoded())
	switch _, err := repo.Manifests().Resolve(ctx, tag); {
	case err == nil:
		return fmt.Errorf("%w: it has only a signature in cosign's old layout, the tag %s: sign it again with cosign 3", ErrContent, tag)
	case errors.Is(err, errdef.ErrNotFound):
		return fmt.Errorf("%w: it has no signature: sign it with cosign 3", ErrContent)
	default:
		return fmt.Errorf("looking for the tag %s: %w", tag, err)
	}
}
