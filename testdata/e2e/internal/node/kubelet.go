package node

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/isolation"
)

// kubeletSysctls are the kernel parameters that kubelet wants to set, with its values.
var kubeletSysctls = []string{
	"vm/overcommit_memory=1", "vm/panic_on_oom=0", "kernel/panic=10", "kernel/panic_on_oops=1",
	"kernel/keys/root_maxkeys=1000000", "kernel/keys/root_maxbytes=25000000",
}

// Kubelet is a running kubelet. Unless a flag gives it an API server, its pods are
// manifests in a directory.
type Kubelet struct {
	ConfigFile string // its configuration
	process    *process
	flags      []string
	manifests  string // directory
	client     http.Client
}

// StartKubelet starts kubelet on a CRI endpoint; configure, if not nil, changes
// its configuration first, and flags come after its others. When the test ends it
// is stopped and its state is removed; its pods and their cgroups go with the runtime.
func StartKubelet(t testing.TB, endpoint string, configure func(*kubeletconfig.KubeletConfiguration), flags ...string) *Kubelet {
	t.Helper()
	dir := t.TempDir()
	k := &Kubelet{manifests: filepath.Join(dir, "manifests")}
	// Its certificate is its own; nobody else is on this network.
	k.client.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	k.ConfigFile = ConfigureKubelet(t, dir, endpoint, configure)
	if err := os.Mkdir(k.manifests, 0o755); err != nil {
		t.Fatalf("configuring kubelet: %v", err)
	}
	k.flags = append([]string{"--config=" + k.ConfigFile, "--hostname-override=" + NodeName, "--node-ip=" + isolation.NodeAddress}, flags...)
	k.StartAgain(t)
	t.Cleanup(func() { showContainers(t) })
	return k
}

// showContainers prints what containers of a failed test said last.
func showContainers(t testing.TB) {
	if !t.Failed() {
		return
	}
	logs, err := filepath.Glob("/var/log/pods/*/*/*.log")
	if err != nil {
		t.Errorf("looking for logs of containers: %v", err)
	}
	for _, log := range logs[max(0, len(logs)-20):] {
		text, err := os.ReadFile(log)
		t.Logf("%s ends (%v):\n%s", log, err, text[max(0, len(text)-1<<10):])
	}
}

// Kill ends kubelet without warning. Its pods live on.
func (k *Kubelet) Kill() { k.process.kill() }

// StartAgain starts a killed kubelet over the state that it had.
func (k *Kubelet) StartAgain(t testing.TB) {
	t.Helper()
	process := startProcess(t, "kubelet", KubeletCommand("kubelet", k.flags...))
	k.process = process
	t.Cleanup(func() {
		if err := process.stop(); err != nil {
			t.Errorf("stopping kubelet: %v", err)
		}
	})
	Eventually(t, startTimeout, "kubelet is healthy", func() error {
		if err := k.process.alive(); err != nil {
			t.Fatal(err)
		}
		return k.Healthy(t.Context())
	})
}

// ConfigureKubelet writes kubelet's configuration into dir, and returns the file. Its arguments are those of StartKubelet.
// When the test ends kubelet's state is removed.
func ConfigureKubelet(t testing.TB, dir, endpoint string, configure func(*kubeletconfig.KubeletConfiguration)) (file string) {
	t.Helper()
	config := kubeletConfiguration(dir, endpoint)
	if configure != nil {
		configure(config)
	}
	file = filepath.Join(dir, "config.yaml")
	data, err := yaml.Marshal(config)
	if err := errors.Join(err, os.WriteFile(file, data, 0o644)); err != nil {
		t.Fatalf("configuring kubelet: %v", err)
	}
	t.Cleanup(func() {
		if err := removeKubeletState(); err != nil {
			t.Errorf("cleaning up after kubelet: %v", err)
		}
	})
	return file
}

// KubeletCommand returns the command of a program that is kubelet, or starts it: kernel parameters that kubelet sets are
// not the machine's.
func KubeletCommand(program string, args ...string) *exec.Cmd {
	w := isolation.Current()
	return isolation.CommandWithSysctls(context.Background(), w, kubeletSysctls, w.Program(program), args...)
}

// kubeletConfiguration is a standalone kubelet's on a small machine.
func kubeletConfiguration(dir, endpoint string) *kubeletconfig.KubeletConfiguration {
	config := &kubeletconfig.KubeletConfiguration{
		TypeMeta:                 meta.TypeMeta{APIVersion: "kubelet.config.k8s.io/v1beta1", Kind: "KubeletConfiguration"},
		StaticPodPath:            filepath.Join(dir, "manifests"),
		FileCheckFrequency:       meta.Duration{Duration: time.Second},
		SyncFrequency:            meta.Duration{Duration: 5 * time.Second},
		ContainerRuntimeEndpoint: endpoint,
		CgroupDriver:             CgroupDriver(),
		RuntimeRequestTimeout:    meta.Duration{Duration: Slowly(2 * time.Minute)},
		FailCgroupV1:             ptr.To(false),
		FailSwapOn:               ptr.To(false),
		OOMScoreAdj:              ptr.To[int32](0), // less needs CAP_SYS_RESOURCE
		Address:                  "127.0.0.1",
		VolumePluginDir:          filepath.Join(dir, "volume-plugins"),
		ResolverConfig:           ptr.To(""),
		// A machine with a full disk is to fail in its own way, not by eviction.
		EvictionHard: map[string]string{
			"memory.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%",
			"imagefs.available": "0%", "imagefs.inodesFree": "0%",
		},
		ImageGCHighThresholdPercent: ptr.To[int32](100),
	}
	config.Authentication.Anonymous.Enabled = ptr.To(true)
	config.Authentication.Webhook.Enabled = ptr.To(false)
	config.Authorization.Mode = kubeletconfig.KubeletAuthorizationModeAlwaysAllow
	return config
}

