package sdk

import "github.com/wasmproxy/wasmproxy/abi"

// CgroupVersion returns the version of the node's cgroup hierarchy, 1 or 2.
func CgroupVersion() int {
	return int(readInt64("CgroupVersion", abi.Node, abi.NodeCgroupVersion))
}

// ReadNodeCgroup reads a file of the node's root cgroup by its v2 name, such as cpu.stat or cpu.pressure. It needs
// [CapCgroupRead]. A file that the kernel does not have there is [ErrUnsupported].
func ReadNodeCgroup(file string) (string, error) { return readCgroup(abi.Node, file) }

// CgroupDriver returns "systemd" or "cgroupfs", "" where the runtime does not say.
func CgroupDriver() string { return readText("CgroupDriver", abi.Node, abi.NodeCgroupDriver) }

// RuntimeName returns the name of the container runtime behind the proxy, such
// as "containerd".
func RuntimeName() string { return readText("RuntimeName", abi.Node, abi.NodeRuntimeName) }

// RuntimeVersion returns the version of the container runtime behind the proxy.
func RuntimeVersion() string {
	return readText("RuntimeVersion", abi.Node, abi.NodeRuntimeVersion)
}

// RuntimeHandlers returns the handlers that the container runtime has.
func RuntimeHandlers() []string {
	return readList("RuntimeHandlers", abi.Node, abi.NodeRuntimeHandlers)
}

// NodeCPUs returns how many CPUs of the node are online.
func NodeCPUs() int64 { return readInt64("NodeCPUs", abi.Node, abi.NodeCPUs) }

// NodeMemory returns the node's memory in bytes.
func NodeMemory() int64 { return readInt64("NodeMemory", abi.Node, abi.NodeMemory) }

// NodeKernel returns the release of the node's kernel, as uname -r has it.
func NodeKernel() string { return readText("NodeKernel", abi.Node, abi.NodeKernel) }
