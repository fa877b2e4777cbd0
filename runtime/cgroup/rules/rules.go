// Package rules says which cgroup files a plugin may write, which values they take, and
// what an error means to a plugin. It touches no file.
package rules

import (
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
)

// Set are the rules of one cgroup version, 1 or 2.
type Set int

// Parse returns the value as it is written to the file of a pod or container: without
// spaces around it, leading zeros or a plus sign. Two values that mean the same come out
// equal. way is CgroupSet or Unified. Its error is an [*Error], whose code is
// abi.Unsupported for a file that this cgroup version lacks, and for Unified on v1;
// abi.Invalid for a name that no cgroup file has and for a value out of range;
// abi.Denied for a file that may not be written in this way; or abi.TooLarge.
func (s Set) Parse(way Ways, o abi.Object, file, value string) (string, error) {
	x, err := s.find(way, o, file)
	if err != nil {
		return "", Fail("check", "", file, "", err)
	}
	v, err := x.Parse(value)
	return v, Fail("check", "", file, value, err)
}

// Check is Parse for a file whose value is not at hand, such as one that is taken away.
func (s Set) Check(way Ways, o abi.Object, file string) error {
	_, err := s.find(way, o, file)
	return Fail("check", "", file, "", err)
}

func (s Set) find(way Ways, o abi.Object, file string) (*File, error) {
	if way == Unified {
		if s != 2 { // where runc fails the whole container for it
			return nil, Reason(abi.Unsupported, "unified needs cgroup v2")
		}
		if !strings.Contains(file, ".") || strings.ContainsAny(file, "/\x00\n") {
			return nil, Reason(abi.Invalid, "not the name of a cgroup v2 file")
		}
	}
	x := Find(file)
	if x == nil || x.Ways(o)&way == 0 {
		return nil, unlisted(way, o, x)
	}
	return x, x.In(int(s))
}
