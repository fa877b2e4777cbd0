package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
)

// startInternet starts registries of these names with TLS, and a proxy by which programs reach them and nothing else. It returns the
// variables that a program needs for that.
func startInternet(t *testing.T, names ...string) (env []string) {
	t.Helper()
	certificate, public := newCertificate(t, names)
	registries := map[string]http.Handler{}
	for _, name := range names {
		registries[name] = registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(true))
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { registries[r.Host].ServeHTTP(w, r) }))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	server.StartTLS()
	t.Cleanup(server.Close)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, port, _ := net.SplitHostPort(r.Host)
		if r.Method != http.MethodConnect || port != "443" || !slices.Contains(names, name) {
			http.Error(w, r.Method+" "+r.Host+": there are the registries of the test alone", http.StatusForbidden)
			return
		}
		if err := tunnel(w, server.Listener.Addr().String()); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
		}
	}))
	t.Cleanup(proxy.Close)
	file := filepath.Join(t.TempDir(), "ca.pem")
	write(t, file, public)
	return []string{"HTTPS_PROXY=" + proxy.URL, "SSL_CERT_FILE=" + file, "SSL_CERT_DIR=" + t.TempDir()}
}

// tunnel joins the client's connection with one to an address.
func tunnel(w http.ResponseWriter, address string) error {
	far, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	near, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		far.Close()
		return err
	}
	if _, err := io.WriteString(near, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		near.Close()
		far.Close()
		return nil
	}
	go func() {
		io.Copy(far, near)
		far.Close()
	}()
	go func() {
		io.Copy(near, far)
		near.Close()
	}()
	return nil
}

// newCertificate makes a certificate for hosts, which is its own authority.
func newCertificate(t *testing.T, hosts []string) (c tls.Certificate, public []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: hosts, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
