package abi

// Capability is a permission: a plugin has those that its manifest declares and
// that the operator grants. What it has not is DENIED at each call of the host.
// The numbers are the host's own and are in no guest; the names are the ABI.
type Capability uint8

// The capabilities. The zero Capability needs no permission.
const (
	StoreRead      Capability = iota + 1 // pods and containers other than the event's
	WriteResources                       // CRI resources but unified
	WriteUnified
	WriteAnnotations
	WriteLabels
	CgroupWrite
	WriteMetric
	Env // read and write
	CgroupRead
	WriteCgroupParent
	WriteRuntimeHandler
	WriteImage
	WriteArgs // command, args and working directory
	WriteMounts
	WriteDevices
	WriteCDI
	WriteUser
	UpdateOthers // resources and cgroup files of other pods and containers
	StateKV
	ReadRaw
	Credentials  // those of a registry, in cri_raw
	PodLimits    // a container's CPU and memory limits above its pod's
	StoreReadAll // with StoreRead, those outside of the operator's match
)

// CapabilityInfo is a row of the table of capabilities.
type CapabilityInfo struct {
	Capability Capability
	Name       string
	Granted    bool   // without a word of the operator
	Gives      string // for people
}

// Capabilities is the table of capabilities.
var Capabilities = []CapabilityInfo{
	{StoreRead, "store.read", true, "look up other pods and containers"},
	{WriteResources, "resources", true, "change CRI resources"},
	{WriteUnified, "unified", true, "change the unified map of CRI resources"},
	{WriteAnnotations, "annotations", true, "change annotations"},
	{WriteLabels, "labels", true, "change labels of a pod"},
	{CgroupWrite, "cgroup.write", true, "write cgroup files"},
	{WriteMetric, "metric", true, "count and measure"},
	{Env, "env", false, "read and change the environment, which may hold secrets"},
	{CgroupRead, "cgroup.read", false, "read files of the cgroup of the pod, its QoS class or the container"},
	{WriteCgroupParent, "cgroup.parent", false, "change the cgroup that a pod or container is put into"},
	{WriteRuntimeHandler, "runtime_handler", false, "change the runtime handler of a pod"},
	{WriteImage, "image", false, "change the image that is pulled or run"},
	{WriteArgs, "args", false, "change command, arguments and working directory"},
	{WriteMounts, "mounts", false, "add and remove mounts"},
	{WriteDevices, "devices", false, "add and remove devices"},
	{WriteCDI, "cdi", false, "add and remove CDI devices"},
	{WriteUser, "user", false, "change user and groups"},
	{UpdateOthers, "update.others", false, "change resources and cgroup files of pods and containers other than the event's"},
	{StateKV, "state.kv", false, "keep values from one call to the next"},
	{ReadRaw, "cri.raw", false, "read the whole request; without env and credentials unless they are granted too"},
	{Credentials, "credentials", false, "see the registry credentials of PullImage in cri_raw"},
	{PodLimits, "pod.limits", false, "set CPU and memory limits of containers above the pod's, which is lifted then"},
	{StoreReadAll, "store.read.all", false, "with store.read, find and read pods and containers outside of the operator's match"},
}

// CapabilityByName finds a capability by its exact name.
func CapabilityByName(name string) (Capability, bool) {
	for _, info := range Capabilities {
		if info.Name == name {
			return info.Capability, true
		}
	}
	return 0, false
}

// CapabilitySet is a set of capabilities, one bit each.
type CapabilitySet uint64

// The sets with a name.
const (
	NoCapabilities  CapabilitySet = 0
	AllCapabilities CapabilitySet = 1<<(StoreReadAll+1) - 2
)

// CapabilitiesNamed returns the capabilities with these names, "*" being all, and the names
// that are unknown.
func CapabilitiesNamed(names []string) (all CapabilitySet, unknown []string) {
	for _, name := range names {
		c, ok := CapabilityByName(name)
		switch {
		case name == "*":
			all = AllCapabilities
		case !ok:
			unknown = append(unknown, name)
		default:
			all |= 1 << c
		}
	}
	return all, unknown
}

// DefaultGrant is what an operator grants who says nothing.
func DefaultGrant() CapabilitySet {
	var s CapabilitySet
	for _, info := range Capabilities {
		if info.Granted {
			s |= 1 << info.Capability
		}
	}
	return s
}

// Declared returns the capabilities that the manifest declares. The names that this
// version does not know belong to a later one.
func (m *Manifest) Declared() (declared CapabilitySet, unknown []string) {
	for _, name := range m.Capabilities {
		if c, ok := CapabilityByName(name); ok {
			declared |= 1 << c
		} else {
			unknown = append(unknown, name)
		}
	}
	return declared, unknown
}

// Has reports whether c is in the set. The zero Capability is in every set.
func (s CapabilitySet) Has(c Capability) bool { return c == 0 || s&(1<<c) != 0 }
