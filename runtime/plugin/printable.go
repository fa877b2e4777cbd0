package plugin

import (
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
