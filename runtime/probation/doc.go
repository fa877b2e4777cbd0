// Package probation keeps which new versions of plugins are on probation on this node, which have passed it, and which have
// failed and are not loaded again. It judges a version by what its caller counts. It neither loads plugins nor goes back to an
// earlier version: package slots does.
package probation
