// Package verify says whether an artifact is signed as a trust file asks. Signatures are verified offline, with sigstore-go. It does not
// decide what a node does.
package verify

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	sigstore "github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/wasmproxy/wasmproxy/fleet/oci"
	"github.com/wasmproxy/wasmproxy/fleet/trust"
)

// Verifier verifies by a trust file.
type Verifier struct {
	policy *trust.Policy
	root   *root.TrustedRoot // nil: no rule needs one
}

// New makes a verifier. An error is of the policy's trusted root.
func New(policy *trust.Policy) (*Verifier, error) {
	v := &Verifier{policy: policy}
	if policy.Root == nil {
		return v, nil
	}
	var err error
	if v.root, err = root.NewTrustedRootFromJSON(policy.Root); err != nil {
		return nil, fmt.Errorf("%w: %s is not a trusted_root.json: %w", trust.ErrRefused, policy.RootPath, err)
	}
	if len(v.root.FulcioCertificateAuthorities()) == 0 {
		return nil, fmt.Errorf("%w: %s has no certificate authority, so that no keyless signature could be verified", trust.ErrRefused, policy.RootPath)
	}
	if len(v.root.RekorLogs())+len(v.root.TimestampingAuthorities()) == 0 {
		return nil, fmt.Errorf("%w: %s has neither a transparency log nor a timestamp authority, which say when something was signed",
			trust.ErrRefused, policy.RootPath)
	}
	return v, nil
}

// Find looks for a signature of an artifact that counts, and returns its bundle and who has signed. An error that is neither
// trust.ErrRefused nor oci.ErrContent is of the network, and another try may help.
func (v *Verifier) Find(ctx context.Context, c oci.Client, reference string) (bundle []byte, signer string, err error) {
	repository, artifact, err := oci.Repository(reference)
	if err == nil {
		_, err = v.policy.Rules(repository)
	}
	if err != nil {
		return nil, "", err
	}
	bundle, err = c.Signature(ctx, reference, func(text []byte) error {
		signer, err = v.Verify(repository, artifact, text)
		return err
	})
	return bundle, signer, err
}

// Verify returns who has signed an artifact of a repository, by a bundle of cosign 3. The artifact is the digest of its manifest.
func (v *Verifier) Verify(repository string, artifact digest.Digest, text []byte) (signer string, err error) {
	rules, err := v.policy.Rules(repository)
	if err != nil {
		return "", err
	}
	var b bundle.Bundle
	if err := b.UnmarshalJSON(text); err != nil {
		return "", fmt.Errorf("%w: the bundle cannot be read: %w", trust.ErrRefused, err)
	}
	sum, err := hex.DecodeString(artifact.Encoded())
	if err != nil {
		return "", fmt.Errorf("%w: the artifact's digest %s is not hexadecimal", trust.ErrRefused, artifact)
	}
	var wrong []string
	for _, r := range rules {
		signer, err := v.verify(r, &b, sigstore.WithArtifactDigest(string(artifact.Algorithm()), sum))
		if err == nil {
			return signer, nil
		}
		wrong = append(wrong, fmt.Sprintf("it is not by %s: %v", cmp.Or(r.Key, r.Identity+" of "+r.Issuer), err))
	}
	return "", fmt.Errorf("%w: %s", trust.ErrRefused, strings.Join(wrong, "; "))
}

// verify verifies a bundle by one rule.
func (v *Verifier) verify(r trust.Rule, b *bundle.Bundle, artifact sigstore.ArtifactPolicyOption) (string, error) {
	content, err := b.VerificationContent()
	if err != nil {
		return "", err
	}
	var by *sigstore.Verifier
	var who sigstore.PolicyOption
	if r.PublicKey != nil {
		if content.Certificate() != nil {
			return "", errors.New("it was signed keyless, with a certificate")
		}
		by, who, err = byKey(r)
	} else {
		if content.Certificate() == nil {
			return "", errors.New("it was signed by a key")
		}
		by, who, err = keyless(r, v.root)
	}
	if err != nil {
		return "", err
	}
	result, err := by.Verify(b, sigstore.NewPolicy(artifact, who))
	if err != nil {
		return "", err
	}
	if s := result.Statement; s != nil && s.PredicateType != oci.PredicateType {
		return "", fmt.Errorf("it is an attestation of the type %s, not a signature", s.PredicateType)
	}
	if c := result.Signature.Certificate; c != nil {
		at := result.VerifiedTimestamps[0].Timestamp.UTC().Format(time.RFC3339)
		return fmt.Sprintf("%s of %s, at %s", c.SubjectAlternativeName, c.Issuer, at), nil
	}
	return "the key " + r.Key, nil
}

// byKey needs nothing but the key: who has it signs, whenever that is.
func byKey(r trust.Rule) (*sigstore.Verifier, sigstore.PolicyOption, error) {
	key, err := signature.LoadDefaultVerifier(r.PublicKey)
	if err != nil {
		return nil, nil, err
	}
	always := root.NewExpiringKey(key, time.Time{}, time.Time{})
	material := root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) { return always, nil })
	v, err := sigstore.NewVerifier(material, sigstore.WithNoObserverTimestamps(), sigstore.WithoutStatementPredicate())
	return v, sigstore.WithKey(), err
}

// keyless asks for a proof of each kind that the trusted root can check.
func keyless(r trust.Rule, trusted *root.TrustedRoot) (*sigstore.Verifier, sigstore.PolicyOption, error) {
	id, err := sigstore.NewShortCertificateIdentity(r.Issuer, "", "", r.Pattern.String())
	if err != nil {
		return nil, nil, err
	}
	options := []sigstore.VerifierOption{sigstore.WithObserverTimestamps(1), sigstore.WithoutStatementPredicate()}
	if len(trusted.RekorLogs()) > 0 {
		options = append(options, sigstore.WithTransparencyLog(1))
	}
	if len(trusted.CTLogs()) > 0 {
		options = append(options, sigstore.WithSignedCertificateTimestamps(1))
	}
	v, err := sigstore.NewVerifier(trusted, options...)
	return v, sigstore.WithCertificateIdentity(id), err
}
