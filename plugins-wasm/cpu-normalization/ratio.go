package main

import wp "github.com/wasmproxy/wasmproxy/sdk"

// ratio is how much faster the node's CPUs are than those that requests and limits are
// written for, in ten-thousandths. 0 is none.
type ratio int64

const (
	one      ratio = 10_000
	maxRatio       = 5 * one // as koord-manager has it
)

// parse reads a number with at most four decimals.
func parse(text string) (ratio, error) {
	whole, decimals := text, ""
	for i := range len(text) {
		if text[i] == '.' {
			whole, decimals = text[:i], text[i+1:]
			break
		}
	}
	n, ok := digits(whole)
	if len(whole) < len(text) {
		parts, fine := digits(decimals)
		for range 4 - len(decimals) {
			parts *= 10
		}
		n, ok = n*one+parts, ok && fine && len(decimals) <= 4
	} else {
		n *= one
	}
	if !ok || n < one || n > maxRatio {
		return 0, wp.Failure("\"" + text + "\" is not a number from 1 to 5 with at most four decimals")
	}
	return n, nil
}

// digits reads a number of up to four digits and nothing else.
func digits(text string) (n ratio, ok bool) {
	if len(text) == 0 || len(text) > 4 {
		return 0, false
	}
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
		n = n*10 + ratio(text[i]-'0')
	}
	return n, true
}

// minQuota is the least that the kernel takes, in µs.
const minQuota = 1000

// scale returns the quota that gives as much work on this node, rounded up. The largest
// quota, 1<<44, times one fits an int64.
func (r ratio) scale(quota int64) int64 {
	scaled := (quota*int64(one) + int64(r) - 1) / int64(r)
	if scaled < minQuota {
		return minQuota
	}
	return scaled
}
