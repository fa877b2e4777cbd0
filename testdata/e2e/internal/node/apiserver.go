package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/keyutil"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/isolation"
)

const (
	apiEndpoint  = "https://127.0.0.1:6443"
	etcdEndpoint = "http://127.0.0.1:2379"
	etcdPeers    = "http://127.0.0.1:2380" // there are none, but it insists

	// adminToken is known to all, and its holder may do all: nobody else is on this network.
	adminToken = "admin"
)

// APIServer is a running kube-apiserver over an etcd of its own. There is no
// scheduler and no controller: a pod is given a node by whoever makes it.
type APIServer struct {
	kubernetes.Interface
	Kubeconfig string // file; kubelet's --kubeconfig
}

// StartAPIServer starts both with nothing in them. When the test ends they are
// stopped and what they held is gone. Whoever is to use them is started later.
func StartAPIServer(t testing.TB) *APIServer {
	t.Helper()
	dir := t.TempDir()
	client, err := kubernetes.NewForConfig(&rest.Config{
		Host: apiEndpoint, BearerToken: adminToken, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, // its certificate is its own
		QPS: -1, // without a limit
	})
	if err != nil {
		t.Fatalf("making a client of the API server: %v", err)
	}
	s := &APIServer{Interface: client, Kubeconfig: filepath.Join(dir, "kubeconfig")}
	if err := errors.Join(writeKubeconfig(s.Kubeconfig), writeAPIServerFiles(dir)); err != nil {
		t.Fatalf("configuring the API server: %v", err)
	}
	startEtcd(t, filepath.Join(dir, "etcd"))
	server := startProcess(t, "kube-apiserver", exec.Command(isolation.Current().Program("kube-apiserver"), apiServerFlags(dir)...))
	t.Cleanup(func() {
		if err := server.stop(); err != nil {
			t.Errorf("stopping the API server: %v", err)
		}
	})
	Eventually(t, 2*startTimeout, "the API server is ready", func() error {
		if err := server.alive(); err != nil {
			t.Fatal(err)
		}
		return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(t.Context()).Error()
	})
	return s
}

func startEtcd(t testing.TB, dir string) {
	t.Helper()
	etcd := startProcess(t, "etcd", exec.Command(isolation.Current().Program("etcd"), "--data-dir="+dir, "--unsafe-no-fsync",
		"--listen-client-urls="+etcdEndpoint, "--advertise-client-urls="+etcdEndpoint,
		"--listen-peer-urls="+etcdPeers, "--initial-advertise-peer-urls="+etcdPeers, "--initial-cluster=default="+etcdPeers))
	t.Cleanup(etcd.kill) // asked to end it does, as if the signal had killed it
}

// Names of files in the API server's directory.
const (
	tokensFile = "tokens.csv"
	keyFile    = "service-accounts.key"
)

func apiServerFlags(dir string) []string {
	key := filepath.Join(dir, keyFile)
	return []string{
		"--etcd-servers=" + etcdEndpoint,
		"--bind-address=127.0.0.1", "--secure-port=6443", "--advertise-address=" + isolation.NodeAddress, "--cert-dir=" + filepath.Join(dir, "certificates"),
		"--token-auth-file=" + filepath.Join(dir, tokensFile), "--authorization-mode=AlwaysAllow",
		"--allow-privileged=true", // as kubeadm has it
		"--service-account-issuer=https://e2e", "--service-account-key-file=" + key, "--service-account-signing-key-file=" + key,
		"--service-cluster-ip-range=10.96.0.0/24", "--endpoint-reconciler-type=none",
		// They wait for controllers, of which there are none.
		"--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
	}
}

// writeAPIServerFiles writes who may come, and the key of service accounts, which
// nobody uses and it insists on.
func writeAPIServerFiles(dir string) error {
	key, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, keyFile), key, 0o600),
		os.WriteFile(filepath.Join(dir, tokensFile), []byte(adminToken+",admin,admin,system:masters\n"), 0o600),
	)
}

func writeKubeconfig(file string) error {
	const name = "e2e"
	return clientcmd.WriteToFile(api.Config{
		Clusters:       map[string]*api.Cluster{name: {Server: apiEndpoint, InsecureSkipTLSVerify: true}},
		AuthInfos:      map[string]*api.AuthInfo{name: {Token: adminToken}},
		Contexts:       map[string]*api.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}, file)
}

// Apply is kubectl apply --server-side --validate=strict, and returns the object as the API server has it.
func (s *APIServer) Apply(ctx context.Context, o *unstructured.Unstructured, dryRun bool) (map[string]any, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	group, kind := "/apis/"+o.GetAPIVersion(), strings.ToLower(o.GetKind())
	if !strings.Contains(o.GetAPIVersion(), "/") {
		group = "/api/" + o.GetAPIVersion()
	}
	if o.GetNamespace() != "" {
		group += "/namespaces/" + o.GetNamespace()
	}
	kinds := kind + "s"
	if stem, found := strings.CutSuffix(kind, "y"); found {
		kinds = stem + "ies"
	}
	request := s.Discovery().RESTClient().Patch(types.ApplyPatchType).AbsPath(group, kinds, o.GetName()).
		Param("fieldManager", "e2e").Param("fieldValidation", "Strict").Body(body)
	if dryRun {
		request = request.Param("dryRun", "All")
	}
	answer, err := request.Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, answer)
	}
	made := new(unstructured.Unstructured)
	err = made.UnmarshalJSON(answer)
	return made.Object, err
}

// StartControllers starts some of Kubernetes' controllers, by their names, which end with the test.
func (s *APIServer) StartControllers(t testing.TB, names ...string) {
	t.Helper()
	StartProgram(t, "kube-controller-manager", "--kubeconfig="+s.Kubeconfig, "--controllers="+strings.Join(names, ","),
		"--leader-elect=false", "--secure-port=0", "--use-service-account-credentials=false")
}

// AwaitReady waits until the API server says that a pod is ready, and returns what it says.
func (s *APIServer) AwaitReady(t testing.TB, name string) (pod *core.Pod) {
	t.Helper()
	Eventually(t, readyTimeout, "pod "+name+" is ready", func() (err error) {
		if pod, err = s.CoreV1().Pods("default").Get(t.Context(), name, meta.GetOptions{}); err != nil {
			return err
		}
		return Ready(pod)
	})
	return pod
}
