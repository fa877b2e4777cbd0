package cgroupfs

import (
	"fmt"
	"math"
	"path"
	"strconv"
)

// equivalent returns the file of version 2 that does what a file of version 1 does, and the text
// with which it says the same, as runc 1.5 translates. Other files have the same name and text.
func equivalent(file, value string) (string, string) {
	name := path.Base(file)
	switch name {
	case "cpu.shares":
		return "cpu.weight", weight(value)
	case "cpu.cfs_quota_us":
		if value == "-1" {
			value = "max"
		}
		return "cpu.max", value + " 100000" // kubelet's period
	case "cpu.cfs_burst_us":
		return "cpu.max.burst", value
	case "memory.limit_in_bytes":
		return "memory.max", value
	}
	return name, value
}

// weight is runc's: 2 shares have the weight 1, 1024 have 100, and 262144 have 10000.
func weight(shares string) string {
	n, err := strconv.ParseFloat(shares, 64)
	if err != nil {
		return fmt.Sprintf("%s shares", shares)
	}
	l := math.Log2(n)
	return strconv.FormatFloat(math.Ceil(math.Pow(10, (l*l+125*l)/612-7.0/34)), 'f', 0, 64)
}
