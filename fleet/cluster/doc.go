// Package cluster has tests of the fleet on a real kube-apiserver and etcd, with real proxies and a real registry. It has no code.
package cluster
