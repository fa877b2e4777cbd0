package plugin

import (
	"strconv"
	"strings"
	"unicode"
)

// Printable returns a plugin's text as one line that is safe to log and to put into a
// gRPC status. It looks at the first limit bytes only.
func Printable[T string | []byte](text T, limit int) string {
	valid := strings.ToValidUTF8(string(text[:min(len(text), limit)]), "?")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, valid))
}

// Name returns the name or path of a file such that it is safe to print on one line: as
// it is, or as a Go string where it holds anything that is not printable. Different names
// stay different.
func Name(path string) string {
	if strings.HasPrefix(path, `"`) || strings.ContainsFunc(path, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) {
		return strconv.Quote(path)
	}
	return path
}
