// Package quantity reads Kubernetes' quantities: 500m, 2Gi, 1e3. The rules are those of resource.Quantity of
// k8s.io/apimachinery, but that a number has a digit, and at most 19 of them.
//
// It does not write quantities, and does not know which resource has which unit.
package quantity

import wp "github.com/wasmproxy/wasmproxy/sdk"

// Value returns a quantity in whole units, such as bytes. What is not whole is rounded away from zero. The result is at most 1<<63-1.
func Value(text string) (int64, error) { return scaled(text, 0) }

// Milli returns a quantity in thousandths, such as those of a CPU, rounded and limited as by [Value].
func Milli(text string) (int64, error) { return scaled(text, 3) }

// scaled returns a quantity times a power of ten.
func scaled(text string, power int64) (int64, error) {
	start := 0
	if text != "" && (text[0] == '-' || text[0] == '+') {
		start = 1
	}
	point := after(text, start)
	end := point
	if end < len(text) && text[end] == '.' {
		end = after(text, point+1)
	}
	tens, twos, ok := unit(text[end:])
	digits := end - start
	if end > point { // the point
		digits--
	}
	if !ok || digits == 0 {
		return 0, wp.Failure("\"" + text + "\" is not a quantity such as 500m, 2Gi or 1e3")
	}
	last := end // of the digits that count
	for last > point && (text[last-1] == '0' || text[last-1] == '.') {
		last--
	}
	decimals := int64(max(last-point-1, 0))
	number, ok := mantissa(text[start:last])
	if !ok || decimals > 19 {
		return 0, wp.Failure("\"" + text + "\" has more than 19 digits")
	}
	v := int64(scale(number, tens+power-decimals, twos))
	if text[0] == '-' {
		v = -v
	}
	return v, nil
}

// after passes digits.
func after(text string, i int) int {
	for i < len(text) && text[i] >= '0' && text[i] <= '9' {
		i++
	}
	return i
}

// mantissa returns the number of digits with a point between them that does not count, and whether they are at most 19.
func mantissa(text string) (number uint64, ok bool) {
	for i := range len(text) {
		if text[i] == '.' {
			continue
		}
		if number >= 1e18 {
			return 0, false
		}
		number = 10*number + uint64(text[i]-'0')
	}
	return number, true
}

var units = [...]struct {
	suffix     string
	tens, twos int64 // powers
}{
	{"", 0, 0}, {"n", -9, 0}, {"u", -6, 0}, {"m", -3, 0}, {"k", 3, 0}, {"M", 6, 0}, {"G", 9, 0}, {"T", 12, 0}, {"P", 15, 0}, {"E", 18, 0},
	{"Ki", 0, 10}, {"Mi", 0, 20}, {"Gi", 0, 30}, {"Ti", 0, 40}, {"Pi", 0, 50}, {"Ei", 0, 60},
}

// unit returns the powers that a suffix stands for.
func unit(suffix string) (tens, twos int64, ok bool) {
	for _, u := range units {
		if u.suffix == suffix {
			return u.tens, u.twos, true
		}
	}
	if suffix[0]|0x20 != 'e' {
		return 0, 0, false
	}
	tens, ok = wp.ParseInt(suffix[1:])
	return min(max(tens, -100), 100), 0, ok // beyond, every number is 1 or the most
}

const most = 1<<63 - 1

// scale returns number × 10^tens × 2^twos, rounded up.
func scale(number uint64, tens, twos int64) uint64 {
	divisor, rest := uint64(1), false
	for ; tens > 0; tens-- {
		if number > most/10 {
			return most
		}
		number *= 10
	}
	for ; tens < 0; tens++ {
		if twos > 0 { // 2/10
			twos--
			divisor *= 5
			continue
		}
		rest = rest || number%10 > 0
		number /= 10
	}
	whole, part := number/divisor, number%divisor
	for ; twos > 0; twos-- {
		whole, part = min(whole, most)*2, part*2
		if part >= divisor {
			whole, part = whole+1, part-divisor
		}
	}
	if part > 0 || rest {
		whole++
	}
	return min(whole, most)
}

// Decimal reads a number in digits with at most so many decimals, without a sign, a unit or an exponent, in units of the last
// decimal: "1.25" with 4 is 12500. There are at most 18 decimals.
func Decimal(text string, decimals int) (int64, error) {
	point := after(text, 0)
	end, behind := point, 0
	if end < len(text) && text[end] == '.' {
		end = after(text, point+1)
		behind = end - point - 1
	}
	written := point > 0 && end == len(text) && end != point+1
	if written && behind <= decimals {
		digits := text[:point] + text[end-behind:] + "000000000000000000"[:decimals-behind]
		if n, ok := wp.ParseInt(digits); ok {
			return n, nil
		}
	}
	return 0, wp.Failure("\"" + text + "\" is not a number with at most " + wp.FormatInt(int64(decimals)) + " decimals")
}
