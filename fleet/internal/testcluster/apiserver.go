// Package testcluster starts the programs of a cluster for tests: a real kube-apiserver with an etcd, and others that a test names. It has
// no tests, and decides nothing about the fleet.
package testcluster

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// Tokens of people, which are known to all on the machine while the test runs. The first one is in the group that may give plugins the
// rights of root; both may do all that the API server's policies let them.
const (
	AdminToken  = "admin"
	EditorToken = "editor"

	tokens = AdminToken + `,admin,admin,"system:masters,wasmproxy-plugin-admins"` + "\n" + EditorToken + ",editor,editor,system:masters\n"
)

// Server is a kube-apiserver with an etcd of its own, without any controller of Kubernetes.
type Server struct {
	Bin  string // directory of the programs
	Etcd string // URL of the etcd
	Kill func() // ends the API server
	PID  int    // of the API server

	t       *testing.T
	url     string
	client  *http.Client
	command []string
}

// Start starts both programs, which end with the test. Others are put beside them into the directory of programs.
func Start(t *testing.T, others ...string) *Server {
	t.Helper()
	dir := t.TempDir()
	Run(t, "go", append([]string{"-C", "../../testdata/e2e", "run", "./internal/programs", dir, "kube-apiserver", "etcd"}, others...)...)
	key := filepath.Join(dir, "key.pem")
	if err := errors.Join(writeKey(key), os.WriteFile(filepath.Join(dir, "tokens"), []byte(tokens), 0o600)); err != nil {
		t.Fatal(err)
	}
	etcd, peers, port := "http://127.0.0.1:"+FreePort(t), "http://127.0.0.1:"+FreePort(t), FreePort(t)
	Process(t, exec.Command(filepath.Join(dir, "etcd"), "--data-dir="+filepath.Join(dir, "etcd-data"), "--unsafe-no-fsync",
		"--listen-client-urls="+etcd, "--advertise-client-urls="+etcd,
		"--listen-peer-urls="+peers, "--initial-advertise-peer-urls="+peers, "--initial-cluster=default="+peers))
	s := &Server{t: t, Bin: dir, Etcd: etcd, url: "https://127.0.0.1:" + port,
		client: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}} // its certificate is its own
	s.command = []string{filepath.Join(dir, "kube-apiserver"), "--etcd-servers=" + etcd,
		"--bind-address=127.0.0.1", "--secure-port=" + port, "--cert-dir=" + filepath.Join(dir, "certificates"),
		"--token-auth-file=" + filepath.Join(dir, "tokens"), "--authorization-mode=Node,RBAC",
		"--service-account-issuer=https://fleet", "--service-account-key-file=" + key, "--service-account-signing-key-file=" + key,
		"--service-cluster-ip-range=10.96.0.0/24", "--endpoint-reconciler-type=none",
		"--disable-admission-plugins=ServiceAccount,TaintNodesByCondition"} // they wait for controllers, of which there are none
	s.Start()
	return s
}

// Start starts the API server, also after Kill.
func (s *Server) Start() {
	s.t.Helper()
	cmd := exec.Command(s.command[0], s.command[1:]...)
	s.Kill = Process(s.t, cmd)
	s.PID = cmd.Process.Pid
	Eventually(s.t, "the API server is ready", func() error {
		resp, err := s.Call(http.MethodGet, "/readyz", AdminToken, nil)
		return errors.Join(err, resp.wrong(http.StatusOK))
	})
}

func writeKey(file string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}

// Answer is one of the API server.
type Answer struct {
	Code   int
	Body   []byte
	Header http.Header
}

func (a Answer) wrong(want int) error {
	if a.Code != want {
		return fmt.Errorf("the API server answers with %d, not %d: %s", a.Code, want, a.Body)
	}
	return nil
}

// Call makes a call with a token. The error is of the way to the API server, and not of what that answers.
func (s *Server) Call(method, path, token string, body []byte) (Answer, error) {
	req, err := http.NewRequest(method, s.url+path, bytes.NewReader(body))
	if err != nil {
		return Answer{}, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return Answer{resp.StatusCode, text, resp.Header}, err
}

// Must makes a call as the administrator, and reads its answer.
func (s *Server) Must(method, path, body string, into any) {
	s.t.Helper()
	a, err := s.Call(method, path, AdminToken, []byte(body))
	if err != nil || a.Code >= 300 {
		s.t.Fatalf("%s %s: %v: %d %s", method, path, err, a.Code, a.Body)
	}
	if into != nil {
		if err := json.Unmarshal(a.Body, into); err != nil {
			s.t.Fatal(err)
		}
	}
}

// Config is that of a client with a token.
func (s *Server) Config(token string) *rest.Config {
	return &rest.Config{Host: s.url, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, QPS: -1}
}

// Kubeconfig writes a file by which a program reaches the API server with a token.
func (s *Server) Kubeconfig(file, token string) {
	s.t.Helper()
	text := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
		"clusters": [{"name": "c", "cluster": {"server": %q, "insecure-skip-tls-verify": true}}], "users": [{"name": "u", "user": {"token": %q}}]}`,
		s.url, token)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// Token is that of a service account, and of a pod unless that is empty.
func (s *Server) Token(account, pod string) string {
	s.t.Helper()
	spec := map[string]any{}
	if pod != "" {
		spec["boundObjectRef"] = map[string]any{"kind": "Pod", "apiVersion": "v1", "name": pod}
	}
	body, _ := json.Marshal(map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec})
	var made struct{ Status struct{ Token string } }
	s.Must(http.MethodPost, "/api/v1/namespaces/wasmproxy/serviceaccounts/"+account+"/token", string(body), &made)
	return made.Status.Token
}

// Apply makes the objects of manifests.
func (s *Server) Apply(files ...string) {
	s.t.Helper()
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join("../../deploy/kustomize", file))
		if err != nil {
			s.t.Fatal(err)
		}
		for _, document := range strings.Split(string(text), "\n---\n") {
			var o unstructured.Unstructured
			if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
				s.t.Fatalf("%s: %v", file, err)
			}
			if o.Object == nil {
				continue
			}
			made, err := json.Marshal(o.Object)
			if err != nil {
				s.t.Fatal(err)
			}
			s.Must(http.MethodPost, collection(&o)+"?fieldValidation=Strict", string(made), nil)
		}
	}
}

// collection is the path of an object's kind.
func collection(o *unstructured.Unstructured) string {
	path := "/apis/" + o.GetAPIVersion()
	if o.GetAPIVersion() == "v1" {
		path = "/api/v1"
	}
	switch o.GetKind() {
	case "ServiceAccount", "Role", "RoleBinding", "DaemonSet", "Deployment":
		path += "/namespaces/wasmproxy"
	case "ValidatingAdmissionPolicy":
		return path + "/validatingadmissionpolicies"
	}
	return path + "/" + strings.ToLower(o.GetKind()) + "s"
}
