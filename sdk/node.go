package sdk

import "github.com/wasmproxy/wasmproxy/abi"

// Node is the node that the proxy runs on.
var Node NodeObject

// NodeObject reads the node. Its methods return "" or 0 for what is not known.
type NodeObject struct{}

// ReadCgroup reads a file of the node's root cgroup by its v2 name, such as cpu.stat or cpu.pressure. It needs
// [CapCgroupRead]. A file that the kernel does not have there is [ErrUnsupported].
func (NodeObject) ReadCgroup(file string) (string, error) { return readCgroup(abi.Node, file) }
