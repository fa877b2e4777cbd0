// Package oci brings modules to a registry and back, as artifacts of CNCF's layout for WebAssembly, with their signatures. A reference
// always has a digest, and all that is read is checked against it. It does not judge signatures, keeps nothing, and does not try again.
package oci

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
)

// Media types of an artifact. Push writes the first two.
const (
	configType   = "application/vnd.wasm.config.v0+json"
	moduleType   = "application/wasm"
	olderType    = "application/vnd.wasm.content.layer.v1+wasm" // of a module
	manifestType = ocispec.MediaTypeImageManifest
)

// maxManifest is the largest manifest that is read, in bytes.
const maxManifest = 1 << 20

// ErrContent says that the registry has answered, and that the answer is not a module of this reference. Another try brings
// the same, unless the registry lies.
var ErrContent = errors.New("the artifact cannot be used")

// Client reaches registries. Its zero value has no credentials and no mirrors, and takes HTTPS for all registries.
type Client struct {
	Credentials string   // a file in the format of Docker's config.json; "": none
	PlainHTTP   []string // registries that are asked without TLS, as references name them
	Mirrors     string   // a file as docs/fleet.md describes it, which may be missing; "": none. Only what reads asks mirrors
}

// byDigest reads a reference that must name a digest.
func byDigest(reference string) (registry.Reference, digest.Digest, error) {
	ref, err := parse(reference)
	if err != nil {
		return ref, "", err
	}
	want, err := ref.Digest()
	if err != nil || want.Algorithm() != digest.SHA256 {
		return ref, "", fmt.Errorf("%w: it names no digest, as in registry/repository@sha256:DIGEST", ErrContent)
	}
	return ref, want, nil
}

func parse(reference string) (registry.Reference, error) {
	if name, digest, both := strings.Cut(reference, "@"); both { // a tag beside a digest is for people
		if colon := strings.LastIndex(name, ":"); colon > strings.LastIndex(name, "/") {
			reference = name[:colon] + "@" + digest
		}
	}
	ref, err := registry.ParseReference(reference)
	if err != nil {
		err = fmt.Errorf("%q is not a reference such as registry.example/plugins/qos@sha256:...: %w", reference, errors.Join(err, ErrContent))
	}
	return ref, err
}

// Repository returns the repository of a reference by digest, as rules of trust name it, and the digest.
func Repository(reference string) (string, digest.Digest, error) {
	ref, want, err := byDigest(reference)
	if err != nil {
		return "", "", fmt.Errorf("reading the reference %s: %w", reference, err)
	}
	return ref.Registry + "/" + ref.Repository, want, nil
}

// repository is that of a reference, at its registry.
func (c Client) repository(ref registry.Reference) (*remote.Repository, error) {
	return c.repositoryAt(ref.Registry, ref.Repository, slices.Contains(c.PlainHTTP, ref.Registry), http.DefaultTransport)
}

func (c Client) repositoryAt(host, name string, plain bool, transport http.RoundTripper) (*remote.Repository, error) {
	repo, err := remote.NewRepository(host + "/" + name)
	if err != nil {
		return nil, err
	}
	repo.PlainHTTP, repo.MaxMetadataBytes, repo.ReferrerListMaxPages = plain, maxManifest, 10
	repo.SkipReferrersGC = true // of a list of signatures that a longer one replaces: many registries refuse to delete
	client := &auth.Client{Client: &http.Client{Transport: transport}}
	if c.Credentials != "" {
		store, err := credentials.NewFileStore(c.Credentials)
		if err != nil {
			return nil, fmt.Errorf("reading the credentials for registries: %s: %w", c.Credentials, err)
		}
		client.Credential = credentials.Credential(store)
	}
	repo.Client = client
	return repo, nil
}

// readAll reads no more than most bytes, whatever the registry has said of the size.
func readAll(r io.Reader, want digest.Digest, most int64) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(content)) > most {
		return nil, fmt.Errorf("%w: %s has more than %d bytes", ErrContent, want, most)
	}
	if has := digest.FromBytes(content); has != want {
		return nil, fmt.Errorf("%w: the registry has answered with %s where %s was asked for", ErrContent, has, want)
	}
	return content, nil
}
