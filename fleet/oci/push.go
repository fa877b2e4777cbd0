package oci

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/wasmproxy/wasmproxy/abi"
)

// Push brings a module to a repository, and returns the reference by which Pull finds it. A tag that the reference names is set.
// The same module always has the same reference.
func (c Client) Push(ctx context.Context, reference string, module []byte) (string, error) {
	if len(module) > abi.MaxModule {
		return "", fmt.Errorf("pushing %s: the module has %d bytes, more than the %d that a node takes", reference, len(module), abi.MaxModule)
	}
	ref, err := parse(reference)
	if err != nil {
		return "", err
	}
	if _, err := ref.Digest(); err == nil {
		return "", fmt.Errorf("pushing %s: it names a digest, which follows from the module: write registry/repository, or add a tag", reference)
	}
	repo, err := c.repository(ref)
	if err != nil {
		return "", err
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
