// Package demo shows the proxy at work without a node: a real proxy on real
// sockets with real plugins, before a runtime that keeps its containers in
// memory and its cgroups in a directory. It plays the calls that kubelet makes
// in a pod's life, and prints after each what plugins made of it. It can stay up after
// that, and run a Pod of the user's with the user's plugins.
//
// It is no test of the proxy, though it fails if what it wants to show does not
// happen, and nothing of it is used outside the demonstration.
package demo
