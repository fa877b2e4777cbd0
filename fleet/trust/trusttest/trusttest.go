// Package trusttest signs artifacts as cosign 3 does, for tests: by key, and keyless by a certificate authority and a transparency log
// of its own. It verifies nothing.
package trusttest

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/sign"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"google.golang.org/protobuf/encoding/protojson"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/wasmproxy/wasmproxy/fleet/oci"
)

const (
	bundleType  = "application/vnd.dev.sigstore.bundle.v0.3+json"
	payloadType = "application/vnd.in-toto+json"
)

// Statement is what is signed: that the signer has signed an artifact, or something else of it, by the type of the predicate.
func Statement(artifact digest.Digest, predicateType string) []byte {
	return fmt.Appendf(nil, `{"_type": "https://in-toto.io/Statement/v1", "subject": [{"digest": {"sha256": %q}}], "predicateType": %q, "predicate": {}}`,
		artifact.Encoded(), predicateType)
}

// Key is a pair of keys.
type Key struct{ pair *sign.EphemeralKeypair }

// NewKey makes a pair of keys.
func NewKey(t testing.TB) Key {
	t.Helper()
	pair, err := sign.NewEphemeralKeypair(nil)
	if err != nil {
		t.Fatal(err)
	}
	return Key{pair}
}

// Public is the public key, in PEM.
func (k Key) Public(t testing.TB) []byte {
	t.Helper()
	text, err := k.pair.GetPublicKeyPem()
	if err != nil {
		t.Fatal(err)
	}
	return []byte(text)
}

// Sign returns the bundle of a signed statement.
func (k Key) Sign(t testing.TB, statement []byte) []byte {
	t.Helper()
	b, err := sign.Bundle(&sign.DSSEData{Data: statement, PayloadType: payloadType}, k.pair, sign.BundleOptions{Context: t.Context()})
	if err != nil {
		t.Fatal(err)
	}
	return encode(t, b)
}

func encode(t testing.TB, b *protobundle.Bundle) []byte {
	t.Helper()
	text, err := protojson.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Sigstore issues certificates for identities, and logs and timestamps signatures.
type Sigstore struct{ virtual *ca.VirtualSigstore }

// NewSigstore makes one.
func NewSigstore(t testing.TB) Sigstore {
	t.Helper()
	virtual, err := ca.NewVirtualSigstore()
	if err != nil {
		t.Fatal(err)
	}
	return Sigstore{virtual}
}

// Root is its trusted_root.json. Its certificates are in no log of certificates, which the root has only if it is asked for.
func (s Sigstore) Root(t testing.TB, certificateLogs bool) []byte {
	t.Helper()
	var logs map[string]*root.TransparencyLog
	if certificateLogs {
		logs = withIDs(t, s.virtual.CTLogs())
	}
	r, err := root.NewTrustedRoot(root.TrustedRootMediaType01, s.virtual.FulcioCertificateAuthorities(), logs,
		s.virtual.TimestampingAuthorities(), withIDs(t, s.virtual.RekorLogs()))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// withIDs gives logs their IDs as bytes, which the virtual Sigstore has in hexadecimal.
func withIDs(t testing.TB, logs map[string]*root.TransparencyLog) map[string]*root.TransparencyLog {
	t.Helper()
	logs = maps.Clone(logs)
	for id, log := range logs {
		var err error
		if log.ID, err = hex.DecodeString(id); err != nil {
			t.Fatal(err)
		}
	}
	return logs
}

// Sign returns the bundle of a statement that an identity has signed.
func (s Sigstore) Sign(t testing.TB, identity, issuer string, statement []byte) []byte {
	t.Helper()
	e, err := s.virtual.AttestHashedRekordV2(identity, issuer, statement)
	if err != nil {
		t.Fatal(err)
	}
	content, err := e.VerificationContent()
	if err != nil {
		t.Fatal(err)
	}
	signed, err := e.SignatureContent()
	if err != nil {
		t.Fatal(err)
	}
	signature, err := base64.StdEncoding.DecodeString(signed.EnvelopeContent().RawEnvelope().Signatures[0].Sig)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := e.TlogEntries()
	if err != nil {
		t.Fatal(err)
	}
	timestamps, err := e.Timestamps()
	if err != nil {
		t.Fatal(err)
	}
	material := &protobundle.VerificationMaterial{
		Content:                   &protobundle.VerificationMaterial_Certificate{Certificate: &protocommon.X509Certificate{RawBytes: content.Certificate().Raw}},
		TimestampVerificationData: new(protobundle.TimestampVerificationData),
	}
	for _, stamp := range timestamps {
		all := &material.TimestampVerificationData.Rfc3161Timestamps
		*all = append(*all, &protocommon.RFC3161SignedTimestamp{SignedTimestamp: stamp})
	}
	for _, entry := range entries {
		material.TlogEntries = append(material.TlogEntries, entry.TransparencyLogEntry())
	}
	return encode(t, &protobundle.Bundle{MediaType: bundleType, VerificationMaterial: material,
		Content: &protobundle.Bundle_DsseEnvelope{DsseEnvelope: &protodsse.Envelope{
			Payload: statement, PayloadType: payloadType, Signatures: []*protodsse.Signature{{Sig: signature}},
		}}})
}

// Attach attaches a bundle to an artifact by digest, in the layout of cosign 3, at a registry without TLS.
func Attach(t testing.TB, reference string, bundle []byte) {
	t.Helper()
	name, artifact, err := oci.Repository(reference)
	if err != nil {
		t.Fatal(err)
	}
	repo, err := remote.NewRepository(name)
	if err != nil {
		t.Fatal(err)
	}
	repo.PlainHTTP = true
	subject, err := repo.Resolve(t.Context(), artifact.String())
	if err != nil {
		t.Fatal(err)
	}
	config, layer := []byte("{}"), describe(bundleType, bundle)
	manifest, err := json.Marshal(ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, ArtifactType: bundleType,
		Config: describe(ocispec.MediaTypeEmptyJSON, config), Layers: []ocispec.Descriptor{layer}, Subject: &subject,
	})
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(
		repo.Push(t.Context(), describe(ocispec.MediaTypeEmptyJSON, config), bytes.NewReader(config)),
		repo.Push(t.Context(), layer, bytes.NewReader(bundle)),
		repo.Push(t.Context(), describe(ocispec.MediaTypeImageManifest, manifest), bytes.NewReader(manifest)),
	)
	if err != nil {
		t.Fatal(err)
	}
}

func describe(mediaType string, content []byte) ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(content), Size: int64(len(content))}
}
