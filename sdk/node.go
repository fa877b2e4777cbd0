package sdk

import "github.com/wasmproxy/wasmproxy/abi"

// Node is the node that the proxy runs on.
var Node NodeObject

// NodeObject reads the node. Its methods return "" or 0 for what is not known.
type NodeObject struct{}

// CgroupVersion returns the version of the node's cgroup hierarchy, 1 or 2.
func (NodeObject) CgroupVersion() int64 {
	return readInt64("CgroupVersion", abi.Node, abi.NodeCgroupVersion)
}

// ReadCgroup reads a file of the node's root cgroup by its v2 name, such as cpu.stat or cpu.pressure. It needs
// [CapCgroupRead]. A file that the kernel does not have there is [ErrUnsupported].
func (NodeObject) ReadCgroup(file string) (string, error) { return readCgroup(abi.Node, file) }

// CgroupDriver returns "systemd" or "cgroupfs", "" where the runtime does not say.
func (NodeObject) CgroupDriver() string {
	return readText("CgroupDriver", abi.Node, abi.NodeCgroupDriver)
}

// RuntimeName returns the name of the container runtime behind the proxy, such
// as "containerd".
func (NodeObject) RuntimeName() string {
	return readText("RuntimeName", abi.Node, abi.NodeRuntimeName)
}

// RuntimeVersion returns the version of the container runtime behind the proxy.
func (NodeObject) RuntimeVersion() string {
	return readText("RuntimeVersion", abi.Node, abi.NodeRuntimeVersion)
}

// RuntimeHandlers returns the handlers that the container runtime has.
func (NodeObject) RuntimeHandlers() []string {
	return readList("RuntimeHandlers", abi.Node, abi.NodeRuntimeHandlers)
}

// CPUs returns how many CPUs of the node are online.
func (NodeObject) CPUs() int64 { return readInt64("CPUs", abi.Node, abi.NodeCPUs) }

// Memory returns the node's memory in bytes.
func (NodeObject) Memory() int64 { return readInt64("Memory", abi.Node, abi.NodeMemory) }

// Kernel returns the release of the node's kernel, as uname -r has it.
func (NodeObject) Kernel() string { return readText("Kernel", abi.Node, abi.NodeKernel) }
