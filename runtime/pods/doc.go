// Package pods is the store: the pod sandboxes and containers of the node, with
// what a hook needs to know of them. It follows the CRI calls that the backend
// answered with OK, and reads from the backend what it has not seen happen.
//
// It holds no plugin, no policy and no connection, writes no file, and is not a
// cache of the backend's answers: kubelet's own questions never come here.
// State that changes without a call (a container that exits by itself) is as it
// was when last reported.
package pods
