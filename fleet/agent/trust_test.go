package agent

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"
	"github.com/wasmproxy/wasmproxy/fleet/oci"
	"github.com/wasmproxy/wasmproxy/fleet/trust"
	"github.com/wasmproxy/wasmproxy/fleet/trust/trusttest"
)

// TestTrust has the real verifier, and a real registry.
func TestTrust(t *testing.T) {
	program := filepath.Join(t.TempDir(), "wasmproxy-fleet-verify")
	if out, err := exec.Command("go", "build", "-o", program, "../cmd/wasmproxy-fleet-verify").CombinedOutput(); err != nil {
		t.Fatalf("building the verifier: %v\n%s", err, out)
	}
	t.Run("Changes", func(t *testing.T) { testTrustChanges(t, program) })
	t.Run("BeforeFetch", func(t *testing.T) { testTrustBeforeFetch(t, program) })
}

func newGuard(program, dir string, c oci.Client) guard {
	file := filepath.Join(dir, "trust.yaml")
	return guard{trust.NewFile(file), file, program, c}
}

// testTrustChanges has a trust file come, when a revision is on disk, and change: what is there stays, and counts only if it is signed.
func testTrustChanges(t *testing.T, program string) {
	s := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(s.Close)
	host := strings.TrimPrefix(s.URL, "http://")
	c := oci.Client{PlainHTTP: []string{host}}
	artifact, err := c.Push(t.Context(), host+"/plugins/p", []byte(module))
	if err != nil {
		t.Fatal(err)
	}
	r, name, _ := shelf(t, v1alpha1.RevisionSpec{Artifact: artifact})
	dir := t.TempDir()
	r.guard = newGuard(program, dir, c)
	trusts := func(text string, key trusttest.Key) {
		t.Helper()
		for name, content := range map[string][]byte{"k.pub": key.Public(t), "trust.yaml": []byte(text)} {
			os.Remove(filepath.Join(dir, name)) // so that the file is another one, with another time
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	step := func(what string, want v1alpha1.Trust, fails string) {
		t.Helper()
		if is, _ := r.now(); is != want {
			t.Errorf("%s: trust is %s, not %s", what, is, want)
		}
		err := r.fetch(t.Context(), name)
		if (err == nil) != (fails == "") || err != nil && !strings.Contains(err.Error(), fails) {
			t.Errorf("%s: fetching: %v, want %q", what, err, fails)
		}
		if err != nil && errors.Is(err, errRefused) {
			t.Errorf("%s: what is on disk is refused for ever: %v", what, err)
		}
		if !r.has(name) || r.ready(name) != (want == v1alpha1.TrustNone) {
			t.Errorf("%s: the revision is on disk: %v, ready: %v", what, r.has(name), r.ready(name))
		}
	}
	step("no file", v1alpha1.TrustNone, "")
	key := trusttest.NewKey(t)
	rule := "repositories:\n- {name: " + host + "/plugins/*, key: k.pub}\n"
	trusts(rule, key)
	step("the file has come", v1alpha1.TrustEnforced, "it has no signature")
	_, digest, _ := oci.Repository(artifact)
	trusttest.Attach(t, artifact, key.Sign(t, trusttest.Statement(digest, oci.PredicateType)))
	step("it is signed", v1alpha1.TrustEnforced, "")
	s.Close()
	step("the registry is away", v1alpha1.TrustEnforced, "")
	trusts(rule+"# more\n", key)
	step("the file has changed, and the registry is away", v1alpha1.TrustEnforced, "")
	trusts(rule+"- {name: x, kye: k.pub}\n", key)
	step("the file is broken", v1alpha1.TrustEnforced, `unknown field "kye"`)
	trusts("repositories:\n- {name: "+host+"/other, key: k.pub}\n", key)
	step("another repository", v1alpha1.TrustEnforced, "has no entry for the repository")
	trusts(rule, trusttest.NewKey(t))
	step("another key, and the registry is away", v1alpha1.TrustEnforced, "looking for a signature")
}

// testTrustBeforeFetch has nothing of an artifact be read that is not signed as the trust file asks.
func testTrustBeforeFetch(t *testing.T, program string) {
	s := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(s.Close)
	host := strings.TrimPrefix(s.URL, "http://")
	c := oci.Client{PlainHTTP: []string{host}}
	artifact, err := c.Push(t.Context(), host+"/plugins/p", []byte(module))
	if err != nil {
		t.Fatal(err)
	}
	_, digest, _ := oci.Repository(artifact)
	trusttest.Attach(t, artifact, trusttest.NewKey(t).Sign(t, trusttest.Statement(digest, oci.PredicateType)))
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "k.pub"), trusttest.NewKey(t).Public(t), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ file, want string }{
		{"repositories:\n- {name: " + host + "/plugins/p, key: k.pub}\n", "its signature does not count"},
		{"repositories:\n- {name: " + host + "/other, key: k.pub}\n", "has no entry for the repository"},
		{"repositories: 1\n", "trust.yaml"},
	} {
		r, name, _ := shelf(t, v1alpha1.RevisionSpec{Artifact: artifact})
		r.pull = func(context.Context, string) ([]byte, error) {
			t.Error("an artifact is pulled that is not trusted")
			return nil, nil
		}
		r.guard = newGuard(program, dir, c)
		if err := os.WriteFile(filepath.Join(dir, "trust.yaml"), []byte(test.file), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := r.fetch(t.Context(), name); !errors.Is(err, errRefused) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.file, err)
		}
		if entries, err := os.ReadDir(r.dir); err != nil || len(entries) > 0 {
			t.Errorf("%s: it leaves %v (%v)", test.file, entries, err)
		}
	}
}
