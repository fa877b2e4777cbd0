// Package delivery makes the plugins of a directory those of an owner in a plugin directory: code and settings of each
// change by one rename, and nobody else's files change. It loads no plugin and asks no proxy, which its callers do.
package delivery
