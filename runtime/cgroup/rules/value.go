package rules

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
)

// MaxValue is the longest value in bytes; the longest that a file of the table
// takes is far shorter.
const MaxValue = 128

// parser turns what a plugin gave into the one spelling that is written.
type parser func(value string) (string, error)

// Parse is that of [Set] for one file.
func (x *File) Parse(version int, value string) (string, error) {
	if _, _, err := x.At(version); err != nil {
		return "", err
	}
	if len(value) > MaxValue {
		return "", Reason(abi.TooLarge, "%d bytes, limit %d", len(value), MaxValue)
	}
	v, err := x.parse(strings.TrimSpace(value))
	if err != nil {
		return "", Reason(abi.Invalid, "%w", err)
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
