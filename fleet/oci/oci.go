// Package oci brings modules to a registry and back, as artifacts of CNCF's layout for WebAssembly. A reference always has a
// digest, and all that is read is checked against it. It keeps nothing, and does not try again.
package oci

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"

	"github.com/wasmproxy/wasmproxy/abi"
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

// Client reaches registries. Its zero value has no credentials, and takes HTTPS for all registries.
type Client struct {
	Credentials string   // a file in the format of Docker's config.json; "": none
	PlainHTTP   []string // registries that are asked without TLS, as references name them
}

// Pull returns the module of an artifact, which is named by its digest, and at most abi.MaxModule bytes long.
func (c Client) Pull(ctx context.Context, reference string) ([]byte, error) {
	repo, ref, err := c.repository(reference)
	if err != nil {
		return nil, err
	}
	want, err := ref.Digest()
	if err != nil {
		return nil, fmt.Errorf("pulling %s: %w: it names no digest, as in registry/repository@sha256:DIGEST", reference, ErrContent)
	}
	manifest, err := pullManifest(ctx, repo, want)
	if err != nil {
		return nil, fmt.Errorf("pulling %s: %w", reference, err)
	}
	layer, err := moduleOf(manifest)
	if err != nil {
		return nil, fmt.Errorf("pulling %s: %w", reference, err)
	}
	rc, err := repo.Blobs().Fetch(ctx, layer)
	if err != nil {
		return nil, fmt.Errorf("pulling the module of %s: %w", reference, err)
	}
	defer rc.Close()
	module, err := readAll(rc, layer.Digest, abi.MaxModule)
	if err != nil {
		return nil, fmt.Errorf("pulling the module of %s: %w", reference, err)
	}
	return module, nil
}

func pullManifest(ctx context.Context, repo *remote.Repository, want digest.Digest) ([]byte, error) {
	_, rc, err := repo.Manifests().FetchReference(ctx, want.String())
	if err != nil {
		return nil, err
	}
	defer rc.Close()
	return readAll(rc, want, maxManifest)
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
	if d := modules[0].Digest; d.Validate() != nil || d.Algorithm() != digest.SHA256 {
		return ocispec.Descriptor{}, fmt.Errorf("%w: its module has the digest %q, which is no SHA-256", ErrContent, d)
	}
	return modules[0], nil
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

// Push brings a module to a repository, and returns the reference by which Pull finds it. A tag that the reference names is set.
// The same module always has the same reference.
func (c Client) Push(ctx context.Context, reference string, module []byte) (string, error) {
	if len(module) > abi.MaxModule {
		return "", fmt.Errorf("pushing %s: the module has %d bytes, more than the %d that a node takes", reference, len(module), abi.MaxModule)
	}
	repo, ref, err := c.repository(reference)
	if err != nil {
		return "", err
	}
	if _, err := ref.Digest(); err == nil {
		return "", fmt.Errorf("pushing %s: it names a digest, which follows from the module: write registry/repository, or add a tag", reference)
	}
	layer := describe(moduleType, module)
	config, err := json.Marshal(wasmConfig{time.Unix(0, 0).UTC(), "wasm", "wasip1", []digest.Digest{layer.Digest}})
	if err != nil {
		return "", err
	}
	manifest, err := json.Marshal(ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: manifestType,
		Config: describe(configType, config), Layers: []ocispec.Descriptor{layer},
	})
	if err != nil {
		return "", err
	}
	for _, blob := range [][]byte{module, config} {
		if err := repo.Blobs().Push(ctx, describe("", blob), bytes.NewReader(blob)); err != nil {
			return "", fmt.Errorf("pushing %s: %w", reference, err)
		}
	}
	desc := describe(manifestType, manifest)
	name := desc.Digest.String()
	if ref.Reference != "" {
		name = ref.Reference
	}
	if err := repo.Manifests().PushReference(ctx, desc, bytes.NewReader(manifest), name); err != nil {
		return "", fmt.Errorf("pushing the manifest of %s: %w", reference, err)
	}
	return fmt.Sprintf("%s/%s@%s", ref.Registry, ref.Repository, desc.Digest), nil
}

// wasmConfig is the config of an artifact. Its time is always the same, so that the digest follows from the module alone.
type wasmConfig struct {
	Created      time.Time       `json:"created"`
	Architecture string          `json:"architecture"`
	OS           string          `json:"os"`
	LayerDigests []digest.Digest `json:"layerDigests"`
}

func describe(mediaType string, content []byte) ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(content), Size: int64(len(content))}
}

func (c Client) repository(reference string) (*remote.Repository, registry.Reference, error) {
	if name, digest, both := strings.Cut(reference, "@"); both { // a tag beside a digest is for people
		if colon := strings.LastIndex(name, ":"); colon > strings.LastIndex(name, "/") {
			reference = name[:colon] + "@" + digest
		}
	}
	ref, err := registry.ParseReference(reference)
	if err != nil {
		return nil, ref, fmt.Errorf("%q is not a reference such as registry.example/plugins/qos@sha256:...: %w", reference, errors.Join(err, ErrContent))
	}
	repo, err := remote.NewRepository(ref.Registry + "/" + ref.Repository)
	if err != nil {
		return nil, ref, err
	}
	repo.PlainHTTP = slices.Contains(c.PlainHTTP, ref.Registry)
	client := &auth.Client{Client: http.DefaultClient}
	if c.Credentials != "" {
		store, err := credentials.NewFileStore(c.Credentials)
		if err != nil {
			return nil, ref, fmt.Errorf("reading the credentials for registries: %s: %w", c.Credentials, err)
		}
		client.Credential = credentials.Credential(store)
	}
	repo.Client = client
	return repo, ref, nil
}
