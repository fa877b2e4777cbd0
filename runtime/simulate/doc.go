// Package simulate takes one event that is written down through the proxy: it makes
// the CRI call of it, fills a store with the calls that came before, and lets package
// intercept do with the plugin what it does on a node. The backend is in memory and
// answers everything; cgroup files are plain files in a directory of their own.
//
// An event comes from a fixture, a Pod's manifest, or one request. What
// came of it is a [Result]: the request before and after, other updates, cgroup files,
// log, cost.
//
// It is no node: one plugin is asked in one hook, and no runtime or kernel can refuse
// what it wants.
package simulate
