package cgroup

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
)

// maxValue is the longest value in bytes; the longest that a file of the table
// takes is far shorter.
const maxValue = 128

// parser turns what a plugin gave into the one spelling that is written.
type parser func(value string) (string, error)

// Check tells whether a plugin may write this value to this file here. Its
// error wraps abi.Denied for a file that is not on the list, abi.Unsupported
// for one that this cgroup version lacks, abi.TooLarge, or abi.Invalid for a
// value out of range. A kernel without the file is found out only by Write.
func (f *FS) Check(file, value string) error {
	_, err := f.Parse(file, value)
	return err
}

// Parse is Check that also returns the value as it will be written: without
// spaces around it, leading zeros or a plus sign. Two values that mean the same
// come out equal.
func (f *FS) Parse(file, value string) (string, error) {
	x, err := lookup(file)
	if err != nil {
		return "", fail("check", "", file, value, err)
	}
	v, err := f.parse(x, value)
	if err != nil {
		return "", fail("check", "", file, value, err)
	}
	return v, nil
}

func (f *FS) parse(x *file, value string) (string, error) {
	if _, _, err := x.at(f.version); err != nil {
		return "", err
	}
	if len(value) > maxValue {
		return "", reason(abi.TooLarge, "%d bytes, limit %d", len(value), maxValue)
	}
	v, err := x.parse(strings.TrimSpace(value))
	if err != nil {
		return "", reason(abi.Invalid, "%w", err)
	}
	return v, nil
}

func integer(low, high int64) parser {
	return func(value string) (string, error) {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < low || n > high {
			return "", fmt.Errorf("want a whole number from %d to %d", low, high)
		}
		return strconv.FormatInt(n, 10), nil
	}
}

func bytesOrMax(value string) (string, error) {
	if value == "max" {
		return value, nil
	}
	v, err := integer(0, math.MaxInt64)(value)
	if err != nil {
		return "", fmt.Errorf("want a number of bytes, or max")
	}
	return v, nil
}

// latency parses "MAJOR:MINOR target=MICROSECONDS" for one block device. The
// widths of the device number are Linux's: 12 and 20 bits. The target must
// survive the kernel's conversion to nanoseconds.
func latency(value string) (string, error) {
	device, target, ok := strings.Cut(value, " ")
	major, minor, colon := strings.Cut(device, ":")
	target, key := strings.CutPrefix(strings.TrimSpace(target), "target=")
	if !ok || !colon || !key {
		return "", fmt.Errorf("want MAJOR:MINOR target=MICROSECONDS")
	}
	major, err := integer(0, 1<<12-1)(major)
	if err != nil {
		return "", fmt.Errorf("major number: %w", err)
	}
	minor, err = integer(0, 1<<20-1)(minor)
	if err != nil {
		return "", fmt.Errorf("minor number: %w", err)
	}
	if target != "max" {
		if target, err = integer(0, math.MaxInt64/1000)(target); err != nil {
			return "", fmt.Errorf("target: %w, or max", err)
		}
	}
	return major + ":" + minor + " target=" + target, nil
}
