package sdk

// The standard library's errors and strconv bring reflection along, which makes
// a TinyGo plugin twice as large. These three do for most plugins.

// Failure is an error that is only a text, for a handler to return. The proxy
// logs it, or tells it the caller, with the plugin and the hook before it.
type Failure string

// Error returns the text.
func (f Failure) Error() string { return string(f) }

// FormatInt writes v in decimal, as strconv.FormatInt does.
func FormatInt(v int64) string {
	var digits [20]byte
	n, rest := len(digits), uint64(v)
	if v < 0 {
		rest = -rest
	}
	for {
		n--
		digits[n] = '0' + byte(rest%10)
		if rest /= 10; rest == 0 {
			break
		}
	}
	if v < 0 {
		n--
		digits[n] = '-'
	}
	return string(digits[n:])
}

// ParseInt reads a decimal number, as strconv.ParseInt does, and reports
// whether s is one that fits.
func ParseInt(s string) (v int64, ok bool) {
	digits := s
	if s != "" && (s[0] == '-' || s[0] == '+') {
		digits = s[1:]
	}
	negative := len(digits) < len(s) && s[0] == '-'
	const limit = 1<<63 - 1
	for i := range len(digits) {
		d := int64(digits[i]) - '0'
		if d < 0 || d > 9 || v < (-limit-1+d)/10 {
			return 0, false
		}
		v = 10*v - d // downwards, where there is room for one more
	}
	if digits == "" || !negative && v < -limit {
		return 0, false
	}
	if negative {
		return v, true
	}
	return -v, true
}
