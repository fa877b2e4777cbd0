package intercept

import (
	"slices"

	"github.com/wasmproxy/wasmproxy/abi"
)

// exemptHooks are those before the calls without which a pod does not run, or does not get its resources.
var exemptHooks = abi.HookSetOf(abi.PrePullImage, abi.PreRunPodSandbox, abi.PreCreateContainer, abi.PreStartContainer,
	abi.PreUpdateContainerResources, abi.PreUpdatePodSandboxResources)

// Exempt implements plugin.Subject. The namespace is that by which plugins' matches go: of the request, or of
// the store where the request names no pod. Where none is known, policy holds.
func (e *event) Exempt() bool {
	namespace, errno := e.Text(abi.Pod, abi.PodNamespace)
	return errno == abi.OK && exemptHooks.Has(e.hook) && slices.Contains(e.host.ExemptNamespaces, namespace)
}
