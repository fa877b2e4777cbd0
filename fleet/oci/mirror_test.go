package oci_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/fleet/oci"
	"github.com/wasmproxy/wasmproxy/fleet/trust/trusttest"
)

// mirrors is a file of mirrors.
func mirrors(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "mirrors.yaml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// mirrorOf starts a mirror of a registry, below the path /proxy, and counts what it is asked.
func mirrorOf(t *testing.T, host string, asked *int) string {
	t.Helper()
	inner := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: host})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ns := r.URL.Query().Get("ns"); ns != host {
			t.Errorf("a mirror is asked for the registry %q, not %s", ns, host)
		}
		if r.URL.Path != "/v2/" {
			*asked++
		}
		r.URL.Path = strings.Replace(r.URL.Path, "/v2/proxy/", "/v2/", 1)
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/proxy"
}

// TestMirrors are asked in their order, before the registry itself. Those that are away or lie cost nothing but time.
func TestMirrors(t *testing.T) {
	c, host := serve(t, nil)
	module, bundle := []byte("module"), []byte("bundle")
	ref, err := c.Push(t.Context(), host+"/plugins/qos", module)
	if err != nil {
		t.Fatal(err)
	}
	trusttest.Attach(t, ref, bundle)
	liar := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		w.Write(bytes.Repeat([]byte("x"), 9<<20))
	}))
	t.Cleanup(liar.Close)
	other, otherHost := serve(t, nil) // has the module, and not its signature
	if _, err := other.Push(t.Context(), otherHost+"/plugins/qos", module); err != nil {
		t.Fatal(err)
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	asked := 0
	good := mirrorOf(t, host, &asked)
	for _, test := range []struct {
		name          string
		urls          []string
		pulled, found bool // by the good mirror
	}{
		{"a good mirror", []string{good}, true, true},
		{"one that is away before it", []string{gone.URL, good}, true, true},
		{"one that lies before it", []string{liar.URL, good}, true, true},
		{"one without the signature before it", []string{"http://" + otherHost, good}, false, true},
		{"only one that is away", []string{gone.URL}, false, false},
		{"only one that lies", []string{liar.URL}, false, false},
		{"none", nil, false, false},
	} {
		c.Mirrors, asked = mirrors(t, fmt.Sprintf("%q: [%s]\n", host, strings.Join(test.urls, ", "))), 0
		if got, err := c.Pull(t.Context(), ref); err != nil || !bytes.Equal(got, module) || (asked > 0) != test.pulled {
			t.Errorf("%s: %q, %v; the good mirror was asked %d times", test.name, got, err, asked)
		}
		asked = 0
		got, err := c.Signature(t.Context(), ref, func([]byte) error { return nil })
		if err != nil || !bytes.Equal(got, bundle) || (asked > 0) != test.found {
			t.Errorf("%s: the signature is %q, %v; the good mirror was asked %d times", test.name, got, err, asked)
		}
	}
}

// TestMirrorIsNoAnswer has a mirror that lies before a registry that is away: another try may help.
func TestMirrorIsNoAnswer(t *testing.T) {
	_, host := serve(t, func(string, []byte) []byte { return []byte("{}") })
	gone := httptest.NewServer(nil)
	gone.Close()
	away := strings.TrimPrefix(gone.URL, "http://")
	c := oci.Client{PlainHTTP: []string{away}, Mirrors: mirrors(t, fmt.Sprintf("%q: [http://%s]\n", away, host))}
	_, err := c.Pull(t.Context(), away+"/p@sha256:"+strings.Repeat("a", 64))
	if err == nil || errors.Is(err, oci.ErrContent) || !strings.Contains(err.Error(), "the mirror "+host) {
		t.Errorf("the error is %v", err)
	}
}

func TestMirrorsFile(t *testing.T) {
	c, host := serve(t, nil)
	ref, err := c.Push(t.Context(), host+"/p", []byte("module"))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ text, want string }{
		{"{", "reading the mirrors of registries"},
		{fmt.Sprintf("%q: [mirror.example]\n", host), `the mirror "mirror.example" of ` + host + ": it is not a URL"},
		{fmt.Sprintf("%q: http://m\n", host), "reading the mirrors of registries"},
	} {
		c.Mirrors = mirrors(t, test.text)
		if _, err := c.Pull(t.Context(), ref); err == nil || errors.Is(err, oci.ErrContent) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: %v, want %q", test.text, err, test.want)
		}
	}
	c.Mirrors = filepath.Join(t.TempDir(), "none")
	if _, err := c.Pull(t.Context(), ref); err != nil {
		t.Errorf("without the file: %v", err)
	}
}
