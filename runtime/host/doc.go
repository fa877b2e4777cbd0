// Package host puts the proxy on a host: its units, directories and settings, and the
// endpoint in kubelet's files. It records what it replaces, and takes back exactly that.
//
// A [Host] plans before it changes anything, so that an operator sees each change. Every
// change is atomic, and a plan that was interrupted is made again from what there is.
package host
