// Package node runs the parts of a Kubernetes node, each as an operator would:
// a container runtime, wasmproxy and kubelet, at their ordinary paths, one node at a time,
// and an API server for it. It must run inside package isolation, whose mounts make
// those paths the test's own. It says how to start, ask and stop the parts and
// proves nothing itself.
package node
