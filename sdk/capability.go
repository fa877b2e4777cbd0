// Code generated from package abi by abi/internal/generate. DO NOT EDIT.

package sdk

// Capability is a permission that a plugin needs, see [Registration.Needs].
type Capability string

// The capabilities. Those that are granted by default need no word of the operator.
const (
	CapStoreRead      Capability = "store.read"      // look up other pods and containers; granted by default
	CapResources      Capability = "resources"       // change CRI resources; granted by default
	CapUnified        Capability = "unified"         // change the unified map of CRI resources; granted by default
	CapAnnotations    Capability = "annotations"     // change annotations; granted by default
	CapLabels         Capability = "labels"          // change labels of a pod; granted by default
	CapCgroupWrite    Capability = "cgroup.write"    // write cgroup files; granted by default
	CapMetric         Capability = "metric"          // count and measure; granted by default
	CapEnv            Capability = "env"             // read and change the environment, which may hold secrets
	CapCgroupRead     Capability = "cgroup.read"     // read files of the cgroup of the pod, its QoS class or the container
	CapCgroupParent   Capability = "cgroup.parent"   // change the cgroup that a pod or container is put into
	CapRuntimeHandler Capability = "runtime_handler" // change the runtime handler of a pod
	CapImage          Capability = "image"           // change the image that is pulled or run
	CapArgs           Capability = "args"            // change command, arguments and working directory
	CapMounts         Capability = "mounts"          // add and remove mounts
	CapDevices        Capability = "devices"         // add and remove devices
	CapCDI            Capability = "cdi"             // add and remove CDI devices
	CapUser           Capability = "user"            // change user and groups
	CapUpdateOthers   Capability = "update.others"   // change resources and cgroup files of pods and containers other than the event's
	CapStateKV        Capability = "state.kv"        // keep values from one call to the next
	CapCRIRaw         Capability = "cri.raw"         // read the whole request; without env and credentials unless they are granted too
	CapCredentials    Capability = "credentials"     // see the registry credentials of PullImage in cri_raw
	CapPodLimits      Capability = "pod.limits"      // set CPU and memory limits of containers above the pod's, which is lifted then
	CapStoreReadAll   Capability = "store.read.all"  // with store.read, find and read pods and containers outside of the operator's match
)
