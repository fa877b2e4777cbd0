// Package scale has a test of a rollout to many simulated agents, on a real kube-apiserver and etcd and with the real controller: what
// it costs the API server, and that it halts and goes back. It has no code.
package scale
