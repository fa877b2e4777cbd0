package plugin

import "github.com/wasmproxy/wasmproxy/abi"

// Features are what plugins can use of a node that nodes may lack, by the version of its
// cgroups: 1, 2, or 0 for a node without cgroup files.
func Features(cgroupVersion int) []abi.Feature {
	all := []abi.Feature{abi.FeatureUpdate, abi.FeatureKV}
	if cgroupVersion > 0 {
		all = append(all, abi.FeatureCgroupFiles)
	}
	if cgroupVersion == 2 {
		all = append(all, abi.FeatureCgroupV2)
	}
	return all
}
