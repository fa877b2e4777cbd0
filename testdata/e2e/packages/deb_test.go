package packages_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/guest"
)

// testPackage: the package brings files, and changes nothing else.
func (h *host) testPackage(t *testing.T) {
	h.Run(t, "touch /var/lib/dpkg/status") // the guest's packages were unpacked without dpkg
	h.says(t, "dpkg --install /mnt/wasmproxy_"+oldVersion+"_amd64.deb", "wasmproxy host install --dry-run")
	h.prints(t, map[string]string{
		"dpkg-query --show --showformat='${Status} ${Version}' wasmproxy":                    "install ok installed " + oldVersion,
		"systemctl is-enabled wasmproxy.socket wasmproxy.service; true":                      "disabled\ndisabled",
		"systemctl is-active wasmproxy.socket wasmproxy.service; true":                       "inactive\ninactive",
		"ls -d /etc/wasmproxy /var/lib/wasmproxy /run/wasmproxy 2>/dev/null; true":           "",
		"systemctl show --property=ActiveEnterTimestamp --value kubelet | grep -c .":         "1",
		"grep ^containerRuntimeEndpoint: /var/lib/kubelet/config.yaml; command -v wasmproxy": "containerRuntimeEndpoint: unix://" + guest.ContainerdSocket + "\n/usr/bin/wasmproxy",
	})
}

// testInstall points kubelet at the proxy. The second time, nothing is left to do.
func (h *host) testInstall(t *testing.T) {
	h.says(t, "wasmproxy host install --yes --restart-kubelet", "the proxy serves containerd")
	h.throughProxy(t, oldVersion)
	since := h.Run(t, "systemctl show --property=ActiveEnterTimestampMonotonic --value kubelet")
	h.says(t, "wasmproxy host install --yes --restart-kubelet", "kubelet uses the proxy already, so it is not restarted")
	h.prints(t, map[string]string{"systemctl show --property=ActiveEnterTimestampMonotonic --value kubelet": since})
	h.Run(t, "wasmproxy plugin install qos")
	h.Await(t, "wasmproxy plugin list -o json | grep -q '\"state\": \"active\"'")
}

func (h *host) testRestart(t *testing.T) {
	h.Run(t, "systemctl restart wasmproxy")
	h.throughProxy(t, oldVersion)
	h.Await(t, "wasmproxy plugin list -o json | grep -q '\"state\": \"active\"'")
}

// testUpgrade: while dpkg replaces the package, which restarts the service, every call succeeds, since all
// are short. Then the new program serves.
func (h *host) testUpgrade(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	calls := h.call(ctx, t)
	out := h.Run(t, "dpkg --install /mnt/wasmproxy_"+newVersion+"_amd64.deb")
	time.Sleep(5 * time.Second) // calls go on with the new process
	stop()
	made, failed := calls()
	t.Logf("%d calls, %d failed; dpkg says\n%s", made, len(failed), out)
	if len(failed) > 0 || made < 100 {
		t.Errorf("of %d calls %d failed, first with %v", made, len(failed), append(failed, nil)[0])
	}
	h.throughProxy(t, newVersion)
}

// call makes calls, one after another on each of four connections, until ctx ends. The function
// that it returns waits for their ends.
func (h *host) call(ctx context.Context, t *testing.T) func() (made int, failed []error) {
	var all sync.WaitGroup
	var lock sync.Mutex
	var made int
	var failed []error
	for range 4 {
		client := h.CRI(t, guest.ProxySocket)
		all.Go(func() {
			for ctx.Err() == nil {
				start := time.Now()
				_, err := client.ListContainers(context.WithoutCancel(ctx), &cri.ListContainersRequest{})
				lock.Lock()
				if made++; err != nil {
					failed = append(failed, fmt.Errorf("after %v: %w", time.Since(start), err))
				}
				lock.Unlock()
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	return func() (int, []error) {
		all.Wait()
		return made, failed
	}
}

// testReboot: after the boot, the proxy serves before kubelet starts pods.
func (h *host) testReboot(t *testing.T) {
	h.Reboot(t)
	h.Await(t, "systemctl is-active kubelet wasmproxy containerd")
	h.id = guest.ContainerID(t, h.AwaitReady(t, h.pod), "main")
	h.throughProxy(t, newVersion)
	h.Await(t, "wasmproxy plugin list -o json | grep -q '\"state\": \"active\"'")
}

// testBadFile: the JSON of an active plugin is cut off, and the node boots. The plugin is active as it was, pods start,
// and the proxy names the file. Once the file is whole, nothing is left to say.
func (h *host) testBadFile(t *testing.T) {
	const file = "/etc/wasmproxy/plugins.d/50-qos.json"
	h.Run(t, `printf '{"failure-policy": "Ignore", "order": "50"}' >`+file)
	h.Await(t, "grep -q order /var/lib/wasmproxy/last-good/plugins/50-qos.json")
	h.Run(t, "truncate -s 20 "+file)
	h.Await(t, "wasmproxy status | grep -q '! plugin 50-qos: "+file+": is not JSON.*stays active'")
	h.Reboot(t)
	h.Await(t, "systemctl is-active kubelet wasmproxy containerd")
	h.id = guest.ContainerID(t, h.AwaitReady(t, h.pod), "main")
	h.throughProxy(t, newVersion)
	h.Await(t, "wasmproxy plugin list -o json | grep -q '\"state\": \"active\"'")
	h.Await(t, "wasmproxy status | grep -q '! plugin 50-qos: "+file+": is not JSON.*stays active'")
	h.says(t, "wasmproxy doctor; true", file)
	h.Run(t, "rm "+file)
	h.Await(t, "! wasmproxy status | grep -q "+file)
}

// testPurge: kubelet is back on the runtime's socket, and nothing is left.
func (h *host) testPurge(t *testing.T) {
	t.Log(h.Run(t, "dpkg --purge wasmproxy 2>&1"))
	h.onRuntime(t, "")
	h.prints(t, map[string]string{"dpkg-query --show wasmproxy 2>/dev/null; true": ""})
}
