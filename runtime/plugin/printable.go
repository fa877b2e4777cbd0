package plugin

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
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
	unsafe := func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }
	if strings.HasPrefix(path, `"`) || strings.ContainsFunc(path, unsafe) {
		return strconv.Quote(path)
	}
	return path
}

// PrintableJSON returns JSON of the same values that a terminal shows as it is: each rune that is not printable, such as
// one that controls a terminal or the direction of text, becomes its escape sequence in JSON. encoding/json escapes
// those of ASCII only.
func PrintableJSON(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch { // what is not ASCII, and the character DEL, stand in texts only
		case r != 0x7f && r < utf8.RuneSelf, unicode.IsPrint(r):
			out = append(out, text[:size]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		text = text[size:]
	}
	return out
}
