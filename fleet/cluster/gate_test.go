package cluster

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// gate is before the registry. It can hold requests for modules, so that a download is under way, and change bytes of the answers.
type gate struct {
	host    string
	modules map[string]bool // digests in hex

	mu     sync.Mutex
	open   chan struct{} // closed unless requests are held
	held   int           // requests
	lying  bool
	opened func()
}

func startGate(t *testing.T, registry string) *gate {
	t.Helper()
	g := &gate{modules: map[string]bool{}, open: make(chan struct{})}
	g.opened = sync.OnceFunc(func() { close(g.open) })
	g.opened()
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: registry})
			r.Out.Host = r.In.Host // the registry names itself by it
		},
		ModifyResponse: g.lie,
		ErrorHandler:   func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }, // as if nothing were between
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.ofModule(r) {
			g.wait(r)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { g.release(); server.Close() })
	g.host = strings.TrimPrefix(server.URL, "http://")
	return g
}

// ofModule reports whether a request is for the bytes of a module.
func (g *gate) ofModule(r *http.Request) bool {
	_, digest, found := strings.Cut(r.URL.Path, "/blobs/sha256:")
	return r.Method == http.MethodGet && found && g.modules[digest]
}

func (g *gate) wait(r *http.Request) {
	g.mu.Lock()
	open := g.open
	g.held++
	g.mu.Unlock()
	select {
	case <-open:
	case <-r.Context().Done():
	}
}

// hold holds what comes from now on.
func (g *gate) hold() {
	g.mu.Lock()
	defer g.mu.Unlock()
	open := make(chan struct{})
	g.open, g.held, g.opened = open, 0, sync.OnceFunc(func() { close(open) })
}

// release lets all go on.
func (g *gate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.opened()
}

// waiting is how many requests were held since hold.
func (g *gate) waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.held
}

// setLying has the last byte of each module be another one, or not.
func (g *gate) setLying(on bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lying = on
}

func (g *gate) lie(r *http.Response) error {
	g.mu.Lock()
	lying := g.lying
	g.mu.Unlock()
	if !lying || !g.ofModule(r.Request) {
		return nil
	}
	content, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	content[len(content)-1]++
	r.Body = io.NopCloser(bytes.NewReader(content))
	return nil
}
