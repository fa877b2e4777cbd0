// Package agent has a node's plugin directory follow the NodePlugins of the cluster, and reports what became of it. It decides by
// package plan, and changes files by package delivery. It loads no plugin: a child process tries them. If the API server, the
// registry or the proxy is away, the node keeps what it has.
package agent
