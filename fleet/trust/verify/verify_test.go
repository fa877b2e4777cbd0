package verify_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/opencontainers/go-digest"

	"github.com/wasmproxy/wasmproxy/fleet/oci"
	"github.com/wasmproxy/wasmproxy/fleet/trust"
	"github.com/wasmproxy/wasmproxy/fleet/trust/trusttest"
	"github.com/wasmproxy/wasmproxy/fleet/trust/verify"
)

const (
	repository = "registry.example/plugins/qos"
	issuer     = "https://issuer.example"
	identity   = "release@example.org"
)

// host is the directory of a trust file, with its files by name.
func host(t *testing.T, files map[string][]byte) *trust.File {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return trust.NewFile(filepath.Join(dir, "trust.yaml"))
}

// keyed trusts a key for all plugins of a registry.
func keyed(t *testing.T, key trusttest.Key) *verify.Verifier {
	t.Helper()
	return policy(t, host(t, map[string][]byte{
		"trust.yaml": []byte("repositories:\n- {name: registry.example/plugins/*, key: plugins.pub}\n"), "plugins.pub": key.Public(t),
	}))
}

func policy(t *testing.T, f *trust.File) *verify.Verifier {
	t.Helper()
	p, _, err := f.Policy()
	if err != nil {
		t.Fatal(err)
	}
	v, err := verify.New(p)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestBrokenRoot has each trusted root that cannot be used named with what is wrong.
func TestBrokenRoot(t *testing.T) {
	for _, test := range []struct{ name, root, want string }{
		{"not a root", "PEM", "root.json is not a trusted_root.json"},
		{"a root without anything", `{"mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1"}`, "root.json has no certificate authority"},
	} {
		p, _, err := host(t, map[string][]byte{
			"trust.yaml": []byte("trusted-root: root.json\nrepositories:\n- {name: r/p, issuer: i, identity: d}\n"), "root.json": []byte(test.root),
		}).Policy()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := verify.New(p); !errors.Is(err, trust.ErrRefused) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
}

func TestByKey(t *testing.T) {
	key, artifact := trusttest.NewKey(t), digest.FromString("manifest")
	statement := trusttest.Statement(artifact, oci.PredicateType)
	good := key.Sign(t, statement)
	other := digest.FromString("other")
	payload := base64.StdEncoding.EncodeToString
	tampered := bytes.Replace(good, []byte(payload(statement)), []byte(payload(trusttest.Statement(other, oci.PredicateType))), 1)
	if bytes.Equal(tampered, good) {
		t.Fatalf("the bundle does not have its statement: %s", good)
	}
	store := trusttest.NewSigstore(t)
	for _, test := range []struct {
		name, repository string
		artifact         digest.Digest
		bundle           []byte
		want             string // of the error; "": it is trusted
	}{
		{"good", repository, artifact, good, ""},
		{"wrong key", repository, artifact, trusttest.NewKey(t).Sign(t, statement), "it is not by plugins.pub: failed to verify signature"},
		{"another artifact", repository, other, good, "digest"},
		{"another repository", "registry.example/other", artifact, good, "has no entry for the repository registry.example/other"},
		{"a repository whose name only begins so", "registry.example/pluginsx", artifact, good, "has no entry"},
		{"tampered", repository, other, tampered, "failed to verify signature"},
		{"no bundle", repository, artifact, nil, "the bundle cannot be read"},
		{"keyless", repository, artifact, store.Sign(t, identity, issuer, statement), "signed keyless"},
		{"an attestation", repository, artifact, key.Sign(t, trusttest.Statement(artifact, "https://slsa.dev/provenance/v1")), "it is an attestation"},
	} {
		signer, err := keyed(t, key).Verify(test.repository, test.artifact, test.bundle)
		if test.want == "" && (err != nil || signer != "the key plugins.pub") {
			t.Errorf("%s: signed by %q, %v", test.name, signer, err)
		}
		if test.want != "" && (!errors.Is(err, trust.ErrRefused) || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: the error is %v, which does not say %q", test.name, err, test.want)
		}
	}
}

func TestKeyless(t *testing.T) {
	store, artifact := trusttest.NewSigstore(t), digest.FromString("manifest")
	statement := trusttest.Statement(artifact, oci.PredicateType)
	good := store.Sign(t, identity, issuer, statement)
	const text = "trusted-root: root.json\nrepositories:\n- {name: registry.example/plugins/qos, issuer: https://issuer.example, identity: "
	for _, test := range []struct {
		name, identity string
		root, bundle   []byte
		want           string
	}{
		{"good", identity, store.Root(t, false), good, ""},
		{"good by a pattern", `"*@example.org"`, store.Root(t, false), good, ""},
		{"wrong identity", "other@example.org", store.Root(t, false), good, "certificate identity"},
		{"a pattern is the whole identity", `"*@example"`, store.Root(t, false), good, "certificate identity"},
		{"a dot is a dot", "release@example.or.", store.Root(t, false), good, "certificate identity"},
		{"wrong issuer", identity, store.Root(t, false), store.Sign(t, identity, "https://other.example", statement), "certificate identity"},
		{"another root", identity, trusttest.NewSigstore(t).Root(t, false), good, "log"},
		{"a certificate in no log, though the root has one", identity, store.Root(t, true), good, "signed certificate timestamp"},
		{"by key", identity, store.Root(t, false), trusttest.NewKey(t).Sign(t, statement), "it was signed by a key"},
	} {
		p := policy(t, host(t, map[string][]byte{"trust.yaml": []byte(text + test.identity + "}\n"), "root.json": test.root}))
		signer, err := p.Verify(repository, artifact, test.bundle)
		if test.want == "" && (err != nil || !strings.HasPrefix(signer, identity+" of "+issuer+", at 2")) {
			t.Errorf("%s: signed by %q, %v", test.name, signer, err)
		}
		if test.want != "" && (!errors.Is(err, trust.ErrRefused) || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: the error is %v, which does not say %q", test.name, err, test.want)
		}
	}
}

// TestLongestName has the entries of the longest name decide, each of which suffices.
func TestLongestName(t *testing.T) {
	wide, first, second := trusttest.NewKey(t), trusttest.NewKey(t), trusttest.NewKey(t)
	p := policy(t, host(t, map[string][]byte{
		"trust.yaml": []byte("repositories:\n- {name: registry.example/*, key: wide}\n" +
			"- {name: registry.example/plugins/qos, key: first}\n- {name: registry.example/plugins/qos, key: second}\n"),
		"wide": wide.Public(t), "first": first.Public(t), "second": second.Public(t),
	}))
	artifact := digest.FromString("manifest")
	for _, test := range []struct {
		name, repository string
		key              trusttest.Key
		good             bool
	}{
		{"the first key", repository, first, true},
		{"the second key", repository, second, true},
		{"the key of a shorter name", repository, wide, false},
		{"that key elsewhere", "registry.example/plugins/other", wide, true},
		{"another key elsewhere", "registry.example/plugins/other", first, false},
	} {
		_, err := p.Verify(test.repository, artifact, test.key.Sign(t, trusttest.Statement(artifact, oci.PredicateType)))
		if (err == nil) != test.good {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// TestFind has a registry, with its referrers' API and without, whose artifact is signed twice, by another key first.
func TestFind(t *testing.T) {
	for _, api := range []bool{true, false} {
		s := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(api)))
		t.Cleanup(s.Close)
		at := strings.TrimPrefix(s.URL, "http://")
		c := oci.Client{PlainHTTP: []string{at}}
		reference, err := c.Push(t.Context(), at+"/plugins/qos", []byte("module"))
		if err != nil {
			t.Fatal(err)
		}
		key := trusttest.NewKey(t)
		p := policy(t, host(t, map[string][]byte{"trust.yaml": []byte("repositories:\n- {name: " + at + "/plugins/*, key: k.pub}\n"), "k.pub": key.Public(t)}))
		find := func(want string) {
			t.Helper()
			_, _, err := p.Find(t.Context(), c, reference)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("with the referrers' API %v: %v, want %q", api, err, want)
			}
		}
		find("it has no signature: sign it")
		_, artifact, _ := oci.Repository(reference)
		tag(t, s.URL+"/v2/plugins/qos/manifests/sha256-"+artifact.Encoded()+".sig")
		find("it has only a signature in cosign's old layout, the tag sha256-" + artifact.Encoded() + ".sig: sign it again with cosign 3")
		trusttest.Attach(t, reference, trusttest.NewKey(t).Sign(t, trusttest.Statement(artifact, oci.PredicateType)))
		find("its signature does not count: not trusted: it is not by k.pub")
		trusttest.Attach(t, reference, bytes.Repeat([]byte{' '}, 1<<20+1))
		find("none of its 2 signatures counts")
		find("has more than 1048576 bytes")
		good := key.Sign(t, trusttest.Statement(artifact, oci.PredicateType))
		trusttest.Attach(t, reference, good)
		if bundle, signer, err := p.Find(t.Context(), c, reference); err != nil || signer != "the key k.pub" || !bytes.Equal(bundle, good) {
			t.Errorf("with the referrers' API %v: signed by %q (%v)", api, signer, err)
		}
	}
}

// tag puts a manifest at a registry, as cosign 2 does with a signature.
func tag(t *testing.T, url string) {
	t.Helper()
	put, err := http.NewRequest(http.MethodPut, url, strings.NewReader(`{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json"}`))
	if err != nil {
		t.Fatal(err)
	}
	put.Header.Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
	resp, err := http.DefaultClient.Do(put)
	if err != nil || resp.StatusCode != http.StatusCreated {
		t.Fatal(resp, err)
	}
	resp.Body.Close()
}
