package oci_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/fleet/oci"
)

// serve starts a registry. change may change an answer of it.
func serve(t *testing.T, change func(path string, body []byte) []byte) (oci.Client, string) {
	t.Helper()
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || change == nil {
			inner.ServeHTTP(w, r)
			return
		}
		answer := httptest.NewRecorder()
		inner.ServeHTTP(answer, r)
		body := change(r.URL.Path, answer.Body.Bytes())
		for key, values := range answer.Header() {
			w.Header()[key] = values
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		w.WriteHeader(answer.Code)
		w.Write(body)
	}))
	t.Cleanup(s.Close)
	host := strings.TrimPrefix(s.URL, "http://")
	return oci.Client{PlainHTTP: []string{host}}, host
}

func TestPushAndPull(t *testing.T) {
	c, host := serve(t, nil)
	module := []byte("\x00asm module")
	ref, err := c.Push(t.Context(), host+"/plugins/qos:1.0.0", module)
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.Push(t.Context(), host+"/plugins/qos", module)
	if err != nil || again != ref {
		t.Errorf("the same module is %s and %s (%v)", ref, again, err)
	}
	tagged := strings.Replace(ref, "@", ":1.0.0@", 1)
	for _, name := range []string{ref, tagged} {
		if got, err := c.Pull(t.Context(), name); err != nil || !bytes.Equal(got, module) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := c.Pull(t.Context(), host+"/plugins/qos:1.0.0"); !errors.Is(err, oci.ErrContent) || !strings.Contains(err.Error(), "names no digest") {
		t.Errorf("pulling by a tag: %v", err)
	}
	other := ref[:len(ref)-4] + "0000"
	if _, err := c.Pull(t.Context(), other); err == nil || errors.Is(err, oci.ErrContent) {
		t.Errorf("pulling what is not there yet is for another try, not %v", err)
	}
}

// TestLyingRegistry answers with other bytes than those that were pushed.
func TestLyingRegistry(t *testing.T) {
	for _, test := range []struct{ name, path, want string }{
		{"another module", "/blobs/", "the registry has answered with"},
		{"another manifest", "/manifests/", "the registry has answered with"},
	} {
		var lies bool
		c, host := serve(t, func(path string, body []byte) []byte {
			if lies && strings.Contains(path, test.path) {
				return append(bytes.Clone(body[:len(body)-1]), '!') // of the same length
			}
			return body
		})
		ref, err := c.Push(t.Context(), host+"/p", []byte("module"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Pull(t.Context(), ref); err != nil {
			t.Errorf("%s: before the registry lies: %v", test.name, err)
		}
		lies = true
		if _, err := c.Pull(t.Context(), ref); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestTooLarge(t *testing.T) {
	c, host := serve(t, nil)
	if _, err := c.Push(t.Context(), host+"/p", make([]byte, abi.MaxModule+1)); err == nil || !strings.Contains(err.Error(), "more than the 8388608") {
		t.Errorf("pushing a module that is too large: %v", err)
	}
}

// TestOtherArtifacts are refused with what is wrong in them.
func TestOtherArtifacts(t *testing.T) {
	const layer = `{"mediaType": "%s", "digest": "sha256:0000000000000000000000000000000000000000000000000000000000000000", "size": 1}`
	wasm, image := fmt.Sprintf(layer, "application/wasm"), fmt.Sprintf(layer, "application/vnd.oci.image.layer.v1.tar+gzip")
	for _, test := range []struct{ name, mediaType, manifest, want string }{
		{"an image", "application/vnd.oci.image.manifest.v1+json", `"layers": [` + image + `]`, "0 layers of the type application/wasm"},
		{"two modules", "application/vnd.oci.image.manifest.v1+json", `"layers": [` + wasm + "," + wasm + `]`, "2 layers of the type"},
		{"an index", "application/vnd.oci.image.index.v1+json", `"manifests": []`, "its media type is"},
	} {
		c, host := serve(t, nil)
		text := `{"schemaVersion": 2, "mediaType": "` + test.mediaType + `", ` + test.manifest + "}"
		put, _ := http.NewRequest(http.MethodPut, "http://"+host+"/v2/p/manifests/x", strings.NewReader(text))
		put.Header.Set("Content-Type", test.mediaType)
		resp, err := http.DefaultClient.Do(put)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		ref := host + "/p@" + resp.Header.Get("Docker-Content-Digest")
		if _, err := c.Pull(t.Context(), ref); !errors.Is(err, oci.ErrContent) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}
