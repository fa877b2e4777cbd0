package guest

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// Kubelet is the guest's kubelet, whose pods are manifests in a directory.
type Kubelet struct {
	guest  *Machine
	client *http.Client
}

func newKubelet(m *Machine) Kubelet {
	return Kubelet{m, &http.Client{Timeout: commandTimeout, Transport: &http.Transport{
		DialContext:     m.ssh.DialContext,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // its certificate is its own
	}}}
}

// Apply gives kubelet a static pod.
func (k Kubelet) Apply(t testing.TB, pod *core.Pod) {
	t.Helper()
	manifest, err := yaml.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	k.guest.WriteFile(t, "/etc/kubernetes/manifests/"+pod.Name+".yaml", manifest)
}

// Remove takes a static pod away.
func (k Kubelet) Remove(t testing.TB, pod *core.Pod) {
	t.Helper()
	k.guest.Run(t, "rm /etc/kubernetes/manifests/"+pod.Name+".yaml")
}

// Pod returns kubelet's view of a static pod.
func (k Kubelet) Pod(ctx context.Context, pod *core.Pod) (*core.Pod, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://127.0.0.1:10250/pods", nil)
	if err != nil {
		return nil, err
	}
	response, err := k.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking kubelet for its pods: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("asking kubelet for its pods: %s: %s (%w)", response.Status, body, err)
	}
	var list core.PodList
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("decoding kubelet's pods: %w", err)
	}
	for _, p := range list.Items {
		if p.Namespace == pod.Namespace && p.Name == node.PodName(pod) {
			return &p, nil
		}
	}
	return nil, fmt.Errorf("kubelet does not know the pod %s", pod.Name)
}

// AwaitReady waits until kubelet says that a static pod is ready, and returns what it says.
func (k Kubelet) AwaitReady(t testing.TB, pod *core.Pod) (now *core.Pod) {
	t.Helper()
	node.Eventually(t, readyTimeout, "pod "+pod.Name+" is ready", func() (err error) {
		if now, err = k.Pod(t.Context(), pod); err != nil {
			return err
		}
		return node.Ready(now)
	})
	return now
}

// ContainerID returns the id of a running container of a pod, by the container's name.
func ContainerID(t testing.TB, pod *core.Pod, container string) string {
	t.Helper()
	for _, c := range pod.Status.ContainerStatuses {
		if _, id, ok := strings.Cut(c.ContainerID, "://"); ok && c.Name == container {
			return id
		}
	}
	t.Fatalf("pod %s has no running container %s: %+v", pod.Name, container, pod.Status)
	return ""
}