func removeKubeletState() error {
	const root = "/var/lib/kubelet"
	return errors.Join(unmountAll(root), os.RemoveAll(root))
}

// Apply gives kubelet the manifest of a static pod. The file appears whole:
// kubelet would read one that is still being written.
func (k *Kubelet) Apply(t testing.TB, pod *core.Pod) {
	t.Helper()
	data, err := yaml.Marshal(pod)
	if err != nil {
		t.Fatalf("writing the manifest of %s: %v", pod.Name, err)
	}
	file := filepath.Join(t.TempDir(), pod.Name+".yaml")
	err = errors.Join(os.WriteFile(file, data, 0o644), os.Rename(file, k.manifest(pod)))
	if err != nil {
		t.Fatalf("writing the manifest of %s: %v", pod.Name, err)
	}
}

// Remove takes a static pod's manifest away.
func (k *Kubelet) Remove(t testing.TB, pod *core.Pod) {
	t.Helper()
	if err := os.Remove(k.manifest(pod)); err != nil {
		t.Fatalf("removing the manifest of %s: %v", pod.Name, err)
	}
}

func (k *Kubelet) manifest(pod *core.Pod) string {
	return filepath.Join(k.manifests, pod.Name+".yaml")
}

// Healthy returns an error unless kubelet says that it is.
func (k *Kubelet) Healthy(ctx context.Context) error {
	_, err := k.Get(ctx, "/healthz")
	return err
}

// NodeName is the node's name, which kubelet puts after the names of static pods.
const NodeName = "e2e-node"

// PodName returns the name under which kubelet runs a static pod.
func PodName(pod *core.Pod) string { return pod.Name + "-" + NodeName }

// AwaitReady waits until kubelet says that a static pod is ready, and returns what it says.
func (k *Kubelet) AwaitReady(t testing.TB, pod *core.Pod) *core.Pod {
	t.Helper()
	var now *core.Pod
	Eventually(t, readyTimeout, "pod "+pod.Name+" is ready", func() (err error) {
		if now, err = k.Pod(t.Context(), pod); err != nil {
			return err
		}
		return Ready(now)
	})
	return now
}

// Ready returns an error unless a pod's status says that it is ready.
func Ready(pod *core.Pod) error {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == core.PodReady && condition.Status == core.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("it is %+v", pod.Status)
}

// AwaitGone waits until kubelet has ended a static pod whose manifest was removed.
func (k *Kubelet) AwaitGone(t testing.TB, pod *core.Pod) {
	t.Helper()
	Eventually(t, readyTimeout, "pod "+pod.Name+" is gone", func() error {
		now, err := k.Pod(t.Context(), pod)
		switch {
		case errors.Is(err, errNoPod):
			return nil
		case err != nil:
			return err
		}
		return fmt.Errorf("it is %+v", now.Status)
	})
}

// errNoPod says that kubelet knows no such pod.
var errNoPod = errors.New("kubelet does not know the pod")

// Pod returns kubelet's view of a static pod that it was given.
func (k *Kubelet) Pod(ctx context.Context, pod *core.Pod) (*core.Pod, error) {
	var list core.PodList
	if err := k.GetJSON(ctx, "/pods", &list); err != nil {
		return nil, err
	}
	for _, p := range list.Items {
		if p.Namespace == pod.Namespace && p.Name == PodName(pod) {
			return &p, nil
		}
	}
	return nil, errNoPod
}

// GetJSON decodes what kubelet's server answers.
func (k *Kubelet) GetJSON(ctx context.Context, path string, into any) error {
	data, err := k.Get(ctx, path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("decoding kubelet's answer to %s: %w", path, err)
	}
	return nil
}

// Get asks kubelet's server for a path.
func (k *Kubelet) Get(ctx context.Context, path string) ([]byte, error) {
	return k.request(ctx, http.MethodGet, path)
}

// Run runs a command in a container of a pod, as CRI's ExecSync, and returns its output.
func (k *Kubelet) Run(ctx context.Context, pod *core.Pod, container, command string) ([]byte, error) {
	return k.request(ctx, http.MethodPost, fmt.Sprintf("/run/%s/%s/%s?cmd=%s",
		pod.Namespace, PodName(pod), container, url.QueryEscape(command)))
}

// Logs returns what a container of a pod has printed.
func (k *Kubelet) Logs(ctx context.Context, pod *core.Pod, container string) ([]byte, error) {
	return k.Get(ctx, fmt.Sprintf("/containerLogs/%s/%s/%s", pod.Namespace, PodName(pod), container))
}

func (k *Kubelet) request(ctx context.Context, method, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, Slowly(time.Minute))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "https://127.0.0.1:10250"+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := k.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("asking kubelet for %s: %w", path, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("asking kubelet for %s: %w", path, err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("asking kubelet for %s: %s: %s", path, resp.Status, body)
	}
	return body, nil
}
