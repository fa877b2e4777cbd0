// Package daemon puts the parts together: sockets, the proxy, the store, the plugins, and what serves operators. It starts
// them in order, and ends them when calls have been drained. It is the only package that knows them all, so only cmd
// imports it.
//
// What happens meanwhile is for the parts: see package slots for plugins, and package reconcile for pods and values.
package daemon
