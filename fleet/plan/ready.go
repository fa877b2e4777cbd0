package plan

import "github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"

// Served reports whether a node has proved what it is to have of a plugin: pods may start there. A node that is to have nothing has it.
func Served(status *v1alpha1.NodePluginStatus, n Node) bool {
	c := Choose(status, n.Name)
	switch {
	case c.Revision == "", n.Bypassed: // nothing is known yet, or no plugin is called
		return false
	case c.Revision == v1alpha1.NoRevision:
		return has(n.Report) == v1alpha1.NoRevision
	}
	return has(n.Report) == c.Revision && healthy(n.Report)
}
