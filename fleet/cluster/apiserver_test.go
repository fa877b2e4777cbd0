package cluster

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
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// Tokens of people, which are known to all on the machine while the test runs. The first one is in the group that may give plugins the
// rights of root; both may do all that the API server's policies let them.
const (
	adminToken  = "admin"
	editorToken = "editor"

	tokens = adminToken + `,admin,admin,"system:masters,wasmproxy-plugin-admins"` + "\n" + editorToken + ",editor,editor,system:masters\n"
)

// apiServer is a kube-apiserver with an etcd of its own, without any controller of Kubernetes.
type apiServer struct {
	t       *testing.T
	bin     string // directory of the programs
	url     string
	client  *http.Client
	command []string
	kill    func()
}

func startAPIServer(t *testing.T) *apiServer {
	t.Helper()
	dir := t.TempDir()
	run(t, "go", "-C", "../../testdata/e2e", "run", "./internal/programs", dir, "kube-apiserver", "etcd", "prometheus")
	key := filepath.Join(dir, "key.pem")
	if err := errors.Join(writeKey(key), os.WriteFile(filepath.Join(dir, "tokens"), []byte(tokens), 0o600)); err != nil {
		t.Fatal(err)
	}
	etcd, peers, port := "http://127.0.0.1:"+freePort(t), "http://127.0.0.1:"+freePort(t), freePort(t)
	start(t, exec.Command(filepath.Join(dir, "etcd"), "--data-dir="+filepath.Join(dir, "etcd-data"), "--unsafe-no-fsync",
		"--listen-client-urls="+etcd, "--advertise-client-urls="+etcd,
		"--listen-peer-urls="+peers, "--initial-advertise-peer-urls="+peers, "--initial-cluster=default="+peers))
	s := &apiServer{t: t, bin: dir, url: "https://127.0.0.1:" + port,
		client: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}} // its certificate is its own
	s.command = []string{filepath.Join(dir, "kube-apiserver"), "--etcd-servers=" + etcd,
		"--bind-address=127.0.0.1", "--secure-port=" + port, "--cert-dir=" + filepath.Join(dir, "certificates"),
		"--token-auth-file=" + filepath.Join(dir, "tokens"), "--authorization-mode=Node,RBAC",
		"--service-account-issuer=https://fleet", "--service-account-key-file=" + key, "--service-account-signing-key-file=" + key,
		"--service-cluster-ip-range=10.96.0.0/24", "--endpoint-reconciler-type=none",
		"--disable-admission-plugins=ServiceAccount,TaintNodesByCondition"} // they wait for controllers, of which there are none
	s.start()
	return s
}

// start starts the API server, also after kill.
func (s *apiServer) start() {
	s.t.Helper()
	s.kill = start(s.t, exec.Command(s.command[0], s.command[1:]...))
	eventually(s.t, "the API server is ready", func() error {
		resp, err := s.call(http.MethodGet, "/readyz", adminToken, nil)
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

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// start starts a process, which ends with the test, or before that when kill is called. Its last lines are shown if the test fails.
func start(t *testing.T, cmd *exec.Cmd) (kill func()) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	t.Cleanup(func() {
		kill()
		if text, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("the last lines of %s:\n%s", filepath.Base(cmd.Path), text[max(0, len(text)-3000):])
		}
		log.Close()
	})
	return kill
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// eventually tries until there is no error, for two minutes.
func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: not in two minutes: %v", what, err)
		}
	}
}

// answer is one of the API server.
type answer struct {
	code   int
	body   []byte
	header http.Header
}

func (a answer) wrong(want int) error {
	if a.code != want {
		return fmt.Errorf("the API server answers with %d, not %d: %s", a.code, want, a.body)
	}
	return nil
}

func (s *apiServer) call(method, path, token string, body []byte) (answer, error) {
	req, err := http.NewRequest(method, s.url+path, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, text, resp.Header}, err
}

// must makes a call as the administrator, and reads its answer.
func (s *apiServer) must(method, path, body string, into any) {
	s.t.Helper()
	a, err := s.call(method, path, adminToken, []byte(body))
	if err != nil || a.code >= 300 {
		s.t.Fatalf("%s %s: %v: %d %s", method, path, err, a.code, a.body)
	}
	if into != nil {
		if err := json.Unmarshal(a.body, into); err != nil {
			s.t.Fatal(err)
		}
	}
}

// config is that of a client with a token.
func (s *apiServer) config(token string) *rest.Config {
	return &rest.Config{Host: s.url, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, QPS: -1}
}

// token is that of a service account, and of a pod unless that is empty.
func (s *apiServer) token(account, pod string) string {
	s.t.Helper()
	spec := map[string]any{}
	if pod != "" {
		spec["boundObjectRef"] = map[string]any{"kind": "Pod", "apiVersion": "v1", "name": pod}
	}
	body, _ := json.Marshal(map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec})
	var made struct{ Status struct{ Token string } }
	s.must(http.MethodPost, "/api/v1/namespaces/wasmproxy/serviceaccounts/"+account+"/token", string(body), &made)
	return made.Status.Token
}

// apply makes the objects of manifests.
func (s *apiServer) apply(files ...string) {
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
			s.must(http.MethodPost, collection(&o)+"?fieldValidation=Strict", string(made), nil)
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
