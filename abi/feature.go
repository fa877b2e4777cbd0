package abi

// Feature is something that nodes and hosts of one ABI version may lack. A guest
// asks for it with feature; a number that the host does not know is absent.
type Feature int32

// The features.
const (
	FeatureCgroupV2    Feature = 1 // the node has cgroup v2
	FeatureCgroupFiles Feature = 2 // the host reads and writes cgroup files
	FeatureUpdate      Feature = 3 // writes on handles are applied
	FeatureKV          Feature = 4 // values survive a reload of the plugin
)
