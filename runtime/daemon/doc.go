// Package daemon puts the parts together: sockets, the proxy, the store, the
// plugins and what changes them while calls go on. It is the only package that
// knows them all, so only cmd imports it.
//
// It decides when things happen (a generation of plugins replaces another, the
// store is filled, calls are drained), not what they do.
package daemon
