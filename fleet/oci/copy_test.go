package oci_test

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/wasmproxy/wasmproxy/fleet/oci"
	"github.com/wasmproxy/wasmproxy/fleet/trust/trusttest"
)

// TestCopy carries an artifact and its signatures from one registry to another one, directly and by a directory.
func TestCopy(t *testing.T) {
	from, host := serve(t, nil)
	ref, err := from.Push(t.Context(), host+"/plugins/qos:1.0.0", []byte("module"))
	if err != nil {
		t.Fatal(err)
	}
	for _, bundle := range []string{"first", "second"} {
		trusttest.Attach(t, ref, []byte(bundle))
	}
	_, digest, _ := strings.Cut(ref, "@")
	dir := "oci:" + filepath.Join(t.TempDir(), "layout")
	_, inside := serve(t, nil)
	c := oci.Client{PlainHTTP: []string{host, inside}}
	for _, step := range []struct{ from, to, want string }{
		{host + "/plugins/qos:1.0.0", dir, dir + "@" + digest},
		{dir + "@" + digest, inside + "/plugins/qos:1.0.0", inside + "/plugins/qos@" + digest},
		{dir + "@" + digest, inside + "/plugins/qos", inside + "/plugins/qos@" + digest}, // again
		{ref, inside + "/direct/qos", inside + "/direct/qos@" + digest},
	} {
		if got, err := c.Copy(t.Context(), step.from, step.to); err != nil || got != step.want {
			t.Errorf("copying %s to %s: %q, %v", step.from, step.to, got, err)
		}
	}
	for _, at := range []string{inside + "/plugins/qos@" + digest, inside + "/direct/qos@" + digest} {
		if module, err := c.Pull(t.Context(), at); err != nil || string(module) != "module" {
			t.Errorf("%s has the module %q, %v", at, module, err)
		}
		for _, bundle := range []string{"first", "second"} {
			_, err := c.Signature(t.Context(), at, func(has []byte) error {
				if !bytes.Equal(has, []byte(bundle)) {
					return oci.ErrContent
				}
				return nil
			})
			if err != nil {
				t.Errorf("%s does not have the signature %s: %v", at, bundle, err)
			}
		}
	}
	if _, err := c.Copy(t.Context(), inside+"/plugins/qos:1.0.0", "oci:"+t.TempDir()); err != nil {
		t.Errorf("the tag is not there: %v", err)
	}
}

// TestCopyAgain brings another signature to a registry that deletes nothing, as CNCF's does by default, and does not list referrers.
func TestCopyAgain(t *testing.T) {
	from, host := serve(t, nil)
	ref, err := from.Push(t.Context(), host+"/plugins/qos:1.0.0", []byte("module"))
	if err != nil {
		t.Fatal(err)
	}
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	inside := strings.TrimPrefix(s.URL, "http://")
	c := oci.Client{PlainHTTP: []string{host, inside}}
	for _, bundle := range []string{"of the old key", "of the new key"} {
		trusttest.Attach(t, ref, []byte(bundle))
		if _, err := c.Copy(t.Context(), ref, inside+"/plugins/qos"); err != nil {
			t.Errorf("copying the signature %s: %v", bundle, err)
		}
	}
}

func TestCopyRefuses(t *testing.T) {
	c, host := serve(t, nil)
	ref, err := c.Push(t.Context(), host+"/p", []byte("module"))
	if err != nil {
		t.Fatal(err)
	}
	empty := "oci:" + t.TempDir()
	for _, test := range []struct{ from, to, want string }{
		{host + "/p", empty, "it names no digest"},
		{ref, host + "/q@sha256:" + strings.Repeat("a", 64), "it names a digest, which is that of the artifact"},
		{empty + "@sha256:" + strings.Repeat("a", 64), host + "/q", "is not an OCI layout"},
		{"oci:", host + "/q", "it names no directory"},
		{host + "/p@sha256:" + strings.Repeat("a", 64), host + "/q", "not found"},
	} {
		if _, err := c.Copy(t.Context(), test.from, test.to); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("copying %s to %s: %v, want %q", test.from, test.to, err, test.want)
		}
	}
}
