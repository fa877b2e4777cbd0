// Package rules says which cgroup files a plugin may write, which values they take, and
// what an error means to a plugin. It touches no file, and takes nothing but the standard
// library and package abi: package sdktest brings it to the tests of plugins.
package rules

// Set are the rules of one cgroup version, 1 or 2.
type Set int

// Version returns the version.
func (s Set) Version() int { return int(s) }

// Parse returns the value as it is written to the file: without spaces around it, leading
// zeros or a plus sign. Two values that mean the same come out equal. Its error wraps
// abi.Denied for a file that is not on the list, abi.Unsupported for one that this cgroup
// version lacks, abi.TooLarge, or abi.Invalid for a value out of range.
func (s Set) Parse(file, value string) (string, error) {
	x, err := Lookup(file)
	if err != nil {
		return "", Fail("check", "", file, value, err)
	}
	v, err := x.Parse(int(s), value)
	if err != nil {
		return "", Fail("check", "", file, value, err)
	}
	return v, nil
}
