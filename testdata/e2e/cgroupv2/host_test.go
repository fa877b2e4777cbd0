package cgroupv2_test

import (
	"slices"
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/guest"
)

// testService: systemd holds the socket, and knows that the proxy serves and with which plugins.
// The unit leaves the proxy one capability and few directories, which is enough for the tests
// that follow.
func (l *limited) testService(t *testing.T) {
	const process = "/proc/$(systemctl show --property=MainPID --value wasmproxy)"
	for command, want := range map[string]string{
		"systemctl is-active wasmproxy.socket kubelet":                                                                       "active\nactive",
		"systemctl show --property=Type --property=NRestarts --value wasmproxy":                                              "notify\n0",
		"systemctl show --property=StatusText --value wasmproxy | grep -o '^Serving calls.*active: 10-setter' | cut -d. -f1": "Serving calls",
		"grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' " + process + "/status | cut -f2":                                    "0000000000000002\n0000000000000002\n1\n2",
		"cat " + process + "/oom_score_adj":                                                                                  "-999",
		"for dir in /usr /var/lib /root /home; do test -w " + process + "/root$dir && echo $dir; done; true":                 "",
		"grep ^containerRuntimeEndpoint: /var/lib/kubelet/config.yaml":                                                       "containerRuntimeEndpoint: unix://" + guest.ProxySocket,
	} {
		if got := l.Run(t, command); got != want {
			t.Errorf("%s prints %q, want %q", command, got, want)
		}
	}
}

// testUninstall: kubelet is back on the runtime's socket and no container has ended. Of the
// proxy only the plugins are left, which the operator has put there.
func (l *limited) testUninstall(t *testing.T) {
	l.Run(t, "wasmproxy host uninstall --yes --restart-kubelet")
	for command, want := range map[string]string{
		"grep ^containerRuntimeEndpoint: /var/lib/kubelet/config.yaml":                           "containerRuntimeEndpoint: unix://" + guest.ContainerdSocket,
		"systemctl is-active kubelet":                                                            "active",
		"systemctl list-unit-files --no-legend 'wasmproxy*'; true":                               "",
		"find / /run -xdev -path '*wasmproxy*' -not -path '/opt/*' -not -path '/etc/wasmproxy*'": "",
		"ls /etc/wasmproxy": "plugins.d",
	} {
		if got := l.Run(t, command); got != want {
			t.Errorf("%s prints %q, want %q", command, got, want)
		}
	}
	for of, id := range l.ids {
		if !slices.Contains(l.running(t), id) {
			t.Errorf("container %s of pod %s does not run any more", of.name, of.pod)
		}
	}
}

// running returns the ids of the containers that run.
func (l *limited) running(t *testing.T) (ids []string) {
	t.Helper()
	answer, err := l.CRI(t, guest.ContainerdSocket).ListContainers(t.Context(), &cri.ListContainersRequest{
		Filter: &cri.ContainerFilter{State: &cri.ContainerStateValue{State: cri.ContainerState_CONTAINER_RUNNING}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range answer.GetContainers() {
		ids = append(ids, c.GetId())
	}
	return ids
}
