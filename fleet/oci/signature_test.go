package oci_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/wasmproxy/wasmproxy/fleet/oci"
	"github.com/wasmproxy/wasmproxy/fleet/trust/trusttest"
)

// TestSignatureIsGone: a signature counts also if the registry lists another one before it that it does not have any more. If none counts,
// the one that is lacking may come.
func TestSignatureIsGone(t *testing.T) {
	inner, artifact, gone := registry.New(registry.Logger(log.New(io.Discard, "", 0))), "all", ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		signature := strings.Contains(r.URL.Path, "/manifests/sha256:") && !strings.HasSuffix(r.URL.Path, artifact)
		if signature && artifact != "all" && gone == "" {
			gone = r.URL.Path
		}
		if r.URL.Path == gone {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	host := strings.TrimPrefix(s.URL, "http://")
	c := oci.Client{PlainHTTP: []string{host}}
	ref, err := c.Push(t.Context(), host+"/p", []byte("module"))
	if err != nil {
		t.Fatal(err)
	}
	trusttest.Attach(t, ref, []byte("first"))
	trusttest.Attach(t, ref, []byte("second"))
	_, artifact, _ = strings.Cut(ref, "@")
	has, err := c.Signature(t.Context(), ref, func([]byte) error { return nil })
	if err != nil || string(has) != "second" {
		t.Errorf("the signature that is there is %q, error %v", has, err)
	}
	_, err = c.Signature(t.Context(), ref, func([]byte) error { return oci.ErrContent })
	if gone == "" || err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("none counts, and %q is lacking: %v", gone, err)
	}
}
