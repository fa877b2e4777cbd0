package intercept

import "github.com/wasmproxy/wasmproxy/abi"

// Node is what plugins may know of the node. What is not known is zero.
type Node struct {
	CgroupVersion   int // 1 or 2; 0 where the proxy has no cgroup file system
	CgroupDriver    string
	RuntimeName     string
	RuntimeVersion  string
	RuntimeHandlers []string // sorted; the default handler may be ""
	CPUs            int      // online
	Memory          int64    // bytes
	Kernel          string   // its release
}

// Load returns n: it is what is known now, for as long as that does not change.
func (n *Node) Load() *Node { return n }

func (n *Node) int64(f abi.Field) (int64, bool) {
	switch f {
	case abi.NodeCgroupVersion:
		return int64(n.CgroupVersion), true
	case abi.NodeCPUs:
		return int64(n.CPUs), true
	case abi.NodeMemory:
		return n.Memory, true
	}
	return 0, false
}

func (n *Node) text(f abi.Field) (string, bool) {
	switch f {
	case abi.NodeRuntimeName:
		return n.RuntimeName, true
	case abi.NodeRuntimeVersion:
		return n.RuntimeVersion, true
	case abi.NodeCgroupDriver:
		return n.CgroupDriver, true
	case abi.NodeKernel:
		return n.Kernel, true
	}
	return "", false
}

func (n *Node) list(f abi.Field) ([]string, bool) {
	return n.RuntimeHandlers, f == abi.NodeRuntimeHandlers
}
